"""The steps of the Dockerfile, done on this machine without a container.

A fresh environment from the pinned requirements, read-only code, and an unprivileged user. That a
node runs the image itself is tried in tests/e2e/node.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from hooks.sandbox.processes import Account, Process, free_port
from tests.e2e.node.dockerfile import Stage, stages
from tests.manifests.manifests import ROOT, SAMPLES, load

USER = 65532
TOKEN = "a-token"
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "c",
}


@dataclass(frozen=True)
class Installation:
    """What the Dockerfile makes, in a directory instead of an image."""

    root: Path
    last: Stage

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the last stage."""
        inside = self.last.environment
        return inside | {"PATH": inside["PATH"].replace("/venv", f"{self.root}/venv")}


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """Take the steps; the program's own user may only read what comes of them."""
    root = Path(tempfile.mkdtemp(prefix="database-hooks-image-", dir="/tmp"))
    root.chmod(0o755)
    build, last = stages((ROOT / "Dockerfile").read_text())
    (root / "app").mkdir()
    for step in build.steps:
        if step.kind == "COPY":
            shutil.copy(ROOT / step.text.split()[0], root / "app")
        elif step.kind == "RUN":
            command = step.text.replace("/venv", f"{root}/venv").replace("python -m", "python3 -m")
            environment = {**os.environ, "PATH": "/usr/bin:/bin"}  # noqa: TID251  a proxy's settings
            subprocess.run(
                ["/bin/sh", "-ec", command],
                cwd=root / "app",
                env=environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
    shutil.copytree(
        ROOT / "hooks", root / "app" / "hooks", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(
        ["/bin/chmod", "-R", "a-w,a+rX", str(root / "app"), str(root / "venv")], check=True
    )
    yield Installation(root, last)
    subprocess.run(["/bin/chmod", "-R", "u+w", str(root)], check=True)
    shutil.rmtree(root)


def account() -> Account | None:
    """Return who runs the program: as root its own user, otherwise whoever runs the tests."""
    return Account(USER, USER) if os.getuid() == 0 else None


def settings(root: Path, address: str) -> dict[str, str]:
    """Write the files that the settings name, and return the settings."""
    files = {"token": TOKEN, "openbao-token": "none", "kubeconfig": json.dumps(KUBECONFIG)}
    for name, text in files.items():
        (root / name).write_text(text)
    return {
        "LISTEN_ADDRESS": address,
        "CONTROLLER_NAMESPACE": "database-hooks",
        "HOOK_TOKEN_FILES": str(root / "token"),
        "KUBECONFIG": str(root / "kubeconfig"),
        "OPENBAO_ADDRESS": "http://127.0.0.1:1",
        "OPENBAO_AUTH": "token",
        "OPENBAO_TOKEN_FILE": str(root / "openbao-token"),
        "SECRET_STORE_NAME": "openbao",
    }


@pytest.fixture
def address(installation: Installation, tmp_path: Path) -> Iterator[str]:
    """Start what the image starts, as the user that it names."""
    root, last = installation.root, installation.last
    found = f"127.0.0.1:{free_port()}"
    words = [str(word) for key in ("Entrypoint", "Cmd") for word in last.settings[key]]  # type: ignore[attr-defined]  # lists of words
    server = Process(
        ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(root / "app"), *words],
        log=tmp_path / "log",
        env=installation.environment | settings(root, found),
        account=account(),
    )
    try:
        server.wait_until(
            lambda: requests.get(f"http://{found}/readyz", timeout=5).ok,
            despite=(requests.RequestException,),
        )
        yield found
    finally:
        server.stop()


def test_the_image_answers_a_sync(address: str) -> None:
    (instance,) = load(SAMPLES / "postgresqlinstance-minimal.yaml")
    instance["metadata"] |= {"uid": "u-1", "generation": 1}
    body = {"controller": {}, "parent": instance, "children": {}, "related": {}}
    response = requests.post(
        f"http://{address}/instance/sync",
        json=body | {"finalizing": False},
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )
    assert response.status_code == 200
    (ready,) = response.json()["status"]["conditions"]
    # Its imports work, and it said by itself that there is no API server here.
    assert (ready["type"], ready["reason"]) == ("Ready", "DependencyUnavailable")


def test_the_image_tells_what_is_missing_and_ends(installation: Installation) -> None:
    ended = subprocess.run(
        [installation.root / "venv" / "bin" / "python", "-m", "hooks", "serve"],
        cwd=installation.root / "app",
        env=installation.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0
    assert "HOOK_TOKEN_FILES: is required" in ended.stdout + ended.stderr


def test_the_code_is_not_the_programs_to_change(installation: Installation) -> None:
    writable = [
        path
        for path in (installation.root / "app").rglob("*")
        if path.stat().st_mode & 0o222 or path.stat().st_uid == USER
    ]
    assert writable == []

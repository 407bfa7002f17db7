"""What the Dockerfile says; what it makes is tried in tests/e2e/chart and tests/e2e/node."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

import hooks
from hooks.settings import Settings
from tests.manifests.manifests import BASE, ROOT, load

DOCKERFILE = (ROOT / "Dockerfile").read_text()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def words(instruction: str) -> list[str]:
    """Return what follows each use of an instruction."""
    return re.findall(rf"^{instruction} (.*)$", DOCKERFILE, re.M)


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    ended = subprocess.run(
        [hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "")


def test_both_stages_have_one_base_with_a_tag() -> None:
    build, last = words("FROM")
    assert build == f"{last} AS build"
    assert re.fullmatch(r"[a-z]+:\d+\.\d+-[a-z-]+", last)


def test_every_requirement_is_a_wheel_with_a_hash() -> None:
    (install,) = re.findall(r"pip install (.*)", DOCKERFILE)
    assert {"--require-hashes", "--only-binary", ":all:"} <= set(install.split())


def test_the_program_runs_as_the_user_of_the_deployment() -> None:
    (deployment,) = load(BASE / "deployment.yaml")
    security = deployment["spec"]["template"]["spec"]["securityContext"]
    assert words("USER") == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    after = DOCKERFILE.partition("USER ")[2]
    assert re.findall(r"^(?:COPY|ADD|RUN)", after, re.M) == []


def test_the_image_holds_what_it_copies_and_nothing_is_sent_besides() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {line.split()[-2] for line in words("COPY") if not line.startswith("--from")}
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_one_version_is_named_everywhere() -> None:
    (deployment,) = load(BASE / "deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    charts = [yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("charts/*/Chart.yaml"))]
    assert hooks.__version__ == VERSION
    assert Settings.model_fields["init_sql_image"].default == f"database-hooks:{VERSION}"
    assert container["image"] == f"database-hooks:{VERSION}"
    assert [(each["version"], each["appVersion"]) for each in charts] == [(VERSION, VERSION)] * 2

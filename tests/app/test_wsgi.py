"""The composition: token files, and the whole application with its real adapters."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from hooks import wsgi
from hooks.core.deadline import Deadline
from hooks.settings import Settings
from tests.app.running import environ
from tests.app.stubs import bearer


def rotate(path: Path, text: str) -> None:
    """Replace a file as a mounted Secret is: by a rename."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_several_files_are_several_tokens_without_their_line_ends(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old-token\n")
    new.write_text(" new-token ")
    assert wsgi.TokenFiles([old, new])() == [b"old-token", b"new-token"]


def test_a_token_is_rotated_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    tokens = wsgi.TokenFiles([path])
    assert tokens() == [b"one"]
    rotate(path, "two")
    assert tokens() == [b"two"]
    path.write_text("three")
    assert tokens() == [b"three"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_token_that_is_taken_away_is_revoked_and_told_once(
    tmp_path: Path,
    gone: bool,  # noqa: FBT001  a table
) -> None:
    kept, path = tmp_path / "kept", tmp_path / "token"
    kept.write_text("kept")
    path.write_text("one")
    tokens = wsgi.TokenFiles([kept, path])
    assert tokens() == [b"kept", b"one"]
    if gone:
        path.unlink()
    else:
        rotate(path, "\n")
    with capture_logs() as logs:
        assert [tokens(), tokens()] == [[b"kept"]] * 2
    assert logs == [{"event": "token_file_unusable", "log_level": "warning", "path": str(path)}]
    rotate(path, "two")
    assert tokens() == [b"kept", b"two"]


def kubeconfig(directory: Path) -> str:
    """Write a configuration of an API server that nobody runs."""
    path = directory / "kubeconfig"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return str(path)


def parent(kind: str, **spec: object) -> bytes:
    meta = {"name": "main", "namespace": "a", "uid": "u-1", "generation": 1}
    version = "database.ddupan.top/v1alpha1"
    return json.dumps(
        {"parent": {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}}
    ).encode()


def test_the_whole_application_answers_with_every_server_down(tmp_path: Path) -> None:
    settings = Settings.from_env(environ(tmp_path) | {"KUBECONFIG": kubeconfig(tmp_path)})
    client = wsgi.build(settings, lambda: True).test_client()
    endpoint = {
        "host": "db.example.org",
        "hostaddr": "127.0.0.1",
        "port": 1,
        "database": "postgres",
        "sslMode": "verify-full",
    }
    secret = {"name": "admin", "usernameKey": "username", "passwordKey": "password"}
    instance = parent("PostgreSQLInstance", endpoint=endpoint, adminSecretRef=secret)
    tenant = parent("PostgreSQLTenant", instanceRef="main", databaseName="shop")
    answers = {
        path: client.post(path, data=body, headers=bearer())
        for path, body in {
            "/instance/sync": instance,
            "/instance/customize": instance,
            "/tenant/sync": tenant,
            "/tenant/customize": tenant,
        }.items()
    }
    assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(
        answers, 200
    )
    ready = answers["/instance/sync"].get_json()["status"]["conditions"][0]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    assert client.get("/readyz").status_code == 200


def test_the_clock_of_a_request_is_now_in_utc(tmp_path: Path) -> None:
    settings = Settings.from_env(environ(tmp_path) | {"KUBECONFIG": kubeconfig(tmp_path)})
    world = wsgi.services(settings)(Deadline())
    offset = world.now.utcoffset()
    assert offset is not None
    assert (offset.total_seconds(), abs(world.now.timestamp() - _file_time(tmp_path)) < 60) == (
        0,
        True,
    )


def _file_time(directory: Path) -> float:
    (directory / "clock").write_text("")
    return os.stat(directory / "clock").st_mtime  # noqa: PTH116  the file system's own clock


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ("kubernetes", "KubernetesAuth"),
        ("approle", "AppRole"),
        ("token", "TokenFile"),
    ],
)
def test_each_way_to_log_in_to_openbao_is_wired(tmp_path: Path, auth: str, expected: str) -> None:
    env = environ(tmp_path)
    file = env["OPENBAO_TOKEN_FILE"]
    env |= {"OPENBAO_AUTH": auth, "OPENBAO_ROLE": "r", "OPENBAO_JWT_FILE": file}
    env |= {"OPENBAO_ROLE_ID_FILE": file, "OPENBAO_SECRET_ID_FILE": file}
    chosen = wsgi.openbao_auth(Settings.from_env(env))
    assert type(chosen).__name__ == expected

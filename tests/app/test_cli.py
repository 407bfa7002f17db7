"""The command line, as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.running import ROOT, environ

TENANT = {
    "apiVersion": "database.ddupan.top/v1alpha1",
    "kind": "PostgreSQLTenant",
    "metadata": {"name": "shop", "namespace": "team-a", "uid": "u-1", "generation": 1},
    "spec": {"instanceRef": "main", "databaseName": "shop"},
}


def hooks(
    *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hooks", *arguments],
        cwd=ROOT,
        env=env or {},
        input=stdin,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", [["serve"], ["sync", "tenant"]])
def test_every_problem_of_the_settings_is_listed_and_the_exit_code_is_2(command: list[str]) -> None:
    ended = hooks(*command, env={"LISTEN_ADDRESS": "x", "OPENBAO_AUTH": "token"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines() == [
        "hooks: LISTEN_ADDRESS: must be host:port",
        "hooks: HOOK_TOKEN_FILES: is required",
        "hooks: CONTROLLER_NAMESPACE: is required",
        "hooks: OPENBAO_TOKEN_FILE: is required with OPENBAO_AUTH=token",
        "hooks: OPENBAO_ADDRESS: is required to serve tenants",
        "hooks: SECRET_STORE_NAME: is required to serve tenants",
    ]


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["sync"], ["check"], ["sandbox", "up"]])
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str]) -> None:
    ended = hooks(*arguments)
    assert (ended.returncode, ended.stderr.startswith("usage: hooks")) == (2, True)


def test_an_unusable_certificate_is_told_before_serving(tmp_path: Path) -> None:
    settings = environ(tmp_path)
    token = settings["HOOK_TOKEN_FILES"]
    ended = hooks("serve", env=settings | {"TLS_CERT_FILE": token, "TLS_KEY_FILE": token})
    assert ended.returncode == 2
    assert ended.stderr.startswith("hooks: TLS_CERT_FILE, TLS_KEY_FILE: no usable pair")


def test_customize_answers_without_any_server(tmp_path: Path) -> None:
    ended = hooks(
        "customize", "tenant", env=environ(tmp_path), stdin=json.dumps({"parent": TENANT})
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [rule["names"] for rule in json.loads(ended.stdout)["relatedResources"]] == [["main"]]


def test_a_request_that_is_none_is_exit_code_2(tmp_path: Path) -> None:
    ended = hooks("customize", "tenant", env=environ(tmp_path), stdin="{}")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "hooks: parent is missing or not an object with metadata\n"


def test_an_unknown_resource_is_told_which_there_are(tmp_path: Path) -> None:
    ended = hooks("sync", "table", env=environ(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr == (
        "hooks: there is no resource table; there are"
        " instance, tenant, initsql, initsql-pgo, ingestion\n"
    )


def test_a_resource_that_is_not_served_is_none(tmp_path: Path) -> None:
    ended = hooks("sync", "tenant", env=environ(tmp_path) | {"RESOURCES": "initsql,ingestion"})
    assert ended.returncode == 2
    assert ended.stderr == (
        "hooks: there is no resource tenant; there are initsql, initsql-pgo, ingestion\n"
    )


def test_sync_outside_of_a_cluster_says_what_is_missing(tmp_path: Path) -> None:
    ended = hooks("sync", "tenant", env=environ(tmp_path), stdin=json.dumps({"parent": TENANT}))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("hooks: Kubernetes: the Pod's ServiceAccount is missing")


INIT_SQL = [
    "--mode=composite",
    "--namespace=team-a",
    "--cluster=hippo",
    "--digest=abc",
    "--pod=hippo-0",
]


def test_an_init_sql_job_that_reaches_nothing_says_try_again(tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    ended = hooks("run-init-sql", *INIT_SQL, "--seconds=60", f"--termination-log={log}")
    assert (ended.returncode, ended.stderr) == (75, "")
    assert json.loads(log.read_text()) == {
        "result": "again",
        "detail": "Kubernetes: the Pod's ServiceAccount is missing or cannot be used",
        "sqlstate": "",
        "line": 0,
    }
    assert ended.stdout == log.read_text() + "\n"


def test_an_init_sql_job_without_its_arguments_is_exit_code_2() -> None:
    assert hooks("run-init-sql", *INIT_SQL).returncode == 2


def test_a_recorded_call_that_is_answered_alike_is_told_so(tmp_path: Path) -> None:
    recorded = recording(tmp_path, names=["main"])
    ended = hooks("replay", str(recorded), env=environ(tmp_path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{recorded}: the same answer\n"


def test_a_recorded_call_that_is_answered_otherwise_shows_the_difference(tmp_path: Path) -> None:
    recorded = recording(tmp_path, names=["other"])
    ended = hooks("replay", str(recorded), env=environ(tmp_path))
    assert ended.returncode == 1
    changed = [line.strip() for line in ended.stdout.splitlines() if line[:1] in "-+"]
    assert changed == ["--- recorded", "+++ answered", '-        "other"', '+        "main"']


def test_a_file_that_is_no_recording_is_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    ended = hooks("replay", str(tmp_path / "x.json"), env=environ(tmp_path))
    assert ended.returncode == 2
    assert ended.stderr == f"hooks: {tmp_path}/x.json: resource is missing or not a string\n"


def test_check_tells_what_would_be_refused_and_where(tmp_path: Path) -> None:
    path = tmp_path / "tenant.yaml"
    path.write_text(json.dumps(TENANT))
    ended = hooks("check", str(path))
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines() == [
        f"{path}: PostgreSQLTenant team-a/shop: spec.databaseName: unknown field",
        "files: 1, problems: 1",
    ]


def test_check_of_nothing_is_exit_code_2(tmp_path: Path) -> None:
    ended = hooks("check", "samples", str(tmp_path))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"hooks: {tmp_path}: no manifest and no recorded call is there\n"


def recording(directory: Path, *, names: list[str]) -> Path:
    rule = {
        "apiVersion": "database.ddupan.top/v1alpha1",
        "resource": "postgresqlinstances",
        "names": names,
    }
    call = {
        "resource": "tenant",
        "hook": "customize",
        "request": {"parent": TENANT},
        "answer": {"relatedResources": [rule]},
    }
    path = directory / "call.json"
    path.write_text(json.dumps(call))
    return path

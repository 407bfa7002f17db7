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
        "hooks: OPENBAO_ADDRESS: is required",
        "hooks: SECRET_STORE_NAME: is required",
        "hooks: OPENBAO_TOKEN_FILE: is required with OPENBAO_AUTH=token",
    ]


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["sync"], ["sandbox", "up"]])
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
    assert ended.stderr == "hooks: there is no resource table; there are instance, tenant\n"


def test_sync_outside_of_a_cluster_says_what_is_missing(tmp_path: Path) -> None:
    ended = hooks("sync", "tenant", env=environ(tmp_path), stdin=json.dumps({"parent": TENANT}))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("hooks: Kubernetes: the Pod's ServiceAccount is missing")

"""databaseInitSQL with real Jobs of our own image, real rights, and real pods/exec."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.node import postgres_cluster
from tests.e2e.node.deployment import Deployed
from tests.e2e.node.postgres_cluster import NAMESPACE, ask, query, start

_CONDITION = "DatabaseInitSQLApplied"
_UID = "database.ddupan.top/init-sql-uid"
_ATTEMPT = "database.ddupan.top/init-sql-attempt"

_RUN = "\\set FETCH_COUNT 1\nCREATE TABLE run AS SELECT now() AS at;\n"
_FAIL = "SELECT 1;\nSELECT 'a secret' FROM missing;\n"
_END_THE_SERVER_ONCE = r"""
CREATE TABLE IF NOT EXISTS run AS SELECT now() AS at;
\! test -e /tmp/ended || { touch /tmp/ended; kill -QUIT 1; }
SELECT pg_sleep(1);
"""


@pytest.fixture(scope="module")
def who(hooks: Deployed) -> Administrator:
    postgres_cluster.make_namespace(hooks.administrator)
    return hooks.administrator


def test_the_sql_runs_once_and_of_all_that_was_made_the_job_stays(who: Administrator) -> None:
    start(who, "hippo")
    ask(who, "hippo", _RUN)
    _becomes_applied(who, "hippo")
    assert query(who, "hippo", "SELECT count(*) FROM run") == ["1"]
    [job] = _made(who, "hippo", "jobs,serviceaccounts,roles,rolebindings")
    name = f"job/{manifests.name(job)}"
    who.kubectl("wait", name, "-n", NAMESPACE, "--for=condition=Complete", "--timeout=60s")


def test_a_failure_is_told_by_line_and_code_and_mended_by_an_edit(who: Administrator) -> None:
    start(who, "lion")
    ask(who, "lion", _FAIL)
    told = f"jsonpath={{.status.conditions[?(@.type=='{_CONDITION}')].reason}}=SQLFailed"
    who.kubectl("wait", *_cluster("lion"), f"--for={told}", "--timeout=60s")
    message = "the statement that ends on line 2 failed: undefined_table (SQLSTATE 42P01)"
    condition = manifests.condition(who.get(*_cluster("lion")), _CONDITION)
    assert (condition["status"], condition["message"]) == ("False", message)
    assert _last_words(who, "lion") == ("failed", "42P01", 2)
    assert "a secret" not in _everything(who, "lion")
    ask(who, "lion", _RUN)
    _becomes_applied(who, "lion")
    assert query(who, "lion", "SELECT count(*) FROM run") == ["1"]


def test_a_server_that_ends_in_the_middle_is_tried_again(who: Administrator) -> None:
    start(who, "zebra")
    ask(who, "zebra", _END_THE_SERVER_ONCE)
    _becomes_applied(who, "zebra")
    assert query(who, "zebra", "SELECT count(*) FROM run") == ["1"]
    [job] = _made(who, "zebra", "jobs")
    assert job["metadata"]["annotations"][_ATTEMPT] == "2"


def _cluster(name: str) -> tuple[str, ...]:
    return (f"postgrescluster/{name}", "-n", NAMESPACE)


def _becomes_applied(who: Administrator, name: str) -> None:
    recorded = f"jsonpath={{.status.databaseInitSQL}}={name}-init-sql"
    who.kubectl("wait", *_cluster(name), f"--for={recorded}", "--timeout=90s")


def _made(who: Administrator, name: str, kinds: str) -> list[Manifest]:
    """Return what was made for a cluster."""
    uid = manifests.uid(who.get(*_cluster(name)))
    found: list[Manifest] = who.get(kinds, "-n", NAMESPACE, "-l", f"{_UID}={uid}")["items"]
    return found


def _last_words(who: Administrator, name: str) -> tuple[Any, ...]:
    """Return what the Job's Pod left as its termination message."""
    [pod] = _made(who, name, "pods")
    [state] = pod["status"]["containerStatuses"]
    words = json.loads(state["state"]["terminated"]["message"])
    return words["result"], words["sqlstate"], words["line"]


def _everything(who: Administrator, name: str) -> str:
    """Return all that is shown to whoever may not read the ConfigMap."""
    kinds = "jobs,pods,events,postgresclusters"
    [pod] = _made(who, name, "pods")
    logs = who.kubectl("logs", "-n", NAMESPACE, manifests.name(pod))
    return logs + who.kubectl("get", kinds, "-n", NAMESPACE, "-o", "json")

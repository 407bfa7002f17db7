"""A Tenant that the hooks serve from their pods, and restarts of these while they work."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from hooks.core import manifests
from hooks.sandbox.metacontroller import SyncError, TooManyRequests
from hooks.sandbox.runner_config import find_kind
from tests.e2e.apiserver.installation import NAMESPACE
from tests.e2e.node.deployment import DEPLOYMENT, PODS, Deployed, await_rollout

_KIND = {"apiVersion": "database.ddupan.top/v1alpha1", "resource": "postgresqltenants"}
_TENANT = ("pgtenant", "orders", "-n", "team-a")
_CALLERS = 4


@pytest.fixture(scope="module", autouse=True)
def _orders(hooks: Deployed) -> Iterator[None]:
    """An Instance and a Tenant that are Ready; gone at the end, with all that they own."""
    who, sample = hooks.administrator, hooks.installation.sample
    who.apply(*sample("postgresqlinstance-minimal"))
    hooks.becomes_ready("pginstance", "shared")
    [tenant] = sample("postgresqltenant-minimal")
    tenant["spec"]["deletionPolicy"] = "Delete"
    who.apply(tenant)
    hooks.becomes_ready(*_TENANT)
    yield
    who.kubectl("delete", *_TENANT, "--timeout=60s")
    who.kubectl("delete", "pginstance", "shared", "--timeout=60s")
    databases = hooks.installation.postgres.sql("SELECT datname FROM pg_database")
    assert ("orders",) not in databases


def test_an_application_logs_in_with_what_is_in_the_secret(hooks: Deployed) -> None:
    secret = hooks.secret("team-a", "shared-orders-postgresql")
    server = hooks.installation.postgres
    with psycopg.connect(
        secret["uri"], hostaddr=server.hostaddr, sslrootcert=str(server.ca_file)
    ) as connection:
        [found] = connection.execute("SELECT current_user, current_database()").fetchall()
    assert found == ("orders", "orders")


def test_what_is_written_is_what_is_read_back(hooks: Deployed) -> None:
    tenant = hooks.administrator.get(*_TENANT)
    ready = manifests.condition(tenant, "Ready")
    assert (tenant["status"]["phase"], ready["status"], ready["observedGeneration"]) == (
        "Ready",
        "True",
        tenant["metadata"]["generation"],
    )


def test_a_rolling_restart_under_load_loses_no_call(hooks: Deployed) -> None:
    who = hooks.administrator
    with _under_load(hooks) as outcomes:
        who.kubectl("rollout", "restart", DEPLOYMENT, "-n", NAMESPACE)
        await_rollout(who)
    assert set(outcomes) == {"synced"}


def test_a_change_while_no_replica_answers_is_made_by_the_next_ones(hooks: Deployed) -> None:
    who = hooks.administrator
    who.kubectl("delete", "pods", *PODS, "--now")
    change = json.dumps({"spec": {"extensions": ["pg_trgm"]}})
    who.kubectl("patch", *_TENANT, "--type=merge", f"--patch={change}")
    await_rollout(who)
    generation = who.get(*_TENANT)["metadata"]["generation"]
    observed = "jsonpath={.status.conditions[0].observedGeneration}"
    who.kubectl("wait", *_TENANT, f"--for={observed}={generation}", "--timeout=60s")
    hooks.becomes_ready(*_TENANT)
    found = hooks.installation.postgres.sql("SELECT extname FROM pg_extension", database="orders")
    assert ("pg_trgm",) in found


@contextmanager
def _under_load(hooks: Deployed) -> Iterator[list[str]]:
    """Sync the Tenant again and again, in several threads; yields how each sync ended."""
    outcomes: list[str] = []
    over = threading.Event()
    arguments = (hooks, over, outcomes)
    threads = [threading.Thread(target=_sync, args=arguments) for _ in range(_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield outcomes
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _sync(hooks: Deployed, over: threading.Event, outcomes: list[str]) -> None:
    runner, kind = hooks.runner(), find_kind(hooks.cluster.kinds, _KIND)
    while not over.is_set():
        try:
            runner.sync(kind, "team-a", "orders")
            outcomes.append("synced")
        except (SyncError, TooManyRequests) as error:
            outcomes.append(str(error))

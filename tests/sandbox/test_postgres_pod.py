"""A Pod like PGO's, whose psql reaches a real server that can fail over and be killed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hooks.core import manifests
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.kinds import POD
from hooks.sandbox.postgres_pod import MemberServer, PostgresPod, Where
from tests.sandbox.test_exec import Ended, Pods, ended, failure
from tests.sandbox.widgets import BORN, NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority

LABEL = "postgres-operator.crunchydata.com"
SUCCESS: Manifest = {"metadata": {}, "status": "Success"}
PSQL = ("psql", "-XAt", "--file=-")


@pytest.fixture(scope="module")
def cluster() -> MemoryCluster:
    return MemoryCluster([], lambda: NOW)


@pytest.fixture(scope="module")
def server(cluster: MemoryCluster, authority: Authority) -> Iterator[ApiServer]:
    certificate = authority.issue("kubernetes", ips=["127.0.0.1"])
    with ApiServer(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={"a-token": "admin"}
    ) as serving:
        yield serving


@pytest.fixture(scope="module")
def primary(
    server: ApiServer,
    cluster: MemoryCluster,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PostgresPod]:
    where = Where(cluster, server.exec, lambda: BORN)
    directory = tmp_path_factory.mktemp("primary")
    with PostgresPod.start(where, directory, authority, owner=("default", "hippo")) as pod:
        yield pod


@pytest.fixture
def pods(server: ApiServer, cluster: MemoryCluster, tmp_path: Path) -> Pods:
    return Pods(cluster, server, tmp_path)


def asked(pods: Pods, pod: PostgresPod, sql: str) -> Ended:
    return pods.ran(*PSQL, stdin=sql.encode(), pod=pod.name, container="database")


def seen(cluster: MemoryCluster, pod: PostgresPod) -> Manifest:
    found = cluster.get(POD, "default", pod.name)
    assert found is not None
    return found


def role_of(cluster: MemoryCluster, pod: PostgresPod) -> tuple[str, str]:
    """Return what Patroni's annotation and PGO's label say."""
    found = seen(cluster, pod)
    member = json.loads(manifests.annotations(found)["status"])
    return member["role"], found["metadata"]["labels"][f"{LABEL}/role"]


def test_the_pod_looks_as_pgo_and_patroni_make_it(
    cluster: MemoryCluster, primary: PostgresPod
) -> None:
    pod = seen(cluster, primary)
    labels = pod["metadata"]["labels"]

    assert primary.name == "hippo-instance1-abcd-0"
    assert labels == {
        f"{LABEL}/cluster": "hippo",
        f"{LABEL}/data": "postgres",
        f"{LABEL}/instance": "hippo-instance1-abcd",
        f"{LABEL}/instance-set": "instance1",
        f"{LABEL}/patroni": "hippo-ha",
        f"{LABEL}/role": "master",
        "statefulset.kubernetes.io/pod-name": "hippo-instance1-abcd-0",
    }
    assert role_of(cluster, primary) == ("primary", "master")
    (status,) = pod["status"]["containerStatuses"]
    assert (status["name"], status["state"]) == ("database", {"running": {"startedAt": BORN}})


def test_psql_is_the_superuser_of_the_database_postgres(pods: Pods, primary: PostgresPod) -> None:
    question = "SELECT current_user, current_database(), usesuper, inet_client_addr() IS NULL"
    question += " FROM pg_user WHERE usename = current_user"

    assert asked(pods, primary, question) == Ended(b"postgres|postgres|t|t\n", b"", SUCCESS)


def test_a_failed_script_has_psqls_exit_code(pods: Pods, primary: PostgresPod) -> None:
    script = r"\set ON_ERROR_STOP 1" + "\nSELECT 1/0;\n"

    found = asked(pods, primary, script)

    assert (found.status, b"division by zero" in found.stderr) == (failure(3), True)


def test_nobody_else_reaches_the_socket(primary: PostgresPod) -> None:
    assert primary.server.socket_directory.stat().st_mode & 0o077 == 0


def test_after_a_failover_the_other_member_takes_the_writes(
    pods: Pods,
    cluster: MemoryCluster,
    server: ApiServer,
    primary: PostgresPod,
    authority: Authority,
    tmp_path: Path,
) -> None:
    where = Where(cluster, server.exec, lambda: BORN)
    standby = MemberServer.start(tmp_path, authority)
    standby.demote()
    owner, instance = ("default", "hippo"), "instance1-wxyz"
    with PostgresPod(where, standby, owner=owner, instance=instance, role="replica") as replica:
        before = asked(pods, replica, "CREATE TABLE t ()")

        primary.failover(to=replica)

        assert b"read-only transaction" in before.stderr
        assert b"read-only transaction" in asked(pods, primary, "CREATE TABLE t ()").stderr
        assert asked(pods, replica, "CREATE TABLE t ()") == Ended(b"CREATE TABLE\n", b"", SUCCESS)
        assert role_of(cluster, primary) == ("replica", "replica")
        assert role_of(cluster, replica) == ("primary", "master")
        replica.failover(to=primary)


def test_a_killed_container_takes_its_server_along_and_comes_back(
    pods: Pods, cluster: MemoryCluster, primary: PostgresPod
) -> None:
    asked(pods, primary, "CREATE TABLE kept (); CREATE TABLE held ();")
    session = pods.opened(*PSQL, pod=primary.name, container="database")
    session.write_stdin(b"BEGIN; DROP TABLE held;\n\\echo working\nSELECT pg_sleep(60);\n")  # type: ignore[no-untyped-call]  # the client is half typed
    lines = [session.readline_stdout(timeout=20) for _ in range(3)]  # type: ignore[no-untyped-call]  # as above

    primary.kill()

    assert lines[-1] == b"working"
    assert ended(session) == Ended(status=failure(137))
    (status,) = seen(cluster, primary)["status"]["containerStatuses"]
    assert status["state"] == {
        "terminated": {"exitCode": 137, "reason": "Error", "finishedAt": BORN}
    }
    assert "container not found" in pods.refused("true", pod=primary.name, container="database")

    primary.run()

    tables = "SELECT relname FROM pg_class WHERE relname IN ('kept', 'held') ORDER BY 1"
    assert asked(pods, primary, tables) == Ended(b"held\nkept\n", b"", SUCCESS)

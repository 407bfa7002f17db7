"""The Job's program as a real process with the rights of its account, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from hooks.core import manifests
from hooks.core.contract import Response
from hooks.core.deadline import Deadline
from hooks.core.manifests import Manifest
from hooks.effects import kubernetes
from hooks.initsql.hooks import InitSqlHooks
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.authorization import by_roles
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import CONFIG_MAP, MemoryCluster
from hooks.sandbox.jobs import Jobs
from hooks.sandbox.kinds import (
    JOB,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    ApiError,
    Kind,
)
from hooks.sandbox.postgres_pod import PostgresPod, Where
from tests.initsql.builders import CONFIG, cluster, config_map, request
from tests.initsql.calls import applied, services

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds/init-sql/postgresclusters.postgres-operator.crunchydata.com.yaml"
CLUSTERS = Kind(
    "postgres-operator.crunchydata.com/v1beta1",
    "PostgresCluster",
    "postgresclusters",
    namespaced=True,
)
KINDS = {kind.kind: kind for kind in (JOB, SERVICE_ACCOUNT, ROLE, ROLE_BINDING)}
NAMESPACE = "team-a"
BORN = "2026-01-01T00:00:00Z"


@dataclass
class World:
    """A cluster with one PostgresCluster, whose hook and Jobs a test drives by steps."""

    cluster: MemoryCluster
    api: ApiServer
    jobs: Jobs
    member: PostgresPod
    kubeconfig: Path
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def write(self, sql: str) -> None:
        """Put the SQL into the ConfigMap."""
        with suppress(ApiError):
            self.cluster.delete(CONFIG_MAP, NAMESPACE, "seed")
        self.cluster.create(config_map(**{"init.sql": sql}))

    def sync(self) -> Response:
        """Call the hook with what is there, and do as it says."""
        parent = self.parent
        owned = tuple(
            found for kind in KINDS.values() for found in self.cluster.list(kind, NAMESPACE)
        )
        pods = self.cluster.list(POD, NAMESPACE)
        api = kubernetes.connect(self.kubeconfig).bind(Deadline())
        answer = InitSqlHooks(CONFIG, lambda _action, _outcome: None).sync(
            request(parent, *pods, children=applied(owned)),
            replace(services(), kubernetes=api, now=self.now),
        )
        wanted = {(child["kind"], manifests.name(child)) for child in answer.children}
        for found in owned:
            if (found["kind"], manifests.name(found)) not in wanted:
                self.cluster.delete(KINDS[found["kind"]], NAMESPACE, manifests.name(found))
        for child in answer.children:
            with suppress(ApiError):  # it is there
                self.cluster.create(child)
        self.cluster.replace_status(parent | {"status": answer.status})
        return answer

    def run(self) -> Manifest:
        """Let the hook ask for a Job, run it, and return what is told then."""
        self.sync()
        self.jobs.settle()
        return self.told()

    def told(self) -> Manifest:
        """Return the reason and message, and the record if there is one."""
        status = self.sync().status
        condition = status["conditions"][0]
        record = {"record": status["databaseInitSQL"]} if "databaseInitSQL" in status else {}
        return {"reason": condition["reason"], "message": condition["message"], **record}

    @property
    def parent(self) -> Manifest:
        found = self.cluster.get(CLUSTERS, NAMESPACE, "hippo")
        assert found is not None
        return found

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        return self.member.server.sql(statement.encode())


@pytest.fixture(scope="module")
def shared(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[MemoryCluster, ApiServer, PostgresPod]]:
    memory = MemoryCluster(
        [yaml.safe_load(CRD.read_text())],
        lambda: datetime(2026, 1, 1, tzinfo=UTC),
        namespaces=[NAMESPACE],
    )
    certificate = authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"])
    with ApiServer(
        memory, certificate=certificate, ca_file=authority.ca_file, tokens={"hooks": "hooks"}
    ) as api:
        where = Where(memory, api.exec, lambda: BORN)
        directory = tmp_path_factory.mktemp("member")
        with PostgresPod.start(where, directory, authority, owner=(NAMESPACE, "hippo")) as member:
            yield memory, api, member


@pytest.fixture
def world(shared: tuple[MemoryCluster, ApiServer, PostgresPod], tmp_path: Path) -> Iterator[World]:
    memory, api, member = shared
    api.api.allow = by_roles(memory)
    jobs = Jobs(memory, api, tmp_path, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    memory.create(cluster(metadata={"uid": None, "generation": None}))
    member.server.sql(b"DROP TABLE IF EXISTS t")
    yield World(memory, api, jobs, member, api.kubeconfig(tmp_path / "hooks", "hooks"))
    jobs.stop()
    api.exec.faults = lambda _request: None
    member.say(role="primary")
    for kind in (CLUSTERS, *KINDS.values(), CONFIG_MAP, POD):
        for found in memory.list(kind, NAMESPACE):
            if manifests.name(found) != member.name:
                with suppress(ApiError):
                    memory.delete(kind, NAMESPACE, manifests.name(found))


def test_sql_is_applied_once_and_the_record_is_the_config_maps_name(world: World) -> None:
    world.write("CREATE TABLE t (n int); INSERT INTO t VALUES (1);")
    applied_once = {"reason": "Applied", "message": "the SQL was applied", "record": "seed"}
    assert world.run() == applied_once
    assert world.run() == applied_once
    assert world.rows("SELECT n FROM t") == [(1,)]
    left = {kind: len(world.cluster.list(KINDS[kind], NAMESPACE)) for kind in KINDS}
    assert left == {"Job": 1, "ServiceAccount": 0, "Role": 0, "RoleBinding": 0}


def test_sql_that_fails_is_told_by_line_and_code_and_tried_again_when_it_is_mended(
    world: World,
) -> None:
    world.write("CREATE TABLE t (n int);\nINSERT INTO t VALUES ('s3cret');")
    assert world.run() == {
        "reason": "SQLFailed",
        "message": "the statement that ends on line 2 failed: invalid_text_representation"
        " (SQLSTATE 22P02)",
    }
    world.write("INSERT INTO t VALUES (2);")
    assert world.run()["reason"] == "Applied"
    assert world.rows("SELECT n FROM t") == [(2,)]
    everything = [*world.cluster.list(JOB, NAMESPACE), *world.cluster.list(POD, NAMESPACE)]
    assert "s3cret" not in json.dumps([everything, world.parent]) + world.jobs.logs()


def test_an_outcome_that_is_unknown_is_said_so_and_the_sql_runs_again(world: World) -> None:
    world.write("CREATE TABLE IF NOT EXISTS t (n int); INSERT INTO t VALUES (1);")
    world.api.exec.faults = lambda _request: "cut_after"
    assert world.run() == {
        "reason": "OutcomeUnknown",
        "message": "the connection was lost before the end was seen: all of the SQL may have"
        " been applied; it is run again",
    }
    world.api.exec.faults = lambda _request: None
    world.now += timedelta(seconds=10)
    assert world.run()["reason"] == "Applied"
    assert world.rows("SELECT n FROM t") == [(1,), (1,)]


def test_a_primary_that_moved_after_the_decision_gets_nothing(world: World) -> None:
    world.write("CREATE TABLE t (n int);")
    world.sync()
    world.member.say(role="replica")
    world.jobs.settle()
    world.member.say(role="primary")
    assert world.told() == {
        "reason": "NotExecuted",
        "message": "PostgresCluster: no running instance takes writes",
    }
    assert world.rows("SELECT to_regclass('t')") == [(None,)]


def test_sql_that_is_changed_after_the_decision_is_not_run(world: World) -> None:
    world.write("CREATE TABLE t (n int);")
    world.sync()
    world.write("CREATE TABLE t (n text);")
    world.jobs.settle()
    assert world.rows("SELECT to_regclass('t')") == [(None,)]
    assert world.run()["reason"] == "Applied"
    assert world.rows("SELECT pg_typeof(n)::text FROM t RIGHT JOIN (SELECT) x ON true") == [
        ("text",)
    ]


def test_a_field_that_is_taken_away_and_added_back_runs_the_sql_again(world: World) -> None:
    world.write("CREATE TABLE IF NOT EXISTS t (n int); INSERT INTO t VALUES (1);")
    world.run()
    spec = world.parent["spec"]
    world.cluster.replace(world.parent | {"spec": {}})
    assert world.sync().status == {"observedGeneration": 2}
    world.cluster.replace(world.parent | {"spec": spec})
    assert world.run()["record"] == "seed"
    assert world.rows("SELECT n FROM t") == [(1,), (1,)]


def test_a_status_that_was_lost_is_made_again_without_running_anything(world: World) -> None:
    world.write("CREATE TABLE t AS SELECT 1 AS n;")
    world.run()
    world.cluster.replace_status(world.parent | {"status": {}})
    assert world.run()["record"] == "seed"
    assert world.rows("SELECT n FROM t") == [(1,)]

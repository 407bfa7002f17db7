"""On a cluster that PGO has there is no fight, nothing of PGO's is lost, and all comes to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hooks.core import manifests
from hooks.sandbox.kinds import JOB
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER
from hooks.sandbox.postgres_pod import MemberServer
from hooks.sandbox.shipped import crds
from tests.sandbox import pgo
from tests.sandbox.init_sql import HIPPO, MODE_LABEL, SOURCE, TEAM, InitSqlWorld
from tests.sandbox.pgo import FINALIZER, MEMORY, Pgo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority

INSERT = "CREATE TABLE IF NOT EXISTS applied (n int);\nINSERT INTO applied VALUES (1);\n"


@pytest.fixture(scope="module")
def server(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MemberServer]:
    with MemberServer.start(tmp_path_factory.mktemp("primary"), authority) as member:
        yield member


@pytest.fixture
def world(authority: Authority, server: MemberServer, tmp_path: Path) -> Iterator[InitSqlWorld]:
    others = [one for one in crds() if one["spec"]["group"] != POSTGRES_CLUSTER.group]
    made = InitSqlWorld(authority, tmp_path, "decorator", [*others, pgo.crd()])
    made.member(server)
    yield made
    made.close()
    server.sql("DROP TABLE IF EXISTS applied")


@pytest.fixture
def operator(world: InitSqlWorld, server: MemberServer) -> Iterator[Pgo]:
    """PGO, which reconciles after each change, so in between all that ours does."""
    made = Pgo(world.cluster, lambda: _run(server))
    unsubscribe = made.follow()
    yield made
    unsubscribe()


def _run(server: MemberServer) -> None:
    for statement in INSERT.splitlines():
        server.sql(statement.encode())


def rows(server: MemberServer) -> int:
    return int(str(server.sql("SELECT count(*) FROM applied")[0][0]))


def status(world: InitSqlWorld) -> Manifest:
    found: Manifest = world.hippo()["status"]
    return found


@pytest.mark.usefixtures("operator")
def test_asked_for_by_annotation_it_is_applied_and_no_field_of_pgos_moves(
    world: InitSqlWorld, server: MemberServer
) -> None:
    world.ask(INSERT)

    world.settle()

    assert (world.record(), world.told()[0], rows(server)) == (SOURCE, "Applied", 1)
    assert status(world) == MEMORY | {"observedGeneration": 1}
    assert world.hippo()["metadata"]["finalizers"] == [FINALIZER]
    assert world.runner.statistics.of(TEAM, HIPPO).get("status") is None


def test_both_come_to_rest(world: InitSqlWorld, operator: Pgo) -> None:
    world.ask(INSERT)
    world.settle()
    before = (world.cluster.resource_version, operator.reconciles)

    world.runner.resync()
    world.settle(within=3600)

    assert (world.cluster.resource_version, operator.reconciles) == before


def test_the_jobs_of_pgo_keep_their_owner(world: InitSqlWorld, operator: Pgo) -> None:
    world.ask(INSERT)
    backup = operator.backup(world.hippo())

    world.settle()

    assert world.cluster.get(JOB, TEAM, manifests.name(backup)) == backup
    assert len(world.left(JOB)) == 2


@pytest.mark.usefixtures("operator")
def test_the_field_is_left_to_pgo_and_runs_once(world: InitSqlWorld, server: MemberServer) -> None:
    world.ask(INSERT, field=True)

    world.settle()

    assert (rows(server), world.left(JOB)) == (1, [])
    assert status(world) == MEMORY | {"observedGeneration": 1, "databaseInitSQL": SOURCE}
    assert world.told()[0] == "DeferredToOperator"


def test_without_pgo_the_decorator_writes_the_field_and_keeps_what_others_wrote(
    world: InitSqlWorld, server: MemberServer
) -> None:
    asked = world.ask(INSERT, field=True)
    world.cluster.replace_status(asked | {"status": MEMORY})

    world.settle()

    assert status(world) == MEMORY | {"databaseInitSQL": SOURCE}
    assert rows(server) == 1


def test_a_status_that_others_write_in_between_is_kept(
    world: InitSqlWorld, server: MemberServer
) -> None:
    world.ask(INSERT, field=True)
    world.runner.settle()
    world.runner.faults.inject("stale_parent")
    world.cluster.replace_status(world.hippo() | {"status": MEMORY})

    world.settle()

    assert status(world) == MEMORY | {"databaseInitSQL": SOURCE}
    assert rows(server) == 1


def test_a_status_that_pgo_writes_late_takes_nothing_of_ours_along(
    world: InitSqlWorld, server: MemberServer
) -> None:
    operator = Pgo(world.cluster)
    world.ask(INSERT)
    operator.reconcile(world.hippo())
    old = operator.observe(TEAM, HIPPO)
    world.settle()

    operator.reconcile(old)
    world.settle(within=3600)

    assert (world.record(), rows(server)) == (SOURCE, 1)
    assert status(world) == MEMORY | {"observedGeneration": 1}


@pytest.mark.usefixtures("operator")
def test_a_cluster_without_our_label_is_never_asked_about(world: InitSqlWorld) -> None:
    world.ask(INSERT)
    parent = world.hippo()
    world.change(metadata=parent["metadata"] | {"labels": {}})
    before = world.hippo()

    world.settle(within=3600)

    assert world.hippo() == before
    assert world.left(JOB) == []
    counts = world.runner.statistics.of(TEAM, HIPPO)
    assert {deed for deed in counts if deed != "customize"} == set()


@pytest.mark.usefixtures("operator")
def test_the_label_of_the_wrong_controller_changes_no_status(world: InitSqlWorld) -> None:
    world.ask(INSERT)
    world.settle()
    parent = world.hippo()
    labels = {MODE_LABEL: "composite"}
    world.change(metadata=parent["metadata"] | {"labels": labels})

    world.settle(within=120)

    assert status(world) == MEMORY | {"observedGeneration": 1}

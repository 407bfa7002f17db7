"""The step, driven directly: every rule of it."""

from __future__ import annotations

from copy import deepcopy

import pytest

from hooks.core.errors import Denied
from hooks.core.manifests import Manifest
from hooks.effects.ports.pods import ConfigMap, NotFound, ScriptFailed
from hooks.initsql.cluster import ClusterSpec, ClusterStatus, DatabaseInitSQL, PostgresCluster
from hooks.initsql.instances import ObservedInstances
from hooks.initsql.reconciler import MissingKey, Reconciler
from tests.initsql.builders import NAMESPACE, SQL, pod
from tests.initsql.fakes import MemoryConfigMaps, MemoryPods

SEED = DatabaseInitSQL("seed", "init.sql")


class World:
    def __init__(self) -> None:
        self.config_maps = MemoryConfigMaps(NAMESPACE, {"seed": ConfigMap({"init.sql": SQL})})
        self.pods = MemoryPods()

    def reconcile(
        self,
        *,
        source: DatabaseInitSQL | None = SEED,
        status: str | None = None,
        instances: ObservedInstances | None = None,
        pods: tuple[Manifest, ...] = (),
    ) -> PostgresCluster:
        cluster = PostgresCluster(NAMESPACE, "hippo", ClusterSpec(source), ClusterStatus(status))
        reconciler = Reconciler(self.config_maps, self.pods)
        reconciler.reconcile_database_init_sql(cluster, instances or ObservedInstances.of(pods))
        return cluster


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("status", [None, "seed"])
def test_without_the_field_the_status_is_cleared_and_nothing_runs(
    world: World, status: str | None
) -> None:
    cluster = world.reconcile(source=None, status=status, pods=(pod(),))
    assert (cluster.status.database_init_sql, world.pods.ran) == (None, [])


@pytest.mark.parametrize("status", ["seed", "another", ""])
def test_what_was_applied_is_left_alone_whatever_it_says(world: World, status: str) -> None:
    world.config_maps.held.clear()
    cluster = world.reconcile(status=status, pods=(pod(),))
    assert (cluster.status.database_init_sql, world.pods.ran) == (status, [])


def test_the_sql_runs_on_the_primary_and_the_name_of_its_config_map_is_kept(world: World) -> None:
    cluster = world.reconcile(pods=(pod("replica", instance="a"), pod(instance="b")))
    assert cluster.status.database_init_sql == "seed"
    assert world.pods.ran == [(NAMESPACE, "b-0", "database", SQL)]


def test_an_empty_text_is_run_as_it_is(world: World) -> None:
    world.config_maps.held["seed"] = ConfigMap({"init.sql": ""})
    assert world.reconcile(pods=(pod(),)).status.database_init_sql == "seed"
    assert world.pods.ran == [(NAMESPACE, "hippo-instance1-abcd-0", "database", "")]


@pytest.mark.parametrize("pods", [(), (pod(),)])
@pytest.mark.parametrize(
    "error",
    [
        NotFound("Kubernetes", 'configmaps "seed" not found', code="404"),
        Denied("Kubernetes", "the hooks may not get configmaps", code="403"),
    ],
)
def test_a_config_map_that_cannot_be_read_surfaces_unchanged(
    world: World, error: Denied | NotFound, pods: tuple[Manifest, ...]
) -> None:
    world.config_maps.held["seed"] = error
    with pytest.raises(type(error)) as caught:
        world.reconcile(pods=pods)
    assert caught.value is error
    assert world.pods.ran == []


@pytest.mark.parametrize(
    ("held", "message"),
    [
        pytest.param(
            ConfigMap({"other.sql": SQL, "more.sql": SQL}),
            "ConfigMap did not contain expected key: init.sql (it has more.sql, other.sql)",
            id="other-keys",
        ),
        pytest.param(
            ConfigMap({f"{n:04}.sql": SQL for n in range(5000)}),
            "ConfigMap did not contain expected key: init.sql (it has 0000.sql, 0001.sql,"
            " 0002.sql, 0003.sql, 0004.sql, 0005.sql, 0006.sql, 0007.sql, 0008.sql, 0009.sql"
            " and 4990 more)",
            id="more-keys-than-a-status-may-name",
        ),
        pytest.param(
            ConfigMap({}), "ConfigMap did not contain expected key: init.sql", id="nothing"
        ),
        pytest.param(
            ConfigMap({}, frozenset({"init.sql"})),
            "ConfigMap did not contain expected key: init.sql"
            " (it is in binaryData: the file is not UTF-8 text)",
            id="binary",
        ),
    ],
)
def test_a_key_that_is_missing_is_named(world: World, held: ConfigMap, message: str) -> None:
    world.config_maps.held["seed"] = held
    with pytest.raises(MissingKey) as caught:
        world.reconcile(pods=(pod(),))
    assert (str(caught.value), world.pods.ran) == (message, [])


TERMINATING = {"deletionTimestamp": "2026-03-01T10:00:00Z"}
WAITING = {"containerStatuses": [{"name": "database", "state": {"waiting": {}}}]}


@pytest.mark.parametrize(
    "instances",
    [
        pytest.param(None, id="not-observed"),
        pytest.param((), id="none"),
        pytest.param((pod("replica"),), id="replica"),
        pytest.param((pod("standby_leader"),), id="standby-leader"),
        pytest.param((pod(metadata={"annotations": {"status": "{"}}),), id="broken-json"),
        pytest.param((pod(metadata={"annotations": {"status": "[]"}}),), id="no-object"),
        pytest.param((pod(metadata={"annotations": {"status": '{"role":["x"]}'}}),), id="no-text"),
        pytest.param((pod(metadata={"annotations": None}),), id="no-annotation"),
        pytest.param((pod(metadata=TERMINATING),), id="terminating"),
        pytest.param((pod(status=WAITING),), id="waiting"),
        pytest.param((pod(status={"containerStatuses": None}),), id="no-containers"),
        pytest.param((pod(suffix="0"), pod(suffix="1")), id="two-pods-of-one-instance"),
        pytest.param((pod(metadata={"labels": None}),), id="no-labels"),
    ],
)
def test_without_a_writable_instance_it_returns_quietly(
    world: World, instances: tuple[Manifest, ...] | None
) -> None:
    cluster = PostgresCluster(NAMESPACE, "hippo", ClusterSpec(SEED))
    observed = None if instances is None else ObservedInstances.of(instances)
    Reconciler(world.config_maps, world.pods).reconcile_database_init_sql(cluster, observed)
    assert (cluster.status.database_init_sql, world.pods.ran) == (None, [])


@pytest.mark.parametrize("member", ['{"role":"master"}', '{ "state": "x", "role" : "primary" }'])
def test_patronis_words_of_any_version_are_understood(world: World, member: str) -> None:
    world.reconcile(pods=(pod(metadata={"annotations": {"status": member}}),))
    assert len(world.pods.ran) == 1


def test_a_database_container_among_the_init_containers_counts(world: World) -> None:
    statuses = [{"name": "database", "state": {"running": {}}}]
    status = {"containerStatuses": None, "initContainerStatuses": statuses}
    assert world.reconcile(pods=(pod(status=status),)).status.database_init_sql == "seed"


def test_a_failure_is_raised_and_the_status_stays_unset_so_that_it_runs_again(world: World) -> None:
    world.pods.error = ScriptFailed("PostgreSQL", "the statement that ends on line 1 failed")
    cluster = PostgresCluster(NAMESPACE, "hippo", ClusterSpec(SEED))
    reconciler = Reconciler(world.config_maps, world.pods)
    with pytest.raises(ScriptFailed):
        reconciler.reconcile_database_init_sql(cluster, ObservedInstances.of([pod()]))
    assert cluster.status.database_init_sql is None
    world.pods.error = None
    reconciler.reconcile_database_init_sql(cluster, ObservedInstances.of([pod()]))
    assert cluster.status.database_init_sql == "seed"


def test_after_the_field_was_taken_away_and_added_back_the_sql_runs_again(world: World) -> None:
    cluster = world.reconcile(pods=(pod(),))
    reconciler, instances = Reconciler(world.config_maps, world.pods), ObservedInstances.of([pod()])
    cluster.spec.database_init_sql = None
    reconciler.reconcile_database_init_sql(cluster, instances)
    cluster.spec.database_init_sql = SEED
    reconciler.reconcile_database_init_sql(cluster, instances)
    assert [sql for *_, sql in world.pods.ran] == [SQL, SQL]


@pytest.mark.parametrize("copy", [PostgresCluster.deep_copy, deepcopy])
def test_a_copy_of_a_cluster_shares_nothing_with_it(copy: object) -> None:
    original = PostgresCluster(
        NAMESPACE, "hippo", ClusterSpec(DatabaseInitSQL("seed", "init.sql")), ClusterStatus("seed")
    )
    twin = copy(original)  # type: ignore[operator]  # either way to copy
    assert twin == original
    twin.spec.database_init_sql.name = "other"
    twin.status.database_init_sql = None
    assert original == PostgresCluster(
        NAMESPACE, "hippo", ClusterSpec(DatabaseInitSQL("seed", "init.sql")), ClusterStatus("seed")
    )

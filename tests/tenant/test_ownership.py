"""A name is no proof: what was retained, moved, dropped or made by others is never taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg import sql

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.builders import merged
from tests.tenant.test_projection import CONFLICT, NOTHING, READY, Scene
from tests.tenant.world import INSTANCES, NAMESPACE, TENANTS


class Claims(Scene):
    """A world in which names are disputed."""

    def born(self, policy: str = "Retain") -> Manifest:
        self.make_tenant(deletionPolicy=policy)
        return self.settle()

    def on_server(self, statement: str) -> None:
        self.postgres.sql(sql.SQL(statement).format(sql.Identifier(self.name)))

    def move_endpoint(self, database: str) -> None:
        """Let the Instance name another administrative database, and be Ready there."""
        moved = {"spec": {"endpoint": {"database": database}}}
        self.cluster.replace(merged(self.get(INSTANCES, "shared"), moved))
        self.sync_instance()
        assert manifests.condition(self.get(INSTANCES, "shared"), "Ready")["status"] == "True"

    def recreate_instance(self) -> None:
        """Delete the Instance past its finalizer and create it again: another UID."""
        live = self.get(INSTANCES, "shared")
        live["metadata"]["finalizers"] = []
        self.cluster.replace(live)
        self.cluster.delete(INSTANCES, None, "shared")
        self.make_instance()

    def state(self) -> list[tuple[object, ...]]:
        query = "SELECT state FROM tenant_registry.tenant WHERE name = %s"
        return self.postgres.sql(query, [self.name])

    def lose_status(self) -> None:
        self.cluster.replace_status({**self.tenant(), "status": {}})


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Claims]:
    with Claims(postgres, openbao, authority, tmp_path) as made:
        assert isinstance(made, Claims)
        made.make_instance()
        yield made


@pytest.fixture
def another(
    world: Claims, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Claims]:
    """Another cluster on the same servers, in which objects have the same names."""
    directory: Path = tmp_path_factory.mktemp("another")
    with Claims(world.postgres, world.openbao, authority, directory) as made:
        assert isinstance(made, Claims)
        made.name = world.name
        made.make_instance()
        yield made


@pytest.fixture
def empty_database(world: Claims) -> Iterator[str]:
    """A database of the admin's, in which there is no registry yet."""
    name = f"{world.name}_admin"
    names = sql.Identifier(name), sql.Identifier(world.postgres.admin.name)
    world.postgres.sql(sql.SQL("CREATE DATABASE {} OWNER {}").format(*names))
    yield name
    world.postgres.sql(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(names[0]))


# The same name again


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_what_was_retained_stays_untouched_by_a_tenant_of_the_same_name(
    world: Claims, policy: str
) -> None:
    world.born("Retain")
    world.delete()
    world.settle()
    before = world.holdings()
    assert world.state() == [("unmanaged",)]
    world.born(policy)
    assert (world.verdict(), world.cluster.list(EXTERNAL_SECRET)) == (CONFLICT, [])
    assert world.holdings() == before
    world.delete()
    world.settle()
    assert world.cluster.get(TENANTS, NAMESPACE, world.name) is None
    assert world.holdings() == before


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_the_second_of_two_clusters_takes_nothing_and_drops_nothing(
    world: Claims, another: Claims, policy: str
) -> None:
    world.born()
    before = world.holdings()
    another.born(policy)
    assert (another.verdict(), another.cluster.list(EXTERNAL_SECRET)) == (CONFLICT, [])
    another.delete()
    another.settle()
    assert another.cluster.get(TENANTS, NAMESPACE, another.name) is None
    another.wait(3600)
    another.sync_instance()
    assert world.holdings() == before
    world.settle()
    assert world.verdict() == READY


@pytest.mark.parametrize("own", ["registry", "one registry"])
def test_two_instances_on_one_server_dispute_a_name(
    world: Claims, own: str, empty_database: str
) -> None:
    world.born()
    before = world.holdings()
    world.make_instance(name="second")
    if own == "registry":
        moved = {"spec": {"endpoint": {"database": empty_database}}}
        world.cluster.replace(merged(world.get(INSTANCES, "second"), moved))
        world.sync_instance("second")
    loser = f"{world.name}-b"
    names = {"database": world.name, "loginRole": world.name}
    world.make_tenant(loser, instanceRef="second", deletionPolicy="Delete", **names)
    world.settle(loser)
    ready = world.ready(loser)
    assert (ready["status"], ready["reason"]) == CONFLICT
    world.delete(loser)
    world.settle(loser)
    assert world.cluster.get(TENANTS, NAMESPACE, loser) is None
    assert world.holdings() == before


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(("CREATE ROLE {}",), id="role"),
        pytest.param(("CREATE DATABASE {}",), id="database"),
        pytest.param(("CREATE ROLE {} LOGIN", "CREATE DATABASE {0} OWNER {0}"), id="both"),
    ],
)
def test_what_exists_without_a_row_is_never_adopted(
    world: Claims, statements: tuple[str, ...]
) -> None:
    for statement in statements:
        world.on_server(statement)
    before = world.holdings()
    world.born("Delete")
    assert (world.verdict(), world.holdings()) == (CONFLICT, before)
    world.delete()
    world.settle()
    assert world.cluster.get(TENANTS, NAMESPACE, world.name) is None
    assert world.holdings() == before


@pytest.mark.parametrize(
    "owner", [{}, {"tenant-uid": "somebody-else"}], ids=["nobody's", "another's"]
)
def test_a_foreign_credential_is_not_overwritten(world: Claims, owner: dict[str, str]) -> None:
    world.put(username="theirs", password="theirs")
    if owner:
        world.mark_kv(**owner)
    before = world.holdings()
    world.born("Delete")
    assert (world.verdict(), world.holdings()) == (CONFLICT, before)
    world.delete()
    world.settle()
    assert world.cluster.get(TENANTS, NAMESPACE, world.name) is None
    assert world.holdings() == before


# What moved


def _instance_edited(world: Claims, _empty: str) -> None:
    world.make_instance(name="second")
    changed = merged(world.tenant(), {"spec": {"instanceRef": "second"}})
    world.cluster.force(changed)


def _instance_with_another_registry(world: Claims, empty: str) -> None:
    world.make_instance(name="second")
    moved = {"spec": {"endpoint": {"database": empty}}}
    world.cluster.replace(merged(world.get(INSTANCES, "second"), moved))
    world.sync_instance("second")
    world.cluster.force(merged(world.tenant(), {"spec": {"instanceRef": "second"}}))


@pytest.mark.parametrize("edit", [_instance_edited, _instance_with_another_registry])
@pytest.mark.parametrize("lost", ["nothing", "status"])
def test_another_instance_ref_is_an_immutable_field_and_heals(
    world: Claims, edit: Callable[[Claims, str], None], lost: str, empty_database: str
) -> None:
    world.born()
    before, child = world.holdings(), world.child()
    edit(world, empty_database)
    if lost == "status":
        world.lose_status()
    for _ in range(2):
        world.sync()
    assert (world.verdict(), world.holdings()) == (("False", "ImmutableField"), before)
    assert world.child() == child
    world.cluster.force(merged(world.tenant(), {"spec": {"instanceRef": "shared"}}))
    world.settle()
    assert (world.verdict(), world.holdings()) == (READY, before)


@pytest.mark.parametrize("lost", ["nothing", "status"])
def test_an_instance_made_again_inherits_nothing(world: Claims, lost: str) -> None:
    world.born("Delete")
    before, child = world.holdings(), world.child()
    world.recreate_instance()
    if lost == "status":
        world.lose_status()
    for _ in range(2):
        world.sync()
    assert (world.verdict(), world.holdings(), world.child()) == (CONFLICT, before, child)
    world.delete()
    for _ in range(4):
        assert world.sync().finalized is False
    assert (world.verdict(), world.holdings()) == (CONFLICT, before)


@pytest.mark.parametrize("lost", ["nothing", "status"])
def test_an_endpoint_with_an_empty_registry_makes_nothing(
    world: Claims, lost: str, empty_database: str
) -> None:
    world.born("Delete")
    before, child = world.holdings(), world.child()
    world.move_endpoint(empty_database)
    if lost == "status":
        world.lose_status()
    for _ in range(2):
        world.sync()
    assert (world.verdict(), world.holdings(), world.child()) == (CONFLICT, before, child)
    rows = "SELECT * FROM tenant_registry.tenant"
    assert world.postgres.sql(rows, database=empty_database) == []
    world.move_endpoint("postgres")
    world.settle()
    assert (world.verdict(), world.holdings()) == (READY, before)


# What was taken away


def _database_dropped(world: Claims) -> None:
    world.on_server("DROP DATABASE {}")


def _database_made_again(world: Claims) -> None:
    _database_dropped(world)
    world.on_server("CREATE DATABASE {0} OWNER {0}")


def _database_given_away(world: Claims) -> None:
    world.on_server("ALTER DATABASE {} OWNER TO postgres")


def _role_made_again(world: Claims) -> None:
    _database_given_away(world)
    world.on_server("DROP ROLE {}")
    world.on_server("CREATE ROLE {} LOGIN")
    world.on_server("ALTER DATABASE {0} OWNER TO {0}")


def _role_dropped(world: Claims) -> None:
    _database_given_away(world)
    world.on_server("DROP ROLE {}")


def _kv_emptied(world: Claims) -> None:
    world.kv().delete_metadata_and_all_versions(world.path, mount_point=MOUNT)


def _kv_version_deleted(world: Claims) -> None:
    world.kv().delete_latest_version_of_secret(world.path, mount_point=MOUNT)


def _kv_username_changed(world: Claims) -> None:
    world.put(username="another", password="another")


@pytest.mark.parametrize("lost", ["nothing", "status"])
@pytest.mark.parametrize(
    "take",
    [
        _database_dropped,
        _database_made_again,
        _database_given_away,
        _role_made_again,
        _role_dropped,
        _kv_emptied,
        _kv_version_deleted,
        _kv_username_changed,
    ],
)
def test_what_was_taken_away_is_not_made_again_in_silence(
    world: Claims, take: Callable[[Claims], None], lost: str
) -> None:
    world.born()
    take(world)
    before, child = world.holdings(), world.child()
    if lost == "status":
        world.lose_status()
    for _ in range(3):
        world.sync()
    assert (world.verdict(), world.holdings(), world.child()) == (CONFLICT, before, child)


# The status


def test_a_lost_status_is_rebuilt_from_facts(world: Claims) -> None:
    status, before = world.born()["status"], world.holdings()
    oid = world.postgres.sql("SELECT oid FROM pg_database WHERE datname = %s", [world.name])
    assert [(status["databaseOID"],)] == oid
    world.lose_status()
    world.settle()
    assert (world.tenant()["status"], world.holdings()) == (status, before)


def test_a_status_of_another_time_is_overwritten_by_facts(world: Claims) -> None:
    status = world.born()["status"]
    stale = merged(status, {"phase": "Planned", "databaseOID": 1, "database": "another"})
    world.cluster.replace_status({**world.tenant(), "status": stale})
    world.settle()
    assert world.tenant()["status"] == status


def test_a_status_that_claims_a_database_which_nobody_knows_is_a_conflict(world: Claims) -> None:
    world.make_tenant()
    world.cluster.replace_status({**world.tenant(), "status": {"phase": "Ready"}})
    world.settle()
    assert (world.verdict(), world.holdings()) == (CONFLICT, NOTHING)
    assert world.cluster.list(EXTERNAL_SECRET) == []

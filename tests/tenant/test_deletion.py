"""The end of a Tenant: in order, over no doubt, and with Retain whatever is down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooks.core import manifests
from hooks.core.contract import Request, Response
from hooks.core.manifests import Manifest
from hooks.effects.instances import endpoint_of
from hooks.effects.ports import Login
from hooks.sandbox import postgres_server
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.tenant.faults import Fuse
from tests.tenant.test_projection import NOTHING, Scene
from tests.tenant.world import INSTANCES, NAMESPACE, TENANTS

CONTROLLER = {"metadata": {"name": "postgresqltenants.database.ddupan.top"}}
BEHIND = {"role", "login", "database", "credential"}
"""What is there behind the ExternalSecret."""


class Doomed(Scene):
    """A world in which Tenants end."""

    def left(self) -> set[str]:
        """Return in words what is still there."""
        seen = self.holdings()
        found = {"role", "database"} & {what for what in seen if seen[what]}
        logins = "SELECT 1 FROM pg_roles WHERE rolcanlogin AND rolname = %s"
        found |= {"login"} if self.postgres.sql(logins, [self.name]) else set()
        found |= {f"row {json.loads(row)['state']}" for (row,) in seen["rows"]}
        found |= {"credential"} if seen["kv"] is not None else set()
        for kind in (TENANTS, EXTERNAL_SECRET, SECRET):
            name = self.name if kind == TENANTS else self.target
            found |= {kind.kind} if self.cluster.get(kind, NAMESPACE, name) else set()
        return found

    def born(self, policy: str = "Delete") -> None:
        self.make_tenant(deletionPolicy=policy)
        self.settle()
        assert self.left() == {"PostgreSQLTenant", "ExternalSecret", "Secret", "row managed"} | (
            BEHIND
        )

    def finalize(self, parent: Manifest) -> Response:
        """Call the hook and do nothing with its answer."""
        children = {"ExternalSecret.external-secrets.io/v1": self._children(parent)}
        request = Request(parent, children, {}, finalizing=True, controller=CONTROLLER)
        return self.tenants.finalize(request, self.services())

    def lose_status(self, **status: object) -> None:
        self.cluster.replace_status({**self.tenant(), "status": status})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the Tenant's lock in another session."""
        endpoint = endpoint_of(self.get(INSTANCES, "shared"))
        login = Login(self.postgres.admin.name, self.postgres.admin.password)
        with self.services().postgres.administer(endpoint, login) as admin:
            assert admin.try_lock(manifests.uid(self.tenant()))
            yield

    @contextmanager
    def session(self, login: postgres_server.Login) -> Iterator[psycopg.Connection]:
        """Be connected to the Tenant's database."""
        parameters = self.postgres.parameters(login, database=self.name)
        with psycopg.connect(make_conninfo(**parameters), autocommit=True) as connection:
            yield connection

    def on_database(self, statement: str) -> None:
        self.postgres.sql(sql.SQL(statement).format(sql.Identifier(self.name)))


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Doomed]:
    with Doomed(postgres, openbao, authority, tmp_path) as made:
        assert isinstance(made, Doomed)
        made.make_instance()
        yield made


# The order


def test_the_first_call_only_writes_down_that_it_is_delete(world: Doomed) -> None:
    world.born()
    before, (listed,) = world.holdings(), world.sync().children
    world.delete()
    answer = world.sync()
    assert (answer.children, answer.recheck, answer.finalized) == ((listed,), 1.0, False)
    assert (world.tenant()["status"]["phase"], world.holdings()) == ("Deleting", before)


def test_each_step_sees_the_one_before_done(world: Doomed) -> None:
    world.born()
    world.delete()
    seen: list[tuple[str, set[str]]] = []
    fuse = Fuse()
    fuse.before = lambda number: seen.append((fuse.writes[number], world.left()))
    for _ in range(3):
        world.sync(wrap=fuse.services)
        world.project()
    tenant = {"PostgreSQLTenant", "row deleting"}
    assert seen == [
        ("mark", {"PostgreSQLTenant", "ExternalSecret", "Secret", "row managed"} | BEHIND),
        ("forbid_login", tenant | BEHIND),
        ("drop_database", tenant | {"role", "database", "credential"}),
        ("drop_role", tenant | {"role", "credential"}),
        ("destroy", tenant | {"credential"}),
        ("delete_row", tenant),
    ]
    assert world.left() == set()


@pytest.mark.parametrize("at", range(6))
def test_what_is_not_known_to_be_gone_is_not_finalized(world: Doomed, at: int) -> None:
    world.born()
    world.delete()
    fuse = Fuse(at, "reply lost")
    while len(fuse.writes) <= at:
        assert world.sync(wrap=fuse.services).finalized is False
        world.project()
    world.settle()
    assert world.left() == set()


def test_finalize_may_be_repeated(world: Doomed) -> None:
    world.born()
    world.delete()
    world.sync()
    parent = world.tenant()
    world.settle()
    assert (world.left(), world.finalize(parent).finalized) == (set(), True)


def test_a_tenant_of_which_nothing_is_left_is_not_ready(world: Doomed) -> None:
    world.born()
    world.delete()
    for _ in range(2):
        world.sync()
        world.project()
    answer = world.finalize(world.tenant())
    ready = manifests.condition({"status": answer.status}, "Ready")
    assert (answer.finalized, world.left(), answer.status["phase"]) == (
        True,
        {"PostgreSQLTenant"},
        "Deleting",
    )
    assert ready["status"] != "True"


# The policy


def test_delete_stays_delete_once_it_was_written_down(world: Doomed) -> None:
    world.born()
    world.delete()
    world.sync()
    world.edit(deletionPolicy="Retain")
    world.settle()
    assert world.left() == set()


def test_delete_stays_delete_when_the_status_is_lost_after_the_row_was_marked(
    world: Doomed,
) -> None:
    world.born()
    world.delete()
    world.sync()
    world.sync()
    world.edit(deletionPolicy="Retain")
    world.lose_status()
    world.settle()
    assert world.left() == set()


def test_without_any_record_the_policy_of_now_counts(world: Doomed) -> None:
    world.born()
    world.delete()
    world.sync()
    world.edit(deletionPolicy="Retain")
    world.lose_status()
    world.settle()
    assert world.left() == {"row unmanaged"} | BEHIND


def test_retain_stays_retain_once_the_row_was_let_go(world: Doomed) -> None:
    world.born("Retain")
    world.delete()
    assert world.finalize(world.tenant()).finalized is True
    before = world.holdings()
    world.edit(deletionPolicy="Delete")
    world.settle()
    assert world.left() == {"row unmanaged"} | BEHIND
    assert world.holdings() == before


def test_a_phase_from_a_backup_is_overwritten_by_sync(world: Doomed) -> None:
    world.born("Retain")
    world.lose_status(phase="Deleting")
    world.settle()
    assert (world.verdict(), world.tenant()["status"]["phase"]) == (("True", "Ready"), "Ready")
    world.delete()
    world.settle()
    assert world.left() == {"row unmanaged"} | BEHIND


# What is down


@contextmanager
def _api_down(world: Doomed) -> Iterator[None]:
    world.api.faults = lambda _method, _path: 503
    yield
    world.api.faults = lambda _method, _path: None


@contextmanager
def _postgres_down(world: Doomed) -> Iterator[None]:
    world.postgres.kill()
    try:
        yield
    finally:
        world.postgres.restart()


@contextmanager
def _openbao_down(world: Doomed) -> Iterator[None]:
    world.openbao.seal()
    try:
        yield
    finally:
        world.openbao.unseal()


Outage = Callable[[Doomed], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("down", "reason", "system"),
    [
        pytest.param(_api_down, "DependencyUnavailable", "Kubernetes", id="Kubernetes"),
        pytest.param(_postgres_down, "InstanceNotReady", "PostgreSQL", id="PostgreSQL"),
        pytest.param(_openbao_down, "DependencyUnavailable", "OpenBao", id="OpenBao"),
    ],
)
def test_delete_waits_for_a_server_that_is_down_and_destroys_nothing(
    world: Doomed, down: Outage, reason: str, system: str
) -> None:
    world.born()
    before = world.holdings()
    world.delete()
    world.sync()
    with down(world):
        for _ in range(3):
            assert world.sync().finalized is False
            world.project()
        assert world.verdict() == ("False", reason)
        assert system in world.ready()["message"]
    assert world.holdings() == before
    world.settle()
    assert world.left() == set()


def test_delete_waits_for_an_external_secret_that_nobody_lets_go(world: Doomed) -> None:
    world.born()
    world.delete()
    for _ in range(4):
        world.sync()
    assert world.child()["metadata"]["deletionTimestamp"]
    assert world.ready()["message"] == (
        f"waiting for ExternalSecret {world.target} to go: if External Secrets does not run any"
        " more, remove the finalizer that it left there"
    )
    assert world.left() >= {"row deleting"} | BEHIND
    world.settle()
    assert world.left() == set()


def test_retain_lets_go_although_everything_is_down(world: Doomed) -> None:
    world.born("Retain")
    before = world.holdings()
    world.delete()
    services = world.services()
    with _api_down(world), _openbao_down(world), _postgres_down(world):
        assert world.sync(wrap=lambda _: services).finalized is True
        assert services.deadline.left() > 10
    world.project()
    assert world.left() == {"row managed"} | BEHIND
    assert world.holdings() == before


def test_retain_does_not_wait_for_a_running_sync_and_the_sweep_marks_the_row(
    world: Doomed,
) -> None:
    world.born("Retain")
    world.delete()
    with world.locked():
        assert world.sync().finalized is True
    world.project()
    assert world.left() == {"row managed"} | BEHIND
    age = "UPDATE tenant_registry.tenant SET updated_at = now() - interval '1 hour' WHERE name = %s"
    world.postgres.sql(age, [world.name])
    world.wait(3600)
    world.sync_instance()
    assert world.left() == {"row unmanaged"} | BEHIND


# What is gone already, or somebody else's


def _no_credential(world: Doomed) -> None:
    world.kv().delete_metadata_and_all_versions(world.path, mount_point=MOUNT)


def _no_external_secret(world: Doomed) -> None:
    world.cluster.delete(EXTERNAL_SECRET, NAMESPACE, world.target)
    world.project()


def _no_secret(world: Doomed) -> None:
    world.cluster.delete(SECRET, NAMESPACE, world.target)


def _no_database(world: Doomed) -> None:
    world.on_database("DROP DATABASE {}")


def _no_database_and_role(world: Doomed) -> None:
    _no_database(world)
    world.on_database("DROP ROLE {}")


@pytest.mark.parametrize(
    "take",
    [_no_credential, _no_external_secret, _no_secret, _no_database, _no_database_and_role],
)
def test_what_is_gone_already_is_done(world: Doomed, take: Callable[[Doomed], None]) -> None:
    world.born()
    take(world)
    world.delete()
    world.settle()
    assert world.left() == set()


def _foreign_row(world: Doomed) -> None:
    statement = "UPDATE tenant_registry.tenant SET uid = gen_random_uuid() WHERE name = %s"
    world.postgres.sql(statement, [world.name])


def _row_of_another_instance(world: Doomed) -> None:
    statement = "UPDATE tenant_registry.tenant SET instance_uid = gen_random_uuid() WHERE name = %s"
    world.postgres.sql(statement, [world.name])


def _foreign_credential(world: Doomed) -> None:
    world.mark_kv(**{"tenant-uid": "somebody-else"})


@pytest.mark.parametrize("alien", [_foreign_row, _row_of_another_instance, _foreign_credential])
def test_nothing_is_deleted_without_proof_of_ownership(
    world: Doomed, alien: Callable[[Doomed], None]
) -> None:
    world.born()
    alien(world)
    before, child = world.holdings(), world.child()
    world.delete()
    for _ in range(4):
        assert world.sync().finalized is False
    assert world.verdict() == ("False", "Conflict")
    assert (world.holdings(), world.child()) == (before, child)


@pytest.mark.parametrize(
    ("statements", "survivors"),
    [
        pytest.param(
            ("DROP DATABASE {}", "CREATE DATABASE {0} OWNER {0}"),
            {"database", "role", "credential"},
            id="database made again",
        ),
        pytest.param(
            ("ALTER DATABASE {} OWNER TO postgres", "DROP ROLE {}", "CREATE ROLE {} LOGIN"),
            BEHIND,
            id="role made again",
        ),
    ],
)
def test_what_was_made_again_by_somebody_is_not_dropped(
    world: Doomed, statements: tuple[str, ...], survivors: set[str]
) -> None:
    world.born()
    for statement in statements:
        world.on_database(statement)
    world.delete()
    for _ in range(5):
        world.sync()
        world.project()
    assert world.verdict() == ("False", "Conflict")
    assert world.left() == {"PostgreSQLTenant", "row deleting"} | survivors


# What is in the way


@contextmanager
def _open_sessions(world: Doomed) -> Iterator[None]:
    login = postgres_server.Login(world.name, world.secret()["password"])
    with world.session(login), world.session(login):
        yield


@contextmanager
def _session_of_a_superuser(world: Doomed) -> Iterator[None]:
    with world.session(world.postgres.superuser):
        yield


@contextmanager
def _prepared_transaction(world: Doomed) -> Iterator[None]:
    with world.session(world.postgres.superuser) as connection:
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE t ()")
        connection.execute("PREPARE TRANSACTION 'pending'")
    yield
    with world.session(world.postgres.superuser) as connection:
        connection.execute("ROLLBACK PREPARED 'pending'")


@contextmanager
def _inactive_slot(world: Doomed) -> Iterator[None]:
    slot = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
    world.postgres.sql(slot, [world.name], database=world.name)
    yield


@contextmanager
def _subscription(world: Doomed) -> Iterator[None]:
    with world.session(world.postgres.superuser) as connection:
        connection.execute(
            "CREATE SUBSCRIPTION s CONNECTION 'host=none' PUBLICATION p WITH (connect = false)"
        )
    yield
    with world.session(world.postgres.superuser) as connection:
        connection.execute("ALTER SUBSCRIPTION s SET (slot_name = NONE)")
        connection.execute("DROP SUBSCRIPTION s")


@contextmanager
def _objects_elsewhere(world: Doomed) -> Iterator[None]:
    world.on_database("CREATE SCHEMA {0} AUTHORIZATION {0}")
    yield
    assert world.postgres.sql("SELECT 1 FROM pg_namespace WHERE nspname = %s", [world.name])
    world.on_database("DROP SCHEMA {}")


@contextmanager
def _template(world: Doomed) -> Iterator[None]:
    world.on_database("ALTER DATABASE {} IS_TEMPLATE true ALLOW_CONNECTIONS false")
    yield


@contextmanager
def _interrupted_drop(world: Doomed) -> Iterator[None]:
    statement = "UPDATE pg_database SET datconnlimit = -2 WHERE datname = %s"
    world.postgres.sql(statement, [world.name])
    yield


@pytest.mark.parametrize("obstacle", [_open_sessions, _inactive_slot, _template, _interrupted_drop])
def test_what_is_only_in_the_way_is_swept_aside(world: Doomed, obstacle: Outage) -> None:
    world.born()
    with obstacle(world):
        world.delete()
        world.settle()
        assert world.left() == set()


IN_USE = (
    "PostgreSQL: cannot drop the database: it is in use: a session, a prepared transaction, a"
    " replication slot or a subscription (55006)"
)


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        pytest.param(
            _session_of_a_superuser,
            "dropping database '{}': PostgreSQL: cannot drop the database: the admin role may not"
            " drop it, or may not end a session that is open in it (42501)",
            id="a session of a superuser",
        ),
        pytest.param(
            _prepared_transaction,
            f"dropping database '{{}}': {IN_USE}",
            id="a prepared transaction",
        ),
        pytest.param(_subscription, f"dropping database '{{}}': {IN_USE}", id="a subscription"),
        pytest.param(
            _objects_elsewhere,
            "dropping role '{}': PostgreSQL: cannot drop the role: other objects, maybe in another"
            " database, still depend on it (2BP01)",
            id="objects in another database",
        ),
    ],
)
def test_what_needs_somebody_is_reported_and_retried(
    world: Doomed, obstacle: Outage, message: str
) -> None:
    world.born()
    with obstacle(world):
        world.delete()
        world.settle()
        assert world.verdict() == ("False", "ProvisioningFailed")
        assert world.ready()["message"] == message.format(world.name)
        assert {"role", "credential", "row deleting"} < world.left()
    world.settle()
    assert world.left() == set()


# The Instance


def test_an_instance_that_is_being_deleted_still_serves_the_delete(world: Doomed) -> None:
    world.born()
    world.cluster.delete(INSTANCES, None, "shared")
    world.delete()
    world.settle()
    assert world.left() == set()


def _remove_instance(world: Doomed) -> None:
    live = world.get(INSTANCES, "shared")
    live["metadata"]["finalizers"] = []
    world.cluster.replace(live)
    world.cluster.delete(INSTANCES, None, "shared")


def test_without_its_instance_a_tenant_of_nothing_is_finalized_at_once(world: Doomed) -> None:
    _remove_instance(world)
    world.make_tenant(deletionPolicy="Delete")
    world.sync()
    world.delete()
    assert world.sync().finalized is True
    assert world.holdings() == NOTHING


@pytest.mark.parametrize("lost", ["nothing", "status", "credential"])
def test_without_its_instance_a_tenant_of_something_waits_and_says_the_way_out(
    world: Doomed, lost: str
) -> None:
    world.born()
    _remove_instance(world)
    if lost == "status":
        world.lose_status()
    if lost == "credential":
        _no_credential(world)
    before = world.holdings()
    world.delete()
    for _ in range(3):
        assert world.sync().finalized is False
    assert (world.verdict(), world.ready()["message"]) == (
        ("False", "InstanceNotReady"),
        (
            "PostgreSQLInstance shared does not exist, so nothing can be dropped on its server:"
            " drop the database there by hand, or give it up, then remove this Tenant's finalizer"
        ),
    )
    assert world.holdings() == before


# Odd calls


def test_an_orphaned_external_secret_is_left_to_whoever_orphaned_it(world: Doomed) -> None:
    world.born()
    world.cluster.delete(TENANTS, NAMESPACE, world.name, propagation="Orphan")
    assert manifests.controller_uid(world.child()) is None
    world.settle()
    assert world.left() == {"ExternalSecret", "Secret"}


def test_finalize_of_a_live_tenant_holds_the_children_and_does_nothing(world: Doomed) -> None:
    world.born()
    parent, before, (listed,) = world.tenant(), world.holdings(), world.sync().children
    assert world.finalize(parent) == Response(parent["status"], (listed,), finalized=True)
    assert world.holdings() == before


def test_finalize_without_our_finalizer_does_nothing(world: Doomed) -> None:
    world.born()
    before, (listed,) = world.holdings(), world.sync().children
    live = world.tenant()
    live["metadata"]["finalizers"] = ["example.com/another"]
    world.cluster.replace(live)
    world.delete()
    parent = world.tenant()
    assert world.finalize(parent) == Response(parent["status"], (listed,), finalized=True)
    assert world.holdings() == before

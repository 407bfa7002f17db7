"""What an Instance says of real servers: trust, logins, rights, failures, sweeps, deletion."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooks.core import manifests
from hooks.core.contract import Response
from hooks.core.errors import EffectError, attempt
from hooks.core.manifests import Manifest
from hooks.instance.actions import MarkUnmanaged, MigrateRegistry, RecordSweep
from hooks.sandbox.certificates import Authority, CertificateFiles
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import HBA, Login, PostgresServer
from hooks.sandbox.world import crds
from tests.builders import TENANT_FINALIZER, merged, tenant
from tests.effects.postgres.relay import Relay
from tests.instance.world import (
    CONTROLLER,
    INSTANCES,
    SECRET_NAME,
    TENANTS,
    Door,
    InstanceWorld,
    Server,
)
from tests.tenant.world import TenantWorld

CONNECTIONS = 16
LINES = (
    "host replication all 127.0.0.1/32 scram-sha-256",
    "host all /^rejected_ 127.0.0.1/32 reject",
    "host all /^trusted_ 127.0.0.1/32 trust",
    *HBA,
)
READY = ("True", "Ready", "the server is checked and its registry is usable")
UNTRUSTED = (
    "PostgreSQL: the server's certificate is not signed by the configured CA:"
    " check POSTGRES_CA_FILE"
)
EXPIRED = "PostgreSQL: the server's certificate has expired: renew it"
NOBODY = "PostgreSQL: nobody listens there, or the network does not lead there: check spec.endpoint"
FULL = "PostgreSQL: cannot log in: the server, the database or the role has no free connection"
WRONG = "PostgreSQL: cannot log in: the user name or password is wrong, or the password has expired"


@pytest.fixture(scope="module")
def server(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("instances")
    settings = {"max_connections": str(CONNECTIONS)}
    with Server.start(directory, authority, settings=settings, hba=LINES) as started:
        yield started


@pytest.fixture
def world(server: Server, authority: Authority, tmp_path: Path) -> Iterator[InstanceWorld]:
    with InstanceWorld(server, authority, tmp_path) as made:
        yield made


@pytest.fixture
def ready(world: InstanceWorld) -> InstanceWorld:
    """A world with an Instance that is Ready."""
    world.make_admin()
    world.make()
    assert said(world) == READY
    world.effects.clear()
    return world


def said(world: InstanceWorld, name: str = "shared", *, seconds: float = 20) -> tuple[str, ...]:
    """Sync, and return status, reason and message of Ready."""
    return told(world.sync(name, seconds=seconds))


def unready(reason: str, message: str) -> tuple[str, ...]:
    return "False", reason, message


def told(response: Response) -> tuple[str, ...]:
    condition = manifests.condition({"status": response.status}, "Ready")
    return condition["status"], condition["reason"], condition["message"]


# Certificates


@pytest.fixture(scope="module")
def certificates(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, CertificateFiles]:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    host, addresses = ["localhost"], ["127.0.0.1", "::1"]
    return {
        "both": authority.issue("both", dns=host, ips=addresses),
        "dns": authority.issue("dns", dns=host),
        "dns-and-ipv4": authority.issue("dns-and-ipv4", dns=host, ips=["127.0.0.1"]),
        "ip": authority.issue("ip", ips=addresses),
        "common-name": authority.issue("common-name", common_name="localhost"),
        "expired": authority.issue("expired", dns=host, ips=addresses, expired=True),
        "wrong-ca": stranger.issue("wrong-ca", dns=host, ips=addresses),
    }


def uncovered(*names: str) -> tuple[str, ...]:
    return unready(
        "AuthenticationFailed",
        f"the server's certificate does not cover {' and '.join(names)}: issue it with both as"
        " subject alternative names, or correct spec.endpoint",
    )


IPV4 = "127.0.0.1"
IPV6 = "::1"
DNS_NAME = "DNS name localhost"
ADDRESSES = {IPV4: "IP address 127.0.0.1", IPV6: "IP address ::1"}


def with_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind((IPV6, 0))
    except OSError:
        return False
    return True


def expected(certificate: str, mode: str, hostaddr: str) -> tuple[str, ...]:
    """Say what the contract wants of a certificate."""
    if mode in ("disable", "require"):
        return READY
    distrust = {"expired": EXPIRED, "wrong-ca": UNTRUSTED}
    if certificate in distrust:
        return unready("AuthenticationFailed", distrust[certificate])
    address = ADDRESSES[hostaddr]
    names = {
        "dns": [address],
        "dns-and-ipv4": [address] if hostaddr == IPV6 else [],
        "ip": [DNS_NAME],
        "common-name": [DNS_NAME, address],
    }.get(certificate, [])
    return uncovered(*names) if names and mode == "verify-full" else READY


@pytest.mark.parametrize(
    "hostaddr",
    [
        IPV4,
        pytest.param(IPV6, marks=pytest.mark.skipif(not with_ipv6(), reason="no IPv6 loopback")),
    ],
)
@pytest.mark.parametrize(
    "certificate",
    ["both", "dns", "dns-and-ipv4", "ip", "common-name", "expired", "wrong-ca"],
)
def test_a_certificate_is_trusted_as_far_as_ssl_mode_asks(
    world: InstanceWorld,
    certificates: dict[str, CertificateFiles],
    certificate: str,
    hostaddr: str,
) -> None:
    modes = ("disable", "require", "verify-ca", "verify-full")
    world.make_admin()
    world.server.present(certificates[certificate])
    try:
        for mode in modes:
            world.make(mode, sslMode=mode, hostaddr=hostaddr)
        seen = {mode: said(world, mode) for mode in modes}
    finally:
        world.server.present(certificates["both"])
    assert seen == {mode: expected(certificate, mode, hostaddr) for mode in modes}


def test_a_certificate_that_is_mended_makes_the_instance_ready(
    world: InstanceWorld, certificates: dict[str, CertificateFiles]
) -> None:
    world.make_admin()
    world.make()
    world.server.present(certificates["dns"])
    before = said(world)
    world.server.present(certificates["both"])
    assert (before, said(world)) == (uncovered("IP address 127.0.0.1"), READY)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_a_server_without_tls_is_not_logged_in_to(world: InstanceWorld, mode: str) -> None:
    world.make_admin()
    with Relay(world.server.port) as relay:
        relay.refuse_tls()
        world.make(port=relay.port, sslMode=mode)
        assert said(world) == unready(
            "AuthenticationFailed",
            "PostgreSQL: the server does not offer TLS: turn ssl on there",
        )


# The admin Secret


def unusable(key: str, field: str) -> tuple[str, ...]:
    return unready(
        "AuthenticationFailed",
        f"Kubernetes: Secret {CONTROLLER}/{SECRET_NAME} has no usable value under key {key!r}:"
        f" add it, or correct spec.adminCredentialRef.{field}",
    )


NO_USERNAME = unusable("username", "usernameKey")
NO_PASSWORD = unusable("password", "passwordKey")
ODD = b"caf\xe9"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({}, NO_USERNAME, id="nothing"),
        pytest.param({"password": b"x-secret"}, NO_USERNAME, id="no-name"),
        pytest.param({"username": b"keeper_x"}, NO_PASSWORD, id="no-password"),
        pytest.param({"username": b"", "password": b"x-secret"}, NO_USERNAME, id="empty-name"),
        pytest.param({"username": b"keeper_x", "password": b""}, NO_PASSWORD, id="empty-password"),
        pytest.param({"username": ODD, "password": b"x-secret"}, NO_USERNAME, id="name-in-latin-1"),
        pytest.param({"username": b"keeper_x", "password": ODD}, NO_PASSWORD, id="in-latin-1"),
        pytest.param({"username": b"keeper_x", "password": b"a\0b"}, NO_PASSWORD, id="with-nul"),
        pytest.param(
            {"username": b"keeper_x", "password": b"x-secret"},
            unready("AuthenticationFailed", f"{WRONG} (28P01)"),
            id="wrong-user",
        ),
    ],
)
def test_a_secret_that_cannot_log_in_is_reported(
    ready: InstanceWorld, data: dict[str, bytes], expected: tuple[str, ...]
) -> None:
    ready.write_secret(data)
    assert said(ready) == expected


def test_an_absent_secret_is_waited_for(world: InstanceWorld) -> None:
    world.make()
    before = said(world)
    world.make_admin()
    assert before == unready(
        "DependencyUnavailable",
        f"Kubernetes: Secret {CONTROLLER}/{SECRET_NAME} with the admin login is not there:"
        " create it",
    )
    assert said(world) == READY


def test_a_wrong_password_is_reported_until_it_is_right(world: InstanceWorld) -> None:
    name = world.make_admin()
    world.make()
    world.write_secret({"username": name.encode(), "password": b"not-the-password"})
    before = said(world)
    world.use(name)
    assert (before, said(world)) == (
        unready("AuthenticationFailed", f"{WRONG} (28P01)"),
        READY,
    )


def test_a_secret_that_the_hooks_may_not_read_is_no_missing_secret(ready: InstanceWorld) -> None:
    ready.api.faults = lambda _method, path: 403 if "/secrets/" in path else None
    assert said(ready) == unready(
        "DependencyUnavailable",
        f"Kubernetes: the hooks may not get secrets in namespace {CONTROLLER} (403)",
    )


@pytest.mark.parametrize(
    "password",
    [
        "p@ss:/?#[]'\"\\ %",
        "pa ss=host=elsewhere user=postgres",
        "'; DROP TABLE meta; --",
        "pässwörd-密码-🔑",
        "%s{}%(name)s$$",
        "SCRAM-SHA-256$like",
        "x" * 400,
    ],
)
def test_any_password_logs_in(world: InstanceWorld, password: str) -> None:
    name = world.make_admin()
    world.set_password(name, password)
    world.use(name)
    world.make()
    assert said(world) == READY


def test_any_user_name_logs_in(world: InstanceWorld) -> None:
    world.make_admin(prefix="käeper 'x' \"y\" \\ %s")
    world.make()
    assert said(world) == READY


def test_a_new_password_is_used_at_the_next_call(ready: InstanceWorld) -> None:
    name = owner(ready)
    ready.set_password(name, "the-second-password")
    before = said(ready)
    ready.use(name)
    assert (before, said(ready)) == (
        unready("AuthenticationFailed", f"{WRONG} (28P01)"),
        READY,
    )


def test_a_new_user_that_is_a_member_of_the_old_one_takes_over(ready: InstanceWorld) -> None:
    old = owner(ready)
    new = ready.make_role()
    ready.superuser("GRANT {} TO {}", old, new)
    ready.use(new)
    assert said(ready) == READY
    assert ready.effects == []


def owner(world: InstanceWorld) -> str:
    query = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = %s"
    return str(world.server.sql(query, [world.schema])[0][0])


# Rights


def lacking(*statements: str) -> tuple[str, ...]:
    return unready(
        "InsufficientPrivileges",
        f"the admin role lacks rights: run {'; '.join(statements)} as a superuser",
    )


def follow(world: InstanceWorld, name: str, message: str) -> None:
    """Do what the message says, as a superuser would."""
    statements = message.partition(": run ")[2].removesuffix(" as a superuser")
    for statement in statements.split("; "):
        world.superuser(statement.replace("<admin role>", "{}"), name)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param("NOCREATEDB CREATEROLE", lacking("ALTER ROLE <admin role> CREATEDB")),
        pytest.param("CREATEDB NOCREATEROLE", lacking("ALTER ROLE <admin role> CREATEROLE")),
        pytest.param("", lacking("ALTER ROLE <admin role> CREATEDB CREATEROLE")),
        pytest.param("CREATEDB CREATEROLE NOINHERIT", READY),
        pytest.param("SUPERUSER NOINHERIT", READY),
    ],
)
def test_the_statements_in_the_message_give_the_rights_that_lack(
    world: InstanceWorld, attributes: str, expected: tuple[str, ...]
) -> None:
    name = world.make_admin(attributes)
    world.make()
    before = said(world)
    if before != READY:
        follow(world, name, before[2])
    assert (before, said(world)) == (expected, READY)


def test_create_on_the_endpoints_database_is_asked_for_by_its_name(world: InstanceWorld) -> None:
    database = f"d{uuid.uuid4().hex[:10]}"
    world.superuser("CREATE DATABASE {}", database)
    name = world.make_role()
    world.use(name)
    world.make(database=database)
    before = said(world)
    follow(world, name, before[2])
    assert before == lacking(f"GRANT CREATE ON DATABASE {database} TO <admin role>")
    assert said(world) == READY


def test_everything_that_lacks_is_named_at_once(world: InstanceWorld) -> None:
    world.use(world.make_role("NOINHERIT"))
    world.make()
    assert said(world) == lacking(
        "ALTER ROLE <admin role> CREATEDB CREATEROLE",
        "GRANT CREATE ON DATABASE postgres TO <admin role>",
    )


def on_the_schema(world: InstanceWorld) -> tuple[str, ...]:
    return lacking(
        f"GRANT USAGE, CREATE ON SCHEMA {world.schema} TO <admin role>",
        f"GRANT ALL ON ALL TABLES IN SCHEMA {world.schema} TO <admin role>",
    )


def test_a_schema_of_somebody_else_is_not_used_before_that_is_granted(
    world: InstanceWorld,
) -> None:
    name = world.make_admin()
    world.superuser("CREATE SCHEMA {}", world.schema)
    world.make()
    before = said(world)
    follow(world, name, before[2])
    assert (before, said(world)) == (on_the_schema(world), READY)


def test_a_new_user_is_told_what_it_lacks_on_the_registry_of_the_old_one(
    ready: InstanceWorld,
) -> None:
    name = ready.make_admin()
    before = said(ready)
    follow(ready, name, before[2])
    assert (before, said(ready)) == (on_the_schema(ready), READY)


def test_a_role_that_may_not_connect_to_the_database_is_reported(world: InstanceWorld) -> None:
    database = f"d{uuid.uuid4().hex[:10]}"
    world.superuser("CREATE DATABASE {}", database)
    world.superuser("REVOKE CONNECT ON DATABASE {} FROM PUBLIC", database)
    world.make_admin()
    world.make(database=database)
    assert said(world) == unready(
        "InsufficientPrivileges",
        "PostgreSQL: cannot log in: the role may not connect to the database (42501)",
    )


# The server


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("disable", "PostgreSQL: nobody listens there, or the connection was closed at once"),
        ("require", NOBODY),
        ("verify-full", NOBODY),
    ],
)
def test_a_port_on_which_nobody_listens_is_waited_for(
    world: InstanceWorld, mode: str, expected: str
) -> None:
    world.make_admin()
    with Relay(None) as relay:
        port = relay.port
    world.make(port=port, sslMode=mode)
    assert said(world) == unready("DependencyUnavailable", expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("require", "PostgreSQL: no answer in time while logging in"),
        ("verify-full", "PostgreSQL: no answer in time while connecting"),
    ],
)
def test_a_server_that_accepts_and_says_nothing_is_waited_for(
    world: InstanceWorld, mode: str, expected: str
) -> None:
    world.make_admin()
    with Relay(None) as relay:
        world.make(port=relay.port, sslMode=mode)
        assert said(world, seconds=3.2) == unready("DependencyUnavailable", expected)


REJECTED = (
    "PostgreSQL: cannot log in: the server does not let this role in: see pg_hba.conf, or it has"
    " NOLOGIN (28000)"
)
NOT_ASKED = (
    "PostgreSQL: cannot log in: the server asks for no password, or not for one in the form of"
    " SCRAM: see pg_hba.conf"
)


@pytest.mark.parametrize(("prefix", "expected"), [("rejected", REJECTED), ("trusted", NOT_ASKED)])
def test_a_role_that_pg_hba_does_not_ask_for_a_password_is_not_used(
    world: InstanceWorld, prefix: str, expected: str
) -> None:
    world.make_admin(prefix=prefix)
    world.make()
    assert said(world) == unready("AuthenticationFailed", expected)


@pytest.mark.parametrize(
    "change", ["ALTER ROLE {} NOLOGIN", "ALTER ROLE {} VALID UNTIL '2001-01-01'"]
)
def test_an_admin_role_that_was_shut_out_is_reported(ready: InstanceWorld, change: str) -> None:
    ready.superuser(change, owner(ready))
    status, reason, _ = said(ready)
    assert (status, reason) == ("False", "AuthenticationFailed")


def test_a_database_that_does_not_exist_is_a_wrong_spec(world: InstanceWorld) -> None:
    world.make_admin()
    world.make(database="nonesuch")
    response = world.sync()
    assert told(response) == unready(
        "InvalidSpec",
        "spec.endpoint: cannot log in: the database does not exist",
    )


def test_a_server_whose_connections_are_all_taken_is_waited_for(ready: InstanceWorld) -> None:
    with ExitStack() as stack:
        take_connections(ready, stack)
        full = said(ready)
    assert full == unready("DependencyUnavailable", f"{FULL} (53300)")
    until(lambda: said(ready) == READY)


def take_connections(world: InstanceWorld, stack: ExitStack) -> None:
    """Log in as somebody until the server has no connection left for the likes of us."""
    name = world.make_role("")
    login = Login(name, world.password)
    parameters = make_conninfo(**world.server.parameters(login, database="postgres"))
    with suppress(psycopg.OperationalError):
        for _ in range(CONNECTIONS + 1):
            stack.enter_context(psycopg.connect(parameters))


def until(true: Callable[[], bool], *, seconds: float = 5) -> None:
    """Wait until something is so: a server ends sessions in its own time."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def test_a_limit_of_the_role_is_no_wrong_password(ready: InstanceWorld) -> None:
    ready.superuser("ALTER ROLE {} CONNECTION LIMIT 0", owner(ready))
    assert said(ready) == unready("DependencyUnavailable", f"{FULL} (53300)")


def test_a_server_that_was_restarted_between_two_syncs_is_ready_as_before(
    ready: InstanceWorld,
) -> None:
    before = ready.sync()
    ready.server.restart()
    assert ready.sync() == before


def test_one_failed_probe_does_not_make_an_instance_unready(world: InstanceWorld) -> None:
    world.make_admin()
    with Door(world.server.port) as door:
        world.make(port=door.port)
        before = world.sync()
        door.refusals = 1
        assert world.sync() == before
        assert (door.refusals, told(before)) == (0, READY)


def test_two_failed_probes_make_it_unready_and_the_third_ready_again(
    world: InstanceWorld,
) -> None:
    world.make_admin()
    with Door(world.server.port) as door:
        world.make(port=door.port)
        world.sync()
        door.refusals = 2
        failed = world.sync()
        assert told(failed) == unready(
            "DependencyUnavailable",
            "PostgreSQL: no PostgreSQL server that is ready answers there",
        )
        assert failed.status["phase"] == "Ready"
        assert said(world) == READY


def test_an_instance_that_was_not_ready_is_probed_once(world: InstanceWorld) -> None:
    world.make_admin()
    with Door(world.server.port) as door:
        door.refusals = 1
        world.make(port=door.port)
        assert told(world.sync())[1] == "DependencyUnavailable"
        assert said(world) == READY


def test_a_read_only_default_of_the_server_does_not_keep_the_hooks_from_writing(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    """It is where sessions begin, not what they may; ours begin with read and write."""
    with InstanceWorld(server, authority, tmp_path) as world:
        world.make_admin()
        world.make()
        world.superuser("ALTER SYSTEM SET default_transaction_read_only = on")
        server.restart()
        try:
            seen = said(world)
        finally:
            # Allowed in a session that begins as read-only: it writes no row.
            world.superuser("ALTER SYSTEM RESET default_transaction_read_only")
            server.restart()
        assert seen == READY


def test_a_standby_is_never_administered(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    with InstanceWorld(server, authority, tmp_path) as world:
        world.make_admin()
        with Server.standby_of(server, tmp_path / "standby") as standby:
            world.make(port=standby.port)
            copied = said(world)
            standby.answer_nobody()
            starting = said(world)
        world.edit(port=server.port)
        assert (copied, starting, said(world)) == (
            unready(
                "DependencyUnavailable",
                "the server is a standby: point spec.endpoint at the primary",
            ),
            unready(
                "DependencyUnavailable",
                "PostgreSQL: cannot log in: the server is starting up or shutting down (57P03)",
            ),
            READY,
        )


def test_an_instance_is_ready_whatever_becomes_of_openbao(ready: InstanceWorld) -> None:
    assert isinstance(attempt(lambda: ready.services().credentials.read("any")), EffectError)
    assert said(ready) == READY
    assert ready.effects == []


# The registry


def registry(world: InstanceWorld) -> list[tuple[object, ...]]:
    """Return everything that is in the registry."""
    meta = world.superuser("SELECT to_jsonb(t)::text FROM {}.meta t", world.schema)
    return meta + world.superuser(
        "SELECT to_jsonb(t)::text FROM {}.tenant t ORDER BY 1", world.schema
    )


def test_the_registry_of_a_newer_release_is_left_as_it_is(ready: InstanceWorld) -> None:
    ready.superuser("UPDATE {}.meta SET schema_version = 99, min_code = 99", ready.schema)
    ready.superuser("UPDATE {}.meta SET swept_at = NULL", ready.schema)
    before = registry(ready)
    assert said(ready) == unready(
        "DependencyUnavailable",
        "the registry was written by a newer release of database-hooks: upgrade this one",
    )
    assert (registry(ready), ready.effects) == (before, [])


def test_a_newer_registry_that_still_serves_this_release_is_used(ready: InstanceWorld) -> None:
    ready.superuser("UPDATE {}.meta SET schema_version = 99", ready.schema)
    before = registry(ready)
    assert (said(ready), registry(ready)) == (READY, before)


@pytest.mark.parametrize("right", ["INSERT", "UPDATE", "DELETE"])
def test_a_registry_that_cannot_be_written_is_reported(ready: InstanceWorld, right: str) -> None:
    ready.superuser(f"REVOKE {right} ON {{}}.tenant FROM {{}}", ready.schema, owner(ready))
    assert said(ready) == unready(
        "DependencyUnavailable",
        "the registry cannot be written by the admin role",
    )


def test_of_two_calls_at_once_one_migrates(world: InstanceWorld) -> None:
    world.make_admin()
    names = ("one", "two", "three")
    for name in names:
        world.make(name)
    with ThreadPoolExecutor(2 * len(names)) as pool:
        list(pool.map(world.sync, names * 2))
    assert {said(world, name) for name in names} == {READY}
    assert world.superuser("SELECT schema_version FROM {}.meta", world.schema) == [(1,)]


@contextmanager
def locked(world: InstanceWorld, uid: str) -> Iterator[None]:
    """Hold an object's lock, as another call would."""
    parameters = world.server.parameters(world.server.superuser, database="postgres")
    with psycopg.connect(make_conninfo(**parameters)) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [uid])
        yield


def test_who_does_not_get_the_lock_writes_nothing_and_asks_again(world: InstanceWorld) -> None:
    world.make_admin()
    uid = manifests.uid(world.make())
    with locked(world, uid):
        response = world.sync()
    assert (told(response), response.recheck) == (
        ("Unknown", "Reconciling", "creating the registry"),
        2.0,
    )
    assert world.effects == []
    assert said(world) == READY
    assert world.effects == [(MigrateRegistry(), "ok")]


def test_an_idle_sync_changes_nothing(ready: InstanceWorld) -> None:
    before = registry(ready), ready.get()["status"]
    ready.wait(60)
    ready.sync()
    assert (registry(ready), ready.get()["status"], ready.effects) == (*before, [])


# Generations


def generations(world: InstanceWorld) -> tuple[object, object]:
    """Return what status and what the condition say was observed."""
    status = world.get()["status"]
    return status["observedGeneration"], world.ready().get("observedGeneration")


def test_a_generation_is_observed_by_the_condition_once_it_is_judged(
    ready: InstanceWorld,
) -> None:
    ready.edit(sslMode="require")
    unjudged = said(ready, seconds=0.5), generations(ready)
    judged = said(ready), generations(ready)
    ready.edit(port=1)
    failed = said(ready)[1], generations(ready)
    assert unjudged[0] == READY  # nothing was learnt, so nothing is said anew
    assert (unjudged[1], judged, failed) == (
        (2, 1),
        (READY, (2, 2)),
        ("DependencyUnavailable", (3, 3)),
    )


def test_a_call_that_finds_the_lock_taken_leaves_the_status_alone(ready: InstanceWorld) -> None:
    add_row(ready, "gone")
    ready.edit(sslMode="require")
    before = ready.get()["status"]
    with locked(ready, manifests.uid(ready.get())):
        assert ready.sync().status == before
    assert (said(ready), generations(ready)) == (READY, (2, 2))


# The sweep

OLD, YOUNG = "1 hour", "1 minute"


def add_row(
    world: InstanceWorld,
    name: str,
    *,
    uid: str = "",
    instance_uid: str = "",
    age: str = OLD,
    state: str = "managed",
) -> str:
    """Register a Tenant past the hooks; return its UID."""
    uid = uid or str(uuid.uuid4())
    world.server.sql(
        sql.SQL(
            "INSERT INTO {}.tenant (uid, instance_uid, instance_name, namespace, name,"
            " database_name, role_name, kv_path, secret_name, state, updated_at)"
            " VALUES (%s, %s, 'shared', 'team-a', %s, %s, %s, 'path', 'secret', %s,"
            " now() - %s::interval)"
        ).format(sql.Identifier(world.schema)),
        [
            uid,
            instance_uid or manifests.uid(world.get()),
            name,
            name,
            name,
            state,
            age,
        ],
    )
    return uid


def states(world: InstanceWorld) -> dict[object, object]:
    return dict(
        world.superuser("SELECT name, state FROM {}.tenant ORDER BY 1", world.schema)  # type: ignore[arg-type]  # rows are pairs
    )


def make_tenant(world: InstanceWorld, name: str, **changes: Any) -> str:  # noqa: ANN401  members
    """Create a Tenant; return its UID."""
    bare = tenant(metadata={"name": name, "uid": None, "generation": None})
    return manifests.uid(world.cluster.create(merged(bare, changes)))


def swept(world: InstanceWorld, ago: str) -> None:
    """Let the last sweep be so long ago, by the server's clock."""
    age = sql.SQL("UPDATE {}.meta SET swept_at = now() - %s::interval")
    world.server.sql(age.format(sql.Identifier(world.schema)), [ago])


def sweep(world: InstanceWorld) -> Response:
    """Sync when a sweep is due."""
    swept(world, "1 hour")
    return world.sync()


def test_only_rows_of_tenants_that_are_proved_gone_are_marked(ready: InstanceWorld) -> None:
    alive = make_tenant(ready, "alive")
    elsewhere = make_tenant(ready, "elsewhere", spec={"instanceRef": "another"})
    make_tenant(ready, "again")
    deleted = make_tenant(ready, "deleted")
    ready.cluster.delete(TENANTS, "team-a", "deleted")
    add_row(ready, "alive", uid=alive)
    add_row(ready, "elsewhere", uid=elsewhere)
    add_row(ready, "deleted", uid=deleted)
    again = add_row(ready, "again")
    gone = add_row(ready, "gone")
    planned = add_row(ready, "planned", state="planned")
    add_row(ready, "young", age=YOUNG)
    add_row(ready, "of-another-instance", instance_uid=str(uuid.uuid4()))
    add_row(ready, "deleting", state="deleting")
    assert told(sweep(ready)) == READY
    assert states(ready) == {
        "again": "unmanaged",
        "alive": "managed",
        "deleted": "managed",
        "deleting": "deleting",
        "elsewhere": "managed",
        "gone": "unmanaged",
        "of-another-instance": "managed",
        "planned": "unmanaged",
        "young": "managed",
    }
    marked = [action for action, outcome in ready.effects if outcome == "ok"]
    assert set(marked[:-1]) == {MarkUnmanaged(uid) for uid in (again, gone, planned)}
    assert marked[-1] == RecordSweep()


def test_a_sweep_waits_for_its_period(ready: InstanceWorld) -> None:
    add_row(ready, "gone")
    swept(ready, "9 minutes")
    ready.sync()
    early = states(ready)
    swept(ready, "11 minutes")
    ready.sync()
    assert (early, states(ready)) == ({"gone": "managed"}, {"gone": "unmanaged"})


def test_a_server_whose_clock_is_behind_is_swept_and_ready(ready: InstanceWorld) -> None:
    add_row(ready, "alive", uid=make_tenant(ready, "alive"))
    add_row(ready, "gone")
    ready.wait(3600)
    assert (said(ready), states(ready)) == (READY, {"alive": "managed", "gone": "unmanaged"})


def test_a_sweep_that_cannot_be_written_does_not_make_the_instance_unready(
    ready: InstanceWorld,
) -> None:
    add_row(ready, "gone")
    ready.superuser(
        "CREATE FUNCTION {}.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE 'no update'; END $$",
        ready.schema,
    )
    trigger = "CREATE TRIGGER refuse BEFORE UPDATE ON {}.tenant FOR EACH ROW"
    ready.superuser(f"{trigger} EXECUTE FUNCTION {{}}.refuse()", ready.schema, ready.schema)
    failed = said(ready), states(ready)
    ready.superuser("DROP TRIGGER refuse ON {}.tenant", ready.schema)
    ready.sync()
    assert (failed, states(ready)) == ((READY, {"gone": "managed"}), {"gone": "unmanaged"})


@pytest.mark.parametrize("fault", [500, 403, 404, "close"])
@pytest.mark.parametrize("what", ["list", "get"])
def test_nothing_is_marked_while_the_api_server_does_not_say_who_lives(
    ready: InstanceWorld, what: str, fault: int | Literal["close"]
) -> None:
    add_row(ready, "gone")
    ending = "/postgresqltenants" if what == "list" else "/postgresqltenants/gone"
    ready.api.faults = lambda _method, path: fault if path.endswith(ending) else None
    failed = told(sweep(ready)), states(ready)
    ready.api.faults = lambda _method, _path: None
    sweep(ready)
    assert (failed, states(ready)) == ((READY, {"gone": "managed"}), {"gone": "unmanaged"})


def test_a_tenant_on_the_second_page_lives_by_the_list_alone(ready: InstanceWorld) -> None:
    for number in range(500):
        make_tenant(ready, f"tenant-{number:03}")
    last = make_tenant(ready, "zzz")
    add_row(ready, "zzz", uid=last)
    ready.api.faults = lambda _method, path: 500 if path.endswith("/zzz") else None
    sweep(ready)
    assert (states(ready), ready.effects) == ({"zzz": "managed"}, [(RecordSweep(), "ok")])


def test_half_a_list_marks_nothing(ready: InstanceWorld) -> None:
    for number in range(500):
        make_tenant(ready, f"tenant-{number:03}")
    make_tenant(ready, "zzz")
    add_row(ready, "gone")
    pages = iter([None, 500])
    ready.api.faults = lambda _method, path: (
        next(pages, None) if path.endswith("/postgresqltenants") else None
    )
    sweep(ready)
    assert (states(ready), ready.effects) == ({"gone": "managed"}, [])


def row_state(world: TenantWorld) -> object:
    query = "SELECT state FROM tenant_registry.tenant WHERE name = %s"
    return world.postgres.sql(query, [world.name])


def let_go(world: TenantWorld) -> None:
    """Mark the Tenant's row as a sweep would, had it been misled."""
    mark = "UPDATE tenant_registry.tenant SET state = 'unmanaged' WHERE name = %s"
    world.postgres.sql(mark, [world.name])


def test_a_tenant_whose_row_was_let_go_by_mistake_takes_it_back(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> None:
    with TenantWorld(postgres, openbao, authority, tmp_path) as world:
        world.make_instance()
        world.make_tenant()
        world.settle()
        let_go(world)
        world.sync()
        assert (world.ready()["status"], row_state(world)) == ("True", [("managed",)])


def test_a_late_call_does_not_take_back_the_row_of_a_tenant_that_is_going(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> None:
    with TenantWorld(postgres, openbao, authority, tmp_path) as world:
        world.make_instance()
        world.make_tenant()
        late = world.settle()
        world.delete()
        let_go(world)
        world.sync(parent=late)
        assert row_state(world) == [("unmanaged",)]


# Deletion


def delete(world: InstanceWorld, name: str = "shared") -> None:
    world.cluster.delete(INSTANCES, None, name)


def left(count: int) -> tuple[str, ...]:
    return (
        "Unknown",
        "Reconciling",
        f"{count} PostgreSQLTenants still name this Instance: delete them",
    )


def test_tenants_hold_their_instance_until_the_last_is_gone(ready: InstanceWorld) -> None:
    for name in ("one", "two"):
        make_tenant(ready, name)
    make_tenant(ready, "other", spec={"instanceRef": "another"})
    ready.cluster.delete(TENANTS, "team-a", "two")
    delete(ready)
    both = ready.finalize()
    forget(ready, "one")
    terminating = ready.finalize()
    forget(ready, "two")
    last = ready.finalize()
    assert [(told(r), r.finalized, r.recheck) for r in (both, terminating)] == [
        (left(2), False, 5.0),
        (left(1), False, 5.0),
    ]
    assert (both.status["phase"], last.finalized) == ("Deleting", True)


def forget(world: InstanceWorld, name: str) -> None:
    """Let a Tenant go: without its finalizer it is deleted at once."""
    there = world.cluster.get(TENANTS, "team-a", name) or {}
    there["metadata"]["finalizers"] = []
    world.cluster.replace(there)
    if world.cluster.get(TENANTS, "team-a", name) is not None:
        world.cluster.delete(TENANTS, "team-a", name)


@pytest.mark.parametrize("fault", [500, 403, 404, 410, "close"])
def test_an_instance_stays_while_its_tenants_cannot_be_counted(
    ready: InstanceWorld, fault: int | Literal["close"]
) -> None:
    delete(ready)
    ready.api.faults = lambda _method, path: fault if path.endswith("/postgresqltenants") else None
    response = ready.finalize()
    ready.api.faults = lambda _method, _path: None
    assert told(response)[:2] == ("Unknown", "Reconciling")
    assert told(response)[2].startswith("the Tenants of this Instance cannot be listed: Kubernetes")
    assert (response.finalized, ready.finalize().finalized) == (False, True)


def without_selectable_fields() -> list[Manifest]:
    definitions = crds()
    for definition in definitions:
        for version in definition["spec"]["versions"]:
            version.pop("selectableFields", None)
    return definitions


def test_an_api_server_without_selectable_fields_is_asked_for_everything(
    server: Server, authority: Authority, tmp_path: Path
) -> None:
    definitions = without_selectable_fields()
    with InstanceWorld(server, authority, tmp_path, definitions=definitions) as world:
        world.make()
        make_tenant(world, "one")
        make_tenant(world, "other", spec={"instanceRef": "another"})
        delete(world)
        held = world.finalize()
        forget(world, "one")
        assert (told(held), world.finalize().finalized) == (left(1), True)


def test_a_live_instance_that_lost_its_label_is_let_go_as_it_is(ready: InstanceWorld) -> None:
    make_tenant(ready, "one")
    before = ready.get()["status"]
    assert ready.finalize() == Response(before, finalized=True)


def test_an_instance_without_our_finalizer_is_none_of_our_business(ready: InstanceWorld) -> None:
    make_tenant(ready, "one")
    delete(ready)
    before = ready.get()["status"]
    response = ready.finalize(controller=TENANT_FINALIZER)
    assert response == Response(before, finalized=True)


def test_an_instance_goes_with_a_wrong_spec_and_without_a_server(world: InstanceWorld) -> None:
    world.make(port=1)
    broken = world.get()
    broken["spec"] = {"endpoint": {"host": "192.0.2.1"}}
    world.cluster.force(broken)
    assert told(world.sync())[1] == "InvalidSpec"
    make_tenant(world, "one")
    delete(world)
    held = world.finalize()
    forget(world, "one")
    assert (told(held), world.finalize().finalized) == (left(1), True)

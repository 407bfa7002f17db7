"""Logging in: who is let in, and how each refusal reads."""

from __future__ import annotations

import secrets
import threading
from dataclasses import replace

import pytest

from hooks.core.errors import Blocked, Denied, EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.ports import Admin, Endpoint, Login, Presence, Row, ServerInfo
from tests.effects.postgres.conftest import World, ended, inside, provide, tenant
from tests.effects.postgres.relay import Relay

PASSWORD = "correct horse"

WRONG = Refused(
    "PostgreSQL",
    "cannot log in: the user name or password is wrong, or the password has expired",
    code="28P01",
)
NOT_LET_IN = Refused(
    "PostgreSQL",
    "cannot log in: the server does not let this role in: see pg_hba.conf, or it has NOLOGIN",
    code="28000",
)
NOT_SCRAM = Refused(
    "PostgreSQL",
    "cannot log in: the server asks for no password, or not for one in the form of SCRAM:"
    " see pg_hba.conf",
)
POOLER = "a connection pooler seems to be in between; the controller needs a direct connection"


def make_role(world: World, kind: str, options: str = "LOGIN") -> Login:
    """Make a role with PASSWORD; see HBA for the kinds."""
    name = f"{kind}_{secrets.token_hex(4)}"
    world.sql(f"CREATE ROLE {{}} PASSWORD '{PASSWORD}' {options}", name)
    return Login(name, PASSWORD)


def log_in(world: World, login: Login, endpoint: Endpoint | None = None) -> EffectError | None:
    return ended(lambda: world.bind().log_in(endpoint or world.endpoint, login))


def test_the_server_tells_about_itself_and_the_admin(world: World) -> None:
    with world.bind().administer(world.endpoint, world.login) as admin:
        assert admin.server() == ServerInfo(
            version="17.10",
            version_num=170010,
            standby=False,
            read_only=False,
            superuser=False,
            createdb=True,
            createrole=True,
            inherit=True,
            registry_creatable=True,
        )


def test_a_role_without_rights_is_told_so(world: World) -> None:
    login = make_role(world, "plain", "LOGIN NOINHERIT")
    with world.bind().administer(world.endpoint, login) as session:
        found = session.server()
    assert (found.superuser, found.createdb, found.createrole, found.inherit) == (
        False,
        False,
        False,
        False,
    )
    assert found.registry_creatable is False


def test_somebody_elses_registry_is_not_ours_to_create(world: World, admin: Admin) -> None:
    assert admin.server().registry_creatable is True
    login = make_role(world, "plain", "LOGIN CREATEDB CREATEROLE")
    world.sql("GRANT CREATE ON DATABASE postgres TO {}", login.username)
    with world.bind().administer(world.endpoint, login) as session:
        assert session.server().registry_creatable is False


def test_a_server_that_is_read_only_by_default_is_written_to_all_the_same(
    world: World, row: Row, admin: Admin
) -> None:
    provide(admin, row)
    world.sql("ALTER DATABASE {} SET default_transaction_read_only = on", row.database)
    world.bind().create_extension(inside(world, row), tenant(row), "hstore")
    assert "hstore" in world.bind().log_in(inside(world, row), tenant(row)).extensions


def test_a_login_says_where_it_got(world: World, row: Row, admin: Admin) -> None:
    provide(admin, row)
    assert world.bind().log_in(inside(world, row), tenant(row)) == Presence(
        role=row.role, database=row.database, extensions=frozenset({"plpgsql"})
    )


@pytest.mark.parametrize(
    "password", [r"""p@ss:/?#[]'"\ %""", "pässwörd ☃", "a b c ", "SCRAM-SHA-256$x"]
)
def test_any_password_will_do(world: World, row: Row, admin: Admin, password: str) -> None:
    admin.insert_row(row)
    login = Login(row.role, password)
    admin.create_role(row.uid, login)
    assert world.bind().log_in(world.endpoint, login).role == row.role


def test_a_wrong_password_is_refused(world: World) -> None:
    assert log_in(world, replace(make_role(world, "plain"), password="wrong")) == WRONG
    assert log_in(world, Login("nonesuch", PASSWORD)) == WRONG


def test_an_empty_password_is_refused_without_asking(world: World) -> None:
    assert log_in(world, replace(world.login, password="")) == Refused(
        "PostgreSQL", "cannot log in: the user name or the password is empty"
    )


@pytest.mark.parametrize(
    ("kind", "options", "refusal"),
    [
        pytest.param("rejected", "LOGIN", NOT_LET_IN, id="pg_hba"),
        pytest.param("plain", "NOLOGIN", NOT_LET_IN, id="nologin"),
        pytest.param("plain", "LOGIN VALID UNTIL '2001-01-01'", WRONG, id="expired"),
        pytest.param(
            "plain",
            "LOGIN CONNECTION LIMIT 0",
            Unavailable(
                "PostgreSQL",
                "cannot log in: the server, the database or the role has no free connection",
                code="53300",
            ),
            id="connection-limit",
        ),
        pytest.param("trusted", "LOGIN", NOT_SCRAM, id="trust"),
        pytest.param("clear", "LOGIN", NOT_SCRAM, id="password-in-clear"),
    ],
)
def test_a_role_that_may_not_log_in_is_told_apart(
    world: World, kind: str, options: str, refusal: EffectError
) -> None:
    assert log_in(world, make_role(world, kind, options)) == refusal


def test_the_admin_may_use_a_password_in_clear_inside_tls_only(world: World) -> None:
    login = make_role(world, "clear")
    with world.bind().administer(world.endpoint, login) as session:
        assert session.role(login.username) is not None
    bare = replace(world.endpoint, ssl_mode="disable")
    with pytest.raises(Refused) as caught, world.bind().administer(bare, login):
        pass
    assert caught.value == NOT_SCRAM


@pytest.mark.parametrize("password", ["a\0b", "\ud800"], ids=["nul", "surrogate"])
def test_a_password_that_no_server_can_have_is_refused(world: World, password: str) -> None:
    assert log_in(world, replace(world.login, password=password)) == Refused(
        "PostgreSQL",
        "cannot log in: the user name or the password holds a character that PostgreSQL lacks",
    )


def test_an_unknown_database_is_named_as_the_fault(world: World) -> None:
    endpoint = replace(world.endpoint, database="host=evil dbname=postgres")
    assert log_in(world, world.login, endpoint) == Misconfigured(
        "PostgreSQL", "cannot log in: the database does not exist", code="3D000"
    )


def test_a_database_that_is_closed_to_the_role_or_to_all_is_told_apart(
    world: World, row: Row, admin: Admin
) -> None:
    provide(admin, row)
    stranger = make_role(world, "plain")
    assert log_in(world, stranger, inside(world, row)) == Denied(
        "PostgreSQL", "cannot log in: the role may not connect to the database", code="42501"
    )
    world.sql("ALTER DATABASE {} ALLOW_CONNECTIONS false", row.database)
    assert log_in(world, tenant(row), inside(world, row)) == Blocked(
        "PostgreSQL", "cannot log in: the database accepts no connections", code="55000"
    )


def test_errors_hold_no_name_and_no_password(world: World) -> None:
    login = Login("secretive_admin", "hush-hush")
    error = log_in(world, login)
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        parts.append(repr(cause) + str(cause))
        cause = cause.__cause__ or cause.__context__
    assert not any(word in part for part in parts for word in ("secretive", "hush"))


def test_the_settings_of_a_tenants_database_do_not_steer_the_admin(
    world: World, row: Row, admin: Admin
) -> None:
    provide(admin, row)
    world.sql("ALTER DATABASE {} SET search_path = evil, public", row.database)
    world.sql("ALTER DATABASE {} SET role = {}", row.database, row.role)
    with world.bind().administer(inside(world, row), world.login) as session:
        assert session.server().createrole is True
    with world.bind().administer(inside(world, row), world.superuser) as session:
        assert session.server().superuser is True


def test_a_pooler_that_lets_us_in_is_noticed(world: World) -> None:
    with Relay(world.server.port) as relay:
        relay.change_process_id()
        endpoint = replace(world.endpoint, ssl_mode="disable", port=relay.port)
        assert log_in(world, world.login, endpoint) == Misconfigured("PostgreSQL", POOLER)


@pytest.mark.parametrize(
    ("code", "text", "refusal"),
    [
        pytest.param(
            "08P01",
            "unsupported startup parameter: options",
            Misconfigured("PostgreSQL", f"cannot log in: {POOLER}", code="08P01"),
            id="pooler",
        ),
        pytest.param(
            "57P03",
            "Das Datenbanksystem startet",
            Unavailable(
                "PostgreSQL",
                "cannot log in: the server is starting up or shutting down",
                code="57P03",
            ),
            id="starting",
        ),
        pytest.param(
            "28P01",
            "Passwort-Authentifizierung für Benutzer »admin« fehlgeschlagen",
            WRONG,
            id="password",
        ),
        pytest.param(
            "ZZ999",
            "secret sentence",
            Blocked("PostgreSQL", "cannot log in: the server refused", code="ZZ999"),
            id="unknown",
        ),
    ],
)
def test_a_code_decides_in_whatever_language_the_server_speaks(
    world: World, code: str, text: str, refusal: EffectError
) -> None:
    with Relay(world.server.port) as relay:
        relay.answer(code, text)
        endpoint = replace(world.endpoint, ssl_mode="disable", port=relay.port)
        assert log_in(world, world.login, endpoint) == refusal


def test_a_lock_excludes_a_second_session_until_it_is_closed(world: World) -> None:
    with world.bind().administer(world.endpoint, world.login) as second:
        with world.bind().administer(world.endpoint, world.login) as first:
            assert first.try_lock(world.schema) is True
            assert second.try_lock(world.schema) is False
            assert second.try_lock(f"{world.schema}-other") is True
        assert _soon(lambda: second.try_lock(world.schema))


def _soon(ready: object) -> bool:
    """The server frees the locks a moment after the client has gone."""
    assert callable(ready)
    pause = threading.Event()
    return any(ready() or pause.wait(0.02) for _ in range(250))


def test_a_session_that_the_server_ends_is_unavailable(world: World) -> None:
    with world.bind().administer(world.endpoint, world.login) as admin:
        assert admin.try_lock(world.schema)
        world.query(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
            " AND ((classid::int8 << 32) | objid::int8) = hashtextextended(%s, 0)",
            world.schema,
        )
        ended_by_server = ended(lambda: admin.role("postgres"))
    assert ended_by_server == Unavailable(
        "PostgreSQL",
        "cannot read the role: the server is starting up, shutting down or ended the session",
        code="57P01",
    )

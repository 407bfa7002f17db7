"""Whatever the owner does in and to its database, none of its code runs as the admin.

Each test lives a Tenant's life on real servers and then searches what was shown, and the server's
log, for passwords and for the admin's name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooks.core.contract import Response
from hooks.core.manifests import Manifest
from hooks.effects.ports import Credential, Services
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import Login, PostgresServer
from hooks.sandbox.samples import LocalServer, localized
from hooks.tenant.report import READY_MESSAGE
from tests.builders import INSTANCE_FINALIZER, instance
from tests.tenant.faults import Fuse
from tests.tenant.world import BASE, NAMESPACE, TENANTS, TenantWorld

READY = ("True", "Ready", READY_MESSAGE)

Says = tuple[str, str, str]


@contextmanager
def unmistakable_admin(server: PostgresServer) -> Iterator[PostgresServer]:
    """Give the admin a name that no text holds by accident, for a while."""
    usual = server.admin
    rare = Login("keyholder_q7x", usual.password)
    rename = sql.SQL("ALTER ROLE {} RENAME TO {}")
    server.sql(rename.format(sql.Identifier(usual.name), sql.Identifier(rare.name)))
    server.admin = rare
    try:
        yield server
    finally:
        server.sql(rename.format(sql.Identifier(rare.name), sql.Identifier(usual.name)))
        server.admin = usual


class Watched(TenantWorld):
    """A world with an owner and an operator in it, which remembers all that it showed."""

    def __init__(
        self,
        postgres: PostgresServer,
        openbao: OpenBaoServer,
        authority: Authority,
        directory: Path,
    ) -> None:
        super().__init__(postgres, openbao, authority, directory)
        self.shown: list[str] = []
        self._passwords = {postgres.admin.password, postgres.superuser.password}

    def __enter__(self) -> Watched:
        return self

    def sync(
        self,
        name: str = "",
        *,
        wrap: Callable[[Services], Services] = lambda services: services,
        parent: Manifest | None = None,
    ) -> Response:
        response = super().sync(name, wrap=wrap, parent=parent)
        self.shown.append(repr(response))
        credential = self.credential(name)
        if credential is not None and credential.login is not None:
            self._passwords.add(credential.login.password)
        return response

    def keep(self, role: str) -> None:
        """Set that this role keeps CONNECT on every Tenant's database."""
        self._servers.keepers |= {role}

    def make_superuser_instance(self) -> None:
        """Create an Instance on the same server whose admin is a superuser."""
        spec = {"adminCredentialRef": {"name": "root-admin"}}
        bare = instance(
            metadata={"name": "root", "uid": None, "generation": None}, spec=spec, status=None
        )
        bare["metadata"]["finalizers"] = [INSTANCE_FINALIZER]
        server, root = self.postgres, self.postgres.superuser
        local = LocalServer(server.host, server.hostaddr, server.port, root.name, root.password)
        for manifest in localized([bare], local, "database-hooks"):
            self.cluster.apply(manifest)
        self.sync_instance("root")

    def ready_tenant(self, name: str = "", **spec: object) -> None:
        """Create a Tenant and bring it to Ready."""
        self.make_tenant(name, **spec)
        self.settle(name)
        assert self.says(name) == READY

    def says(self, name: str = "") -> Says:
        """Return the Ready condition, with the Tenant's own name as a word."""
        ready, name = self.ready(name), name or self.name
        return (
            ready["status"],
            ready["reason"],
            ready["message"].replace(name, "NAME"),
        )

    def after(self, name: str = "") -> Says:
        """Let the hooks do what they can, and return what they then say."""
        self.settle(name)
        return self.says(name)

    def credential(self, name: str = "") -> Credential | None:
        return self.services().credentials.read(f"{BASE}/{NAMESPACE}/{name or self.name}")

    def login(self, name: str = "") -> Login:
        credential = self.credential(name)
        assert credential is not None
        assert credential.login is not None
        return Login(credential.login.username, credential.login.password)

    def owner(self, *statements: str, database: str = "", name: str = "") -> None:
        """Run statements as the Tenant, in its database if no other; {me} is its name."""
        self._run(statements, database or name or self.name, name, self.login(name))

    def operator(self, *statements: str, database: str = "postgres", name: str = "") -> None:
        """Run statements as the superuser; {aside} is another name for the same."""
        self._run(statements, database, name, self.postgres.superuser)

    def _run(self, statements: tuple[str, ...], database: str, name: str, login: Login) -> None:
        me = name or self.name
        names = {"me": sql.Identifier(me), "aside": sql.Identifier(f"aside_{me}")}
        with self.session(login, database) as connection:
            for statement in statements:
                connection.execute(sql.SQL(statement).format(**names))

    def session(self, login: Login, database: str = "") -> psycopg.Connection:
        """Open a session of somebody's own."""
        parameters = self.postgres.parameters(login, database=database or self.name)
        return psycopg.connect(make_conninfo(**parameters), autocommit=True)

    def asked(self, query: str, *values: object, database: str = "postgres") -> list[object]:
        """Return the one column of a query of the superuser."""
        return [row[0] for row in self.postgres.sql(query, values, database=database)]

    def inside(self, query: str) -> list[object]:
        """Ask in the Tenant's database."""
        return self.asked(query, database=self.name)

    def stranger(self) -> Login:
        """Make a login of somebody who has nothing to do with all this."""
        login = Login(f"x{self.name}", "a-password-of-a-stranger")
        self.postgres.sql(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(
                sql.Identifier(login.name), sql.Literal(login.password)
            )
        )
        return login

    def leaks(self) -> list[str]:
        """Return where a password was shown, or the admin's name."""
        shown = "\n".join([*self.shown, *map(repr, self.effects), repr(self.cluster.list(TENANTS))])
        log = self.postgres.log_text()
        places = [
            place
            for place, text in (("shown", shown), ("log", log))
            if any(password in text for password in self._passwords)
        ]
        return places + (["admin's name"] if self.postgres.admin.name in shown else [])


@pytest.fixture(scope="module", autouse=True)
def _admin(postgres: PostgresServer) -> Iterator[None]:
    with unmistakable_admin(postgres):
        yield


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Watched]:
    with Watched(postgres, openbao, authority, tmp_path) as made:
        made.make_instance()
        yield made
        assert made.leaks() == []


@pytest.fixture
def root(world: Watched) -> Watched:
    """The same with an Instance "root", whose admin is a superuser: the best prey."""
    world.make_superuser_instance()
    return world


# Settings of the owner's choice

COSMETICS = (
    "timezone = 'Asia/Kathmandu'",
    "datestyle = 'SQL, DMY'",
    "client_encoding = latin1",
    "standard_conforming_strings = off",
    "transform_null_equals = on",
    "quote_all_identifiers = on",
    "check_function_bodies = off",
    "client_min_messages = debug5",
)


@pytest.mark.parametrize(
    "settings",
    [
        ("search_path = public, pg_catalog",),
        ("role = {me}",),
        ("default_transaction_read_only = on",),
        ("default_transaction_isolation = serializable", "default_transaction_deferrable = on"),
        ("statement_timeout = 1",),
        ("lock_timeout = 1", "idle_in_transaction_session_timeout = 1"),
        ("session_replication_role = replica",),
        COSMETICS,
    ],
    ids=lambda settings: settings[0].partition(" ")[0],
)
def test_settings_of_the_owner_steer_nobody_else(root: Watched, settings: tuple[str, ...]) -> None:
    root.ready_tenant(instanceRef="root")
    root.operator("GRANT SET ON PARAMETER session_replication_role TO {me}")
    steer = [f"ALTER {what} {{me}} SET {one}" for one in settings for what in ("ROLE", "DATABASE")]
    root.owner(*steer)
    assert root.after() == READY
    root.edit(extensions=["pg_trgm", "earthdistance"])
    assert root.after() == READY
    assert set(root.inside("SELECT extname FROM pg_extension")) == {
        "plpgsql",
        "pg_trgm",
        "cube",
        "earthdistance",
    }


def test_a_setting_that_locks_the_owner_out_is_reported(world: Watched) -> None:
    world.ready_tenant()
    world.owner("ALTER DATABASE {me} SET local_preload_libraries = 'nonesuch'")
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        "database 'NAME': PostgreSQL: cannot log in: the server refused (58P01)",
    )
    world.operator("ALTER DATABASE {me} RESET ALL")
    assert world.after() == READY


# Code of the owner's making

CATCH = "INSERT INTO public.caught VALUES (session_user)"


def planted(name: str, arguments: str, result: str, value: str) -> str:
    """Return a function that notes who called it."""
    return (
        f"CREATE FUNCTION public.{name}({arguments}) RETURNS {result} LANGUAGE plpgsql"
        f" AS $$ BEGIN {CATCH}; RETURN {value}; END $$"
    )


TRAPS = (
    "CREATE TABLE public.caught (who text)",
    "GRANT INSERT ON public.caught TO PUBLIC",
    planted("same", "text, text", "boolean", "true"),
    planted("same", "name, text", "boolean", "true"),
    planted("same", "name, name", "boolean", "true"),
    planted("any_same", "oid, integer", "boolean", "true"),
    planted("pg_backend_pid", "", "integer", "0"),
    planted("current_setting", "text", "text", "'public'"),
    planted("set_config", "text, text, boolean", "text", "'x'"),
    planted("current_database", "", "name", "'elsewhere'"),
    planted("to_text", "integer", "text", "'x'"),
    "CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = text, RIGHTARG = text)",
    "CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = name, RIGHTARG = text)",
    "CREATE OPERATOR public.= (FUNCTION = public.same, LEFTARG = name, RIGHTARG = name)",
    "CREATE OPERATOR public.= (FUNCTION = public.any_same, LEFTARG = oid, RIGHTARG = integer)",
    "CREATE TYPE public.shade AS ENUM ('dark')",
    planted("to_shade", "text", "public.shade", "'dark'"),
    "CREATE CAST (text AS public.shade) WITH FUNCTION public.to_shade(text) AS IMPLICIT",
    (
        "CREATE VIEW public.pg_settings AS SELECT 'statement_timeout'::text AS name"
        " WHERE public.same('a'::text, 'b'::text)"
    ),
    (
        "CREATE VIEW public.pg_extension AS SELECT 'earthdistance'::name AS extname"
        " WHERE public.same('a'::text, 'b'::text)"
    ),
    "ALTER DATABASE {me} SET search_path = public, pg_catalog",
)


@pytest.mark.parametrize("ref", ["shared", "root"])
def test_the_admin_never_runs_the_owners_code(root: Watched, ref: str) -> None:
    root.ready_tenant(instanceRef=ref)
    root.owner(*TRAPS)
    unpinned = "SELECT current_setting('port'), current_database() FROM pg_extension"
    root.operator("SELECT 'a'::text = 'b'::text", unpinned, database=root.name)
    assert set(root.inside("SELECT who FROM public.caught")) == {"postgres"}
    root.operator("DELETE FROM public.caught", database=root.name)
    extensions = ["hstore", "pg_trgm", *(["earthdistance", "dblink"] if ref == "root" else [])]
    root.edit(extensions=extensions)
    assert root.after() == READY
    assert set(extensions) <= set(root.inside("SELECT extname FROM pg_catalog.pg_extension"))
    assert root.inside("SELECT who FROM public.caught") == []


def test_a_view_that_claims_extensions_convinces_nobody(world: Watched) -> None:
    world.ready_tenant()
    world.owner(
        "CREATE VIEW public.pg_extension AS SELECT 'pg_trgm'::name AS extname",
        "ALTER ROLE {me} SET search_path = public, pg_catalog",
    )
    world.edit(extensions=["pg_trgm"])
    assert world.after() == READY
    assert world.inside("SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'") == [1]


IN_THE_WAY = "an object in the database has the name of one that it makes"


@pytest.mark.parametrize(
    ("obstacle", "cause"),
    [
        ("CREATE TYPE public.gtrgm AS ENUM ('x')", f"{IN_THE_WAY} (42710)"),
        (
            planted("similarity", "text, text", "real", "1"),
            f"{IN_THE_WAY} (42723)",
        ),
        ("DROP SCHEMA public", "schema public does not exist in the database (3F000)"),
    ],
)
def test_what_keeps_an_extension_out_is_named(world: Watched, obstacle: str, cause: str) -> None:
    world.ready_tenant()
    world.owner(obstacle)
    world.edit(extensions=["pg_trgm"])
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        f"installing extension pg_trgm: PostgreSQL: cannot install extension pg_trgm: {cause}",
    )
    world.owner("DROP SCHEMA IF EXISTS public CASCADE", "CREATE SCHEMA public")
    assert world.after() == READY


def test_an_open_transaction_of_the_owner_is_not_waited_for(world: Watched) -> None:
    world.ready_tenant()
    with world.session(world.login()) as session:
        session.execute("BEGIN")
        session.execute("CREATE EXTENSION hstore")
        world.edit(extensions=["hstore"])
        world.sync()
        assert world.says() == (
            "False",
            "ProvisioningFailed",
            (
                "installing extension hstore: PostgreSQL: cannot install extension hstore:"
                " another session holds a lock (55P03)"
            ),
        )
        session.execute("ROLLBACK")
    assert world.after() == READY


LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"


LOCKED = (
    "PostgreSQL: a session of another role holds this Tenant's lock: end it, and let only"
    " administrators connect to the Instance's database"
)


def test_a_lock_that_the_owner_holds_is_reported(world: Watched) -> None:
    uid = world.make_tenant()["metadata"]["uid"]
    world.settle()
    with world.session(world.login(), "postgres") as session:
        session.execute(LOCK, [uid])
        world.edit(extensions=["hstore"])
        assert world.after() == (
            "False",
            "ProvisioningFailed",
            f"installing extension hstore: {LOCKED}",
        )
    assert world.after() == READY


def test_a_lock_that_the_owner_holds_does_not_stop_a_delete_in_silence(world: Watched) -> None:
    uid = world.make_tenant(deletionPolicy="Delete")["metadata"]["uid"]
    world.settle()
    with world.session(world.login(), "postgres") as session:
        session.execute(LOCK, [uid])
        world.delete()
        assert world.after() == (
            "False",
            "ProvisioningFailed",
            f"recording the deletion: {LOCKED}",
        )
    assert world.settle() == {}


def test_a_lock_on_the_roles_name_is_reported(world: Watched) -> None:
    world.ready_tenant()
    world.owner("ALTER ROLE {me} PASSWORD 'of-the-owners-choice'")
    with world.session(Login(world.name, "of-the-owners-choice"), "postgres") as session:
        session.execute(LOCK, [f"role:{world.name}"])
        world.sync()
        assert world.says() == (
            "False",
            "ProvisioningFailed",
            (
                "role 'NAME' cannot log in with the stored password, even after it was set again:"
                " PostgreSQL: cannot set the role's password: another session holds a lock (55P03)"
            ),
        )
    assert world.after() == READY


def test_the_registry_is_closed_to_the_owner(world: Watched) -> None:
    world.ready_tenant()
    for table in ("tenant", "meta"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.owner(f"TABLE tenant_registry.{table}", database="postgres")


# The owner's password and rights


def md5(login: Login) -> str:
    digest = hashlib.md5(f"{login.password}{login.name}".encode())  # noqa: S324  PostgreSQL's own
    return f"'md5{digest.hexdigest()}'"


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(lambda _login: "'of-the-owners-choice'", id="another"),
        pytest.param(lambda _login: "NULL", id="none"),
        pytest.param(md5, id="the-same-as-md5"),
    ],
)
def test_a_password_that_the_owner_set_is_set_back(
    world: Watched, planted: Callable[[Login], str]
) -> None:
    world.ready_tenant()
    before = world.credential()
    world.owner(f"ALTER ROLE {{me}} PASSWORD {planted(world.login())}")
    with pytest.raises(psycopg.OperationalError):
        world.session(world.login())
    world.sync()
    assert world.says() == READY
    assert world.credential() == before
    world.session(world.login()).close()


def test_the_public_is_kept_out_again(world: Watched) -> None:
    world.ready_tenant()
    stranger = world.stranger()
    world.owner("GRANT ALL ON DATABASE {me} TO PUBLIC")
    world.session(stranger).close()
    assert world.after() == READY
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        world.session(stranger)


def test_a_friend_of_the_owner_who_lets_the_public_in_is_reported(world: Watched) -> None:
    world.ready_tenant()
    stranger = world.stranger()
    world.postgres.sql(
        sql.SQL("GRANT CONNECT ON DATABASE {} TO {} WITH GRANT OPTION").format(
            sql.Identifier(world.name), sql.Identifier(stranger.name)
        ),
        login=world.login(),
    )
    grant = sql.SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(sql.Identifier(world.name))
    world.postgres.sql(grant, login=stranger)
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        "PUBLIC still has rights on database 'NAME': the REVOKE had no effect",
    )
    revoke = sql.SQL("REVOKE CONNECT ON DATABASE {} FROM PUBLIC").format(sql.Identifier(world.name))
    world.postgres.sql(revoke, login=stranger)
    assert world.after() == READY


def test_keepers_keep_connect_and_nobody_else_does(world: Watched) -> None:
    keeper = world.stranger()
    world.keep(keeper.name)
    world.ready_tenant()
    world.session(keeper).close()
    world.owner(
        f"REVOKE CONNECT ON DATABASE {{me}} FROM {keeper.name}",
        "GRANT CONNECT ON DATABASE {me} TO PUBLIC",
    )
    assert world.after() == READY
    world.session(keeper).close()
    public = "SELECT datacl::text ~ '[{,]=' FROM pg_database WHERE datname = %s"
    assert world.asked(public, world.name) == [False]


def test_an_owner_who_locked_itself_out_is_told(world: Watched) -> None:
    world.ready_tenant()
    world.owner("REVOKE ALL ON DATABASE {me} FROM {me}")
    assert world.after() == (
        "False",
        "ProvisioningFailed",
        (
            "database 'NAME': PostgreSQL: cannot log in: the role may not connect to the database"
            " (42501)"
        ),
    )
    world.operator("GRANT ALL ON DATABASE {me} TO {me}")
    assert world.after() == READY


# What the owner throws away


def test_an_extension_that_the_owner_dropped_comes_back(world: Watched) -> None:
    world.ready_tenant(extensions=["pg_trgm", "hstore"])
    world.owner("DROP EXTENSION hstore")
    assert world.after() == READY
    assert set(world.inside("SELECT extname FROM pg_extension")) == {"plpgsql", "hstore", "pg_trgm"}


DROPPED = (
    "False",
    "Conflict",
    (
        "database 'NAME' was dropped by somebody: it is not created again empty; restore it,"
        " or delete this Tenant"
    ),
)


def test_a_database_that_the_owner_dropped_is_never_made_again_empty(world: Watched) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.owner("DROP DATABASE {me}", database="postgres")
    assert world.after() == DROPPED
    world.wait(3600)
    assert world.after() == DROPPED
    assert world.asked("SELECT 1 FROM pg_database WHERE datname = %s", world.name) == []
    world.delete()
    assert world.settle() == {}


def test_a_database_that_came_back_with_another_oid_is_not_taken_for_the_old_one(
    world: Watched,
) -> None:
    world.ready_tenant(deletionPolicy="Delete")
    world.operator("DROP DATABASE {me}", "CREATE DATABASE {me} OWNER {me}")
    before = database_of(world)
    assert world.after() == (
        "False",
        "Conflict",
        "database 'NAME' is not the one that was created for this Tenant, or has another owner",
    )
    world.delete()
    assert world.after() == (
        "False",
        "Conflict",
        (
            "database 'NAME' is not the one that was created for this Tenant: it was not touched;"
            " rename or remove it"
        ),
    )
    assert database_of(world) == before
    world.operator("DROP DATABASE {me}")
    assert world.settle() == {}


# What was there before


def database_of(world: Watched, name: str = "") -> list[tuple[object, ...]]:
    return world.postgres.sql(
        "SELECT d::text, shobj_description(d.oid, 'pg_database') FROM pg_database d"
        " WHERE datname = %s",
        [name or world.name],
    )


def role_of(world: Watched, name: str = "") -> list[tuple[object, ...]]:
    return world.postgres.sql(
        "SELECT a::text, rolpassword, shobj_description(a.oid, 'pg_authid'),"
        " ARRAY(SELECT m::text FROM pg_auth_members m WHERE a.oid IN (roleid, member))"
        " FROM pg_authid a WHERE rolname = %s",
        [name or world.name],
    )


@pytest.mark.parametrize("ref", ["shared", "root"])
@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("database", "CREATE DATABASE {me}"),
        ("role", "CREATE ROLE {me} LOGIN CREATEDB PASSWORD 'of-somebody-else'"),
    ],
)
def test_what_was_there_before_stays_as_it_is(
    root: Watched, ref: str, kind: str, made: str
) -> None:
    root.operator(made)
    before = database_of(root), role_of(root)
    root.make_tenant(deletionPolicy="Delete", instanceRef=ref)
    assert root.after() == (
        "False",
        "Conflict",
        (
            f"a {kind} of this name exists on the server and was not created for this Tenant:"
            f" choose another name, or have the {kind} removed"
        ),
    )
    root.wait(600)
    root.sync()
    root.delete()
    assert root.settle() == {}
    assert (database_of(root), role_of(root)) == before
    assert root.credential() is None


def test_a_comment_is_no_proof(world: Watched) -> None:
    made = world.make_tenant(deletionPolicy="Delete")
    uid = made["metadata"]["uid"]
    comment = f"IS 'made by database-hooks for tenant {uid}'"
    world.operator(
        "CREATE ROLE {me} LOGIN PASSWORD 'of-somebody-else'",
        "CREATE DATABASE {me} OWNER {me}",
        f"COMMENT ON ROLE {{me}} {comment}",
        f"COMMENT ON DATABASE {{me}} {comment}",
    )
    before = database_of(world), role_of(world)
    assert world.after()[:2] == ("False", "Conflict")
    world.delete()
    assert world.settle() == {}
    assert (database_of(world), role_of(world)) == before


@pytest.mark.parametrize(
    ("write", "made", "message"),
    [
        (
            "create_role",
            "CREATE ROLE {me} LOGIN PASSWORD 'of-somebody-else'",
            "role 'NAME' is not the one that was created for this Tenant",
        ),
        (
            "create_database",
            "CREATE DATABASE {me}",
            "database 'NAME' is not the one that was created for this Tenant, or has another owner",
        ),
    ],
)
def test_who_takes_the_name_in_the_last_moment_keeps_it(
    world: Watched, write: str, made: str, message: str
) -> None:
    world.make_tenant(deletionPolicy="Delete")
    fuse = Fuse()

    def be_first(number: int) -> None:
        if fuse.writes[number] == write and write not in fuse.writes[:number]:
            world.operator(made)

    fuse.before = be_first
    world.sync(wrap=fuse.services)
    of = role_of if write == "create_role" else database_of
    before = of(world)
    assert world.after() == ("False", "Conflict", message)
    world.delete()
    world.settle()
    assert of(world) == before


@pytest.mark.parametrize(
    ("spec", "what"), [("database", "database 'NAME'"), ("loginRole", "role 'NAME'")]
)
def test_of_two_tenants_the_first_wins_and_the_loser_takes_nothing_along(
    world: Watched, spec: str, what: str
) -> None:
    loser = f"b{world.name}"
    world.ready_tenant(deletionPolicy="Delete")
    world.make_tenant(loser, deletionPolicy="Delete", **{spec: world.name})
    before = database_of(world), role_of(world)
    world.settle(loser)
    ready = world.ready(loser)
    assert (ready["status"], ready["reason"], ready["message"].replace(world.name, "NAME")) == (
        "False",
        "Conflict",
        f"{what} is registered for Tenant team-a/NAME: choose another name",
    )
    world.delete(loser)
    assert world.settle(loser) == {}
    assert (database_of(world), role_of(world)) == before
    assert world.after() == READY
    world.session(world.login()).close()

"""From nothing to Ready: the hook beside scripts that make the same calls, and the fewest.

The hook's time is that of its syncs, without External Secrets and without writing what it
answered. The scripts keep their connections. Kubernetes is asked by the hook alone.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from bench.bare import PRESENCE, Bare, identified, look
from bench.figures import Figure, Series, compared, in_turn
from bench.stage import INSTANCE, Stage, until_ready
from bench.watch import Watch
from hooks.core import contract
from hooks.core.contract import Response
from hooks.sandbox.openbao_server import MOUNT
from hooks.sandbox.postgres_server import Login
from hooks.sandbox.world import BASE_PATH

CALLS = 4
MOST = 1.5

INSERT = """
    INSERT INTO tenant_registry.tenant (
        uid, instance_uid, instance_name, namespace, name, database_name, role_name,
        kv_path, secret_name, state)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, 'planned')
"""
MANAGED = """
    UPDATE tenant_registry.tenant SET
        state = 'managed', updated_at = now(),
        role_oid = (SELECT oid FROM pg_roles WHERE rolname = role_name)
    WHERE uid = %s AND role_name = %s AND role_oid IS NULL
"""
SECURED = """
    UPDATE tenant_registry.tenant t SET database_oid = d.oid, updated_at = now()
    FROM pg_database d
    WHERE t.uid = %s AND d.datname = t.database_name AND d.datdba = t.role_oid
"""
NO_LIMITS = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'client_connection_check_interval')
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def measure(stage: Stage, times: int) -> list[Figure]:
    """Bring so many Tenants to Ready each way."""
    hook = _Hook(stage)
    bare = Bare(stage)
    with ExitStack() as stack:
        admin = stack.enter_context(bare.connect_admin())
        same = _Script(bare, admin, stack, "same")
        fewest = _Script(bare, admin, stack, "fewest")
        for warm_up in (hook.run, same.same_calls, fewest.fewest_calls):
            warm_up()
        for series in (hook.kubernetes, hook.databases, same.databases, fewest.databases):
            series.seconds.clear()
        watch = hook.watch = Watch()
        found = in_turn(times, hook.run, same.same_calls, fewest.fewest_calls)
    parts = ", ".join(f"{name} {total / times * 1000:.0f}" for name, total in watch.totals())
    print(f"  a Tenant's milliseconds by what was called: {parts}")
    databases = [hook.databases, same.databases, fewest.databases]
    rest = [_without(*pair) for pair in zip(found, databases, strict=True)]
    sql_and_kv = _without(found[0], hook.kubernetes)
    what = "nothing to Ready"
    return [
        compared(f"{what}: hook / the same SQL and KV calls", found[0], found[1], MOST),
        compared("the same without the hook's Kubernetes reads", sql_and_kv, found[1], MOST),
        compared("the same without CREATE DATABASE", rest[0], rest[1], None),
        compared(f"{what}: hook / a script that reads nothing", found[0], found[2], None),
    ]


def _without(whole: Series, part: Series) -> Series:
    return Series([a - b for a, b in zip(whole.seconds, part.seconds, strict=True)])


class _Hook:
    """Tenants brought to Ready by the hook."""

    def __init__(self, stage: Stage) -> None:
        self.watch = Watch()
        self.databases = Series()
        self.kubernetes = Series()
        self._stage = stage
        self._number = 0

    def run(self) -> float:
        """Return the seconds that the syncs of one Tenant took."""
        stage, seconds = self._stage, 0.0
        kubernetes = self.watch.total("Kubernetes")
        tenant = stage.create(self._number)
        self._number += 1

        def step() -> Response:
            nonlocal seconds
            body = stage.call(tenant).body
            began = time.perf_counter()
            services = self.watch.services(stage.services())
            response = stage.answered(contract.parse(body), services)
            seconds += time.perf_counter() - began
            stage.apply(tenant, response)
            stage.world.projector.reconcile_all()
            return response

        until_ready(CALLS, step)
        self.databases.add(self.watch.last("create_database"))
        self.kubernetes.add(self.watch.total("Kubernetes") - kubernetes)
        return seconds


@dataclass
class _Script:
    """Databases made by a script; none of them has a Tenant."""

    bare: Bare
    admin: psycopg.Connection[TupleRow]
    stack: ExitStack
    prefix: str
    databases: Series = field(default_factory=Series)
    _uid: str = ""
    _name: str = ""
    _own: psycopg.Connection[TupleRow] | None = None

    def same_calls(self) -> float:
        """Make the calls that the hook makes, each look at everything included."""
        began = self._begin()
        self._look()
        self.admin.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [self._uid])
        for write in self._writes(self.bare.mounts):
            self._look()
            write()
        for _ in range(2):  # the last look of the first sync, and the second sync
            self._look()
            self._log_in()
        return time.perf_counter() - began

    def fewest_calls(self) -> float:
        """Make each write, and log in once."""
        began = self._begin()
        for write in self._writes(lambda: None):
            write()
        self._log_in()
        return time.perf_counter() - began

    def _begin(self) -> float:
        self._uid = str(uuid.uuid4())
        self._name = f"{self.prefix}{len(self.databases.seconds)}_{self._uid[:8]}"
        self._own = None
        return time.perf_counter()

    def _writes(self, before_kv: Callable[[], None]) -> tuple[Callable[[], object], ...]:
        path = f"{BASE_PATH}/bare/{self._name}"
        login = Login(self._name, secrets.token_urlsafe(24))

        def reserve() -> None:
            before_kv()
            if self.prefix == "same":
                self.bare.kv("GET", f"{MOUNT}/metadata/{path}")
            owner = {"tenant-uid": self._uid, "tenant-name": self._name}
            envelope = {"custom_metadata": owner, "metadata_cas": 0}
            self.bare.kv("POST", f"{MOUNT}/metadata/{path}", envelope)

        def store() -> None:
            before_kv()
            data = {"username": login.name, "password": login.password}
            envelope = {"options": {"cas": 0}, "data": data}
            self.bare.kv("POST", f"{MOUNT}/data/{path}", envelope)

        names = [INSTANCE, "bare", self._name, self._name, self._name, path, self._name]
        row = [self._uid, str(uuid.uuid4()), *names]
        return (
            lambda: self.admin.execute(INSERT, row),
            reserve,
            store,
            lambda: self._create_role(login),
            self._create_database,
            self._secure,
        )

    def _look(self) -> None:
        look(self.admin, self._uid, self._name)
        self.bare.stored(f"bare/{self._name}")

    def _create_role(self, login: Login) -> None:
        name, execute = self._name, self.admin.execute
        verifier = self.admin.pgconn.encrypt_password(
            login.password.encode(), name.encode(), b"scram-sha-256"
        )
        create = "CREATE ROLE {name} LOGIN PASSWORD {verifier}"
        with self.admin.transaction():
            execute(LOCK, [f"role:{name}"])
            execute(identified(create, name, verifier=sql.Literal(verifier.decode())))
            execute(identified("GRANT {name} TO CURRENT_USER WITH INHERIT TRUE, SET TRUE", name))
            execute(identified("COMMENT ON ROLE {name} IS 'bare'", name))
            execute(MANAGED, [self._uid, name])

    def _create_database(self) -> None:
        statement = "CREATE DATABASE {name} OWNER {name} TEMPLATE template0"
        began = time.perf_counter()
        self.admin.execute(NO_LIMITS)
        self.admin.execute(identified(statement, self._name))
        self.admin.execute("RESET statement_timeout")
        self.databases.add(time.perf_counter() - began)

    def _secure(self) -> None:
        name, execute = self._name, self.admin.execute
        with self.admin.transaction():
            execute(LOCK, [f"database:{name}"])
            execute(identified("REVOKE ALL ON DATABASE {name} FROM PUBLIC", name))
            execute(identified("COMMENT ON DATABASE {name} IS 'bare'", name))
            execute(SECURED, [self._uid])

    def _log_in(self) -> None:
        if self._own is None:
            login = self.bare.stored(f"bare/{self._name}")
            assert login, self._name
            self._own = self.stack.enter_context(self.bare.connect(login, database=self._name))
        self._own.execute(PRESENCE).fetchall()

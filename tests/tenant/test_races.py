"""Twice at once, late, cut off in the middle: whatever comes together, the world ends the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from hooks.core import manifests
from hooks.core.contract import Request, Response
from hooks.core.deadline import Deadline
from hooks.core.manifests import Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.ports import Services
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import Login, PostgresServer
from tests.app.running import ROOT, until
from tests.builders import merged
from tests.tenant.faults import FAULTS, Fault, Fuse, Killed
from tests.tenant.test_deletion import BEHIND, CONTROLLER, Doomed
from tests.tenant.test_faults import end, normal
from tests.tenant.test_projection import NOTHING, READY, WAITING
from tests.tenant.world import NAMESPACE, TENANTS

EXTENSIONS = ["pg_trgm", "hstore"]
ALIVE = {"PostgreSQLTenant", "ExternalSecret", "Secret", "row managed"} | BEHIND


class Race(Doomed):
    """A world that several calls look at and change at once."""

    directory: Path
    watcher: psycopg.Connection

    def body(self, parent: Manifest) -> Manifest:
        """Return what Metacontroller would send for this parent."""
        return {
            "parent": parent,
            "children": {"ExternalSecret.external-secrets.io/v1": self._children(parent)},
            "related": {},
            "finalizing": manifests.deleting(parent),
            "controller": CONTROLLER,
        }

    def call(self, parent: Manifest) -> Response:
        """Call the hook and do nothing with its answer."""
        body = self.body(parent)
        request = Request(**body)
        hook = self.tenants.finalize if request.finalizing else self.tenants.sync
        return hook(request, self.services())

    def process(self, parent: Manifest) -> subprocess.Popen[str]:
        """Begin a call in another process, with adapters of its own."""
        body = self.body(parent)
        run = subprocess.Popen(
            [sys.executable, "-m", "hooks", "finalize" if body["finalizing"] else "sync", "tenant"],
            cwd=ROOT,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert run.stdin is not None
        run.stdin.write(json.dumps(body))
        run.stdin.close()
        run.stdin = None
        return run

    def _environment(self) -> dict[str, str]:
        token, ca_file = str(self.directory / "token"), str(self.openbao.ca_file)
        return {
            "HOOK_TOKEN_FILES": token,
            "KUBECONFIG": str(self.directory / "kubeconfig"),
            "CONTROLLER_NAMESPACE": "database-hooks",
            "POSTGRES_CA_FILE": ca_file,
            "OPENBAO_ADDRESS": self.openbao.address,
            "OPENBAO_CA_FILE": ca_file,
            "OPENBAO_AUTH": "token",
            "OPENBAO_TOKEN_FILE": token,
            "SECRET_STORE_NAME": "openbao",
        }

    def superuser(self, *, autocommit: bool) -> psycopg.Connection:
        parameters = self.postgres.parameters(self.postgres.superuser)
        return psycopg.connect(make_conninfo(**parameters), autocommit=autocommit)

    @contextmanager
    def blocked(self, table: str) -> Iterator[None]:
        """Let nobody write a table of the server's, or of the registry."""
        with self.superuser(autocommit=False) as connection:
            connection.execute(f"LOCK TABLE {table} IN SHARE MODE".encode())
            yield
            connection.rollback()

    def running(self, statement: str) -> bool:
        """Say whether any session is in such a statement."""
        query = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"
        return self.watcher.execute(query, [f"{statement}%"]).rowcount > 0

    def hurried(self, write: str) -> Services:
        """Return services for a call that has two seconds left when this write begins."""
        jump = [0.0]
        deadline = Deadline(20, clock=lambda: time.monotonic() + jump[0])
        bound = Services(
            kubernetes=self._kubernetes.bind(deadline),
            postgres=self._servers.bind(deadline),
            credentials=self._store.bind(deadline),
            druid=DruidClusters().bind(deadline),
            deadline=deadline,
            now=self.now,
        )
        fuse = Fuse()

        def spend(number: int) -> None:
            if fuse.writes[number] == write:
                jump[0] = deadline.left() - 2

        fuse.before = spend
        return fuse.services(bound)

    def log_in(self) -> list[tuple[object, ...]]:
        """Log in with nothing but the Secret."""
        secret = self.secret()
        login = Login(secret["username"], secret["password"])
        return self.postgres.sql("SELECT current_user::text", database=self.name, login=login)

    def databases(self) -> list[tuple[object, ...]]:
        query = (
            "SELECT datname::text FROM pg_database d JOIN pg_roles r ON r.oid = d.datdba"
            " WHERE rolname = %s"
        )
        return self.postgres.sql(query, [self.name])


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Race]:
    with Race(postgres, openbao, authority, tmp_path) as made:
        assert isinstance(made, Race)
        made.directory = tmp_path
        made.make_instance()
        with made.superuser(autocommit=True) as made.watcher:
            yield made


def in_threads(world: Race, parent: Manifest) -> list[tuple[str, str]]:
    """Call the hook three times at once; return what each says."""
    start = Barrier(3)

    def one(_number: int) -> Response:
        start.wait(10)
        return world.call(parent)

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(one, range(3)))
    return [_verdict(answer.status) for answer in answers]


def in_processes(world: Race, parent: Manifest) -> list[tuple[str, str]]:
    """Call the hook in two processes; while one is in its first write, the other one ends."""
    with world.blocked("tenant_registry.tenant"):
        runs = [world.process(parent) for _ in range(2)]
        until(lambda: any(run.poll() is not None for run in runs))
    return [_verdict(json.loads(run.communicate(timeout=60)[0])["status"]) for run in runs]


def _verdict(status: Manifest) -> tuple[str, str]:
    ready = manifests.condition({"status": status}, "Ready")
    return ready["status"], ready["reason"]


Together = Callable[[Race, Manifest], list[tuple[str, str]]]
TOGETHER = pytest.mark.parametrize(
    "together", [in_threads, in_processes], ids=["threads", "processes"]
)


@TOGETHER
def test_calls_at_once_make_one_tenant(world: Race, together: Together) -> None:
    parent = world.make_tenant(extensions=EXTENSIONS)
    assert set(together(world, parent)) == {WAITING}
    world.settle()
    assert (world.verdict(), world.left()) == (READY, ALIVE)
    assert (world.credential().version, world.databases()) == (1, [(world.name,)])


@TOGETHER
def test_calls_at_once_append_extensions(world: Race, together: Together) -> None:
    world.born()
    parent = world.edit(extensions=EXTENSIONS)
    assert set(together(world, parent)) == {READY}
    world.settle()
    installed = "SELECT extname::text FROM pg_extension ORDER BY 1"
    there = [("hstore",), ("pg_trgm",), ("plpgsql",)]
    assert (world.verdict(), world.postgres.sql(installed, database=world.name)) == (READY, there)


@TOGETHER
def test_calls_at_once_delete_one_tenant(world: Race, together: Together) -> None:
    world.born()
    world.delete()
    world.sync()
    assert set(together(world, world.tenant())) == {WAITING}
    assert world.left() == ALIVE - {"row managed"} | {"row deleting"}
    world.settle()
    assert world.left() == set()


@TOGETHER
def test_calls_at_once_end_one_tenant(world: Race, together: Together) -> None:
    world.born()
    world.delete()
    for _ in range(2):
        world.sync()
    world.project()
    assert READY not in together(world, world.tenant())
    world.settle()
    assert world.left() == set()


# The lock is taken


def test_a_busy_call_answers_the_status_that_was(world: Race) -> None:
    world.born()
    (listed,) = world.sync().children
    parent, before = world.edit(extensions=EXTENSIONS), world.holdings()
    with world.locked():
        answer = world.call(parent)
    assert answer == Response(parent["status"], (listed,), 2.0)
    assert json.dumps(answer.status) == json.dumps(parent["status"])
    assert world.holdings() == before


def test_a_busy_finalize_answers_the_status_that_was(world: Race) -> None:
    world.born()
    (listed,), before = world.sync().children, world.holdings()
    world.delete()
    world.sync()
    parent = world.tenant()
    with world.locked():
        assert world.call(parent) == Response(parent["status"], (listed,), 2.0)
    assert world.holdings() == before


def test_an_idle_call_needs_no_lock(world: Race) -> None:
    world.born()
    free = world.call(world.tenant())
    with world.locked():
        assert world.call(world.tenant()) == free


# Late calls


@pytest.mark.parametrize("old", ["first", "ready"])
def test_a_late_sync_brings_nothing_back(world: Race, old: str) -> None:
    first = world.make_tenant(deletionPolicy="Delete")
    parent = {"first": first, "ready": world.settle()}[old]
    world.delete()
    seen: list[set[str]] = []

    def late(_number: int) -> None:
        before = world.left()
        assert world.call(parent).finalized is False
        seen.append(world.left() - before)

    for _ in range(3):
        world.sync(wrap=Fuse(before=late).services)
        world.project()
    assert (seen, world.left()) == ([set()] * 6, set())
    for _ in range(2):
        assert world.call(parent).children == ()
    assert (world.left(), world.holdings()) == (set(), NOTHING)


def test_a_late_sync_does_not_revive_what_was_retained(world: Race) -> None:
    world.born("Retain")
    parent = world.tenant()
    world.delete()
    world.settle()
    before = world.holdings()
    assert (world.call(parent).children, world.holdings()) == ((), before)
    assert world.left() == {"row unmanaged"} | BEHIND


def test_a_late_sync_makes_nothing_in_the_name_of_its_successor(world: Race) -> None:
    parent = world.make_tenant(deletionPolicy="Delete")
    world.delete()
    world.settle()
    world.make_tenant()
    assert (world.call(parent).children, world.holdings()) == ((), NOTHING)
    world.settle()
    assert (world.verdict(), world.left()) == (READY, ALIVE)


# Cut off in the middle of CREATE and DROP DATABASE


def test_a_create_database_that_takes_too_long_is_adopted(world: Race) -> None:
    world.make_tenant()
    with world.blocked("pg_database"):
        world.sync(wrap=lambda _: world.hurried("create_database"))
        assert world.running("CREATE DATABASE")
        status = world.tenant()["status"]
        world.wait(1)
        answer = world.sync()
        assert (answer.recheck, json.dumps(answer.status)) == (2.0, json.dumps(status))
        assert world.databases() == []
    until(lambda: not world.running("%DATABASE"))
    world.settle()
    assert (world.verdict(), world.left()) == (READY, ALIVE)
    assert (world.credential().version, world.databases()) == (1, [(world.name,)])


def test_a_create_database_whose_process_was_killed_is_adopted(world: Race) -> None:
    parent = world.make_tenant()
    with world.blocked("pg_database"):
        run = world.process(parent)
        until(lambda: world.running("CREATE DATABASE"))
        run.kill()
        run.communicate()
        world.wait(1)
        assert (world.sync().recheck, world.verdict()) == (2.0, WAITING)
        assert world.databases() == []
    until(lambda: not world.running("%DATABASE"))
    world.settle()
    assert (world.verdict(), world.left()) == (READY, ALIVE)
    assert (world.credential().version, world.databases()) == (1, [(world.name,)])


@pytest.mark.parametrize("how", ["killed", "too long"])
def test_a_drop_database_that_was_cut_off_is_continued(world: Race, how: str) -> None:
    world.born()
    world.delete()
    for _ in range(2):
        world.sync()
    world.project()
    with world.blocked("pg_database"):
        if how == "killed":
            run = world.process(world.tenant())
            until(lambda: world.running("DROP DATABASE"))
            run.kill()
            run.communicate()
        else:
            world.sync(wrap=lambda _: world.hurried("drop_database"))
        assert world.running("DROP DATABASE")
        status = world.tenant()["status"]
        world.wait(1)
        answer = world.sync()
        assert (answer.recheck, json.dumps(answer.status)) == (2.0, json.dumps(status))
    until(lambda: not world.running("%DATABASE"))
    world.settle()
    assert world.left() == set()


# Anything, in any order


Step = tuple[str, Any]


class Troubled:
    """One Tenant's life, with all that may happen in it; afterwards everything works again."""

    def __init__(self, world: Race) -> None:
        self.world = world
        world.name = f"t{uuid.uuid4().hex[:10]}"
        self.first = world.make_tenant(extensions=["pg_trgm"])
        self.passwords: set[str] = set()
        self.down: set[str] = set()

    def gone(self) -> bool:
        return self.world.cluster.get(TENANTS, NAMESPACE, self.world.name) is None

    def step(self, what: str, how: Any) -> None:  # noqa: ANN401  what each step takes
        if not self.gone():
            getattr(self, f"_{what}")(how)
        self.check()

    def _sync(self, fault: tuple[int, Fault] | None) -> None:
        fuse = Fuse(*fault) if fault else Fuse()
        try:
            answer = self.world.sync(wrap=fuse.services)
        except Killed:
            return
        if _verdict(answer.status) == READY and not answer.finalized:
            assert self.world.log_in() == [(self.world.name,)]

    def _late(self, _how: None) -> None:
        self.world.call(self.first)

    def _project(self, _how: None) -> None:
        self.world.project()

    def _wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    def _edit(self, spec: Manifest) -> None:
        if "database" in spec and not self._provisioned():
            return  # the name may still change, and that life would end with another database
        self._set(spec)

    def _set(self, spec: Manifest) -> None:
        self.world.cluster.force(merged(self.world.tenant(), {"spec": spec}))

    def _provisioned(self) -> bool:
        role = "SELECT 1 FROM pg_roles WHERE rolname = %s"
        return bool(self.world.postgres.sql(role, [self.world.name]))

    def _forget(self, _how: None) -> None:
        self.world.cluster.replace_status({**self.world.tenant(), "status": {}})

    def _delete(self, _how: None) -> None:
        self.world.cluster.force(
            merged(self.world.tenant(), {"spec": {"deletionPolicy": "Delete"}})
        )
        self.world.delete()

    def _restart(self, _how: None) -> None:
        self.world.postgres.kill()
        self.world.sync()
        self.world.postgres.restart()

    def _seal(self, _how: None) -> None:
        if "openbao" not in self.down:
            self.world.openbao.seal()
            self.down.add("openbao")

    def _unseal(self, _how: None) -> None:
        if "openbao" in self.down:
            self.world.openbao.unseal()
            self.down.remove("openbao")

    def check(self) -> None:
        """Hold what must be so at any moment."""
        assert len(self.world.databases()) <= 1
        if not self.down:
            credential = self.world.services().credentials.read(self.world.path)
            if credential is not None and credential.login is not None:
                self.passwords.add(credential.login.password)
                assert credential.version == 1
        assert len(self.passwords) <= 1

    def ends(self) -> list[str]:
        """Let everything work again; return what is there at the height and after the end."""
        self._unseal(None)
        seen = []
        if not self.gone() and not manifests.deleting(self.world.tenant()):
            self._set({"database": self.world.name, "extensions": EXTENSIONS})
            self.world.settle()
            self.check()
            seen.append(normal(self.world, end(self.world)))
            self._delete(None)
        self.world.settle()
        return [*seen, normal(self.world, end(self.world))]


FAULTY = st.tuples(st.integers(0, 7), st.sampled_from(FAULTS))
STEPS = st.one_of(
    st.tuples(st.just("sync"), st.one_of(st.none(), FAULTY, FAULTY)),
    st.tuples(st.sampled_from(["project", "late", "forget"]), st.none()),
    st.tuples(st.just("wait"), st.sampled_from([1.0, 61.0, 3600.0])),
    st.tuples(
        st.just("edit"),
        st.sampled_from(
            [
                {"extensions": EXTENSIONS},
                {"extensions": ["-- none --"]},
                {"database": "another"},
                {"deletionPolicy": "Delete"},
            ]
        ),
    ),
    st.tuples(st.sampled_from(["seal", "unseal"]), st.none()),
    st.tuples(st.sampled_from(["delete", "restart"]), st.none()),
)


@pytest.fixture(scope="module")
def troubled(
    postgres: PostgresServer,
    openbao: OpenBaoServer,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Race]:
    directory: Path = tmp_path_factory.mktemp("troubled")
    with Race(postgres, openbao, authority, directory) as made:
        assert isinstance(made, Race)
        made.make_instance()
        yield made


@pytest.fixture(scope="module")
def undisturbed(troubled: Race) -> list[str]:
    """Return how an untroubled life looks at its height, and after its end."""
    height, gone = Troubled(troubled).ends()
    assert "'ready': 'True'" in height
    return [height, gone]


@settings(deadline=None, derandomize=True, database=None)
@given(steps=st.lists(STEPS, max_size=10))
def test_whatever_happens_the_world_ends_the_same(
    troubled: Race, undisturbed: list[str], steps: list[Step]
) -> None:
    life = Troubled(troubled)
    try:
        for what, how in steps:
            life.step(what, how)
    finally:
        ends = life.ends()
    assert ends == undisturbed[-len(ends) :]

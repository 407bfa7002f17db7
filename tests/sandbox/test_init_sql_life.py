"""databaseInitSQL from the cluster's field to the server: hook, runner, Job, WebSocket, psql."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from hooks.core import manifests
from hooks.sandbox.kinds import CONFIG_MAP, JOB
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER
from hooks.sandbox.postgres_pod import MemberServer, PostgresPod
from tests.app.running import until
from tests.sandbox.init_sql import HIPPO, OURS, SOURCE, TEAM, InitSqlWorld, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hooks.sandbox.certificates import Authority
    from hooks.sandbox.exec_stream import Fault

INSERT = "CREATE TABLE IF NOT EXISTS applied (n int);\nINSERT INTO applied VALUES (1);\n"
FAILS = f"{INSERT}SELECT * FROM missing;\n"  # noqa: S608 - nothing is put together here
SECRET = "s3cret-Pa55word"

pytestmark = pytest.mark.usefixtures("pod")


@pytest.fixture(scope="module")
def server(
    authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MemberServer]:
    with MemberServer.start(tmp_path_factory.mktemp("primary"), authority) as member:
        yield member


@pytest.fixture(scope="module")
def other(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemberServer]:
    """A standby, for failovers; a test that promotes it demotes it again."""
    with MemberServer.start(tmp_path_factory.mktemp("standby"), authority) as member:
        member.demote()
        yield member


@pytest.fixture
def mode() -> Mode:
    return "composite"


@pytest.fixture
def world(
    authority: Authority, server: MemberServer, tmp_path: Path, mode: Mode
) -> Iterator[InitSqlWorld]:
    made = InitSqlWorld(authority, tmp_path, mode)
    yield made
    made.close()
    server.sql("DROP TABLE IF EXISTS applied, other")


@pytest.fixture
def pod(world: InitSqlWorld, server: MemberServer) -> PostgresPod:
    return world.member(server)


def rows(server: MemberServer) -> int:
    """Return how many times the SQL was applied."""
    if server.sql("SELECT to_regclass('applied')") == [(None,)]:
        return 0
    return int(str(server.sql("SELECT count(*) FROM applied")[0][0]))


def states(world: InitSqlWorld) -> list[str]:
    """Return how the Jobs that are there ended."""
    kinds = ("Complete", "Failed")
    return [
        next((kind for kind in kinds if manifests.condition(job, kind)), "Running")
        for job in world.cluster.list(JOB, TEAM)
    ]


both = pytest.mark.parametrize("mode", ["composite", "decorator"])


@both
def test_the_sql_is_applied_exactly_once(world: InitSqlWorld, server: MemberServer) -> None:
    world.ask(INSERT)

    world.settle()

    assert (world.record(), world.told()) == (SOURCE, ("Applied", "the SQL was applied"))
    assert (rows(server), states(world)) == (1, ["Complete"])
    before = (world.cluster.resource_version, world.runner.statistics.writes)

    world.runner.resync()
    world.settle(within=3600)

    assert (world.cluster.resource_version, world.runner.statistics.writes) == before
    assert rows(server) == 1


def test_after_success_the_account_and_its_rights_go(world: InitSqlWorld) -> None:
    world.ask(INSERT)

    world.settle()

    assert [len(world.left(kind)) for kind in OURS] == [1, 0, 0, 0]
    assert world.api.tokens == {"hooks-token": "database-hooks"}


@both
def test_a_failed_statement_is_told_by_line_and_sqlstate_and_tried_again_later(
    world: InitSqlWorld, server: MemberServer
) -> None:
    world.ask(FAILS)

    world.settle()

    reason, message = world.told()
    assert reason == "SQLFailed"
    assert "line 3" in message
    assert "42P01" in message
    assert (world.record(), rows(server), states(world)) == (None, 1, ["Failed"])
    first = world.left(JOB)

    world.settle(within=5)
    early = world.left(JOB)
    world.settle(within=30)

    assert early == first
    assert (rows(server), states(world)) == (2, ["Failed"])
    assert world.left(JOB) != first


def test_a_mended_configmap_is_tried_at_once(world: InitSqlWorld, server: MemberServer) -> None:
    world.ask("SELECT * FROM missing;")
    world.settle()

    world.write(INSERT)
    world.settle()

    assert (world.record(), rows(server), states(world)) == (SOURCE, 1, ["Complete"])


def test_without_a_primary_it_waits_and_a_promotion_wakes_it(
    world: InitSqlWorld, pod: PostgresPod, server: MemberServer
) -> None:
    pod.say(role="standby_leader")
    world.ask(INSERT)
    world.settle()
    waiting = (world.told(), world.left(JOB))

    pod.say(role="primary")
    world.settle()

    assert waiting == (("Reconciling", "no running instance takes writes"), [])
    assert (world.record(), rows(server)) == (SOURCE, 1)


def test_a_missing_configmap_and_a_missing_key_are_named_and_waited_for(
    world: InitSqlWorld, server: MemberServer
) -> None:
    world.ask(INSERT)
    world.cluster.delete(CONFIG_MAP, TEAM, SOURCE)
    world.settle()
    missing = world.told()
    world.write(INSERT, key="other.sql")
    world.settle()
    wrong = world.told()

    world.write(INSERT)
    world.settle()

    assert missing[0] == "ConfigMapMissing"
    assert wrong == (
        "KeyMissing",
        "ConfigMap did not contain expected key: init.sql (it has other.sql)",
    )
    assert (world.record(), rows(server)) == (SOURCE, 1)


class TestWhatChangesMeanwhile:
    def test_a_failover_before_the_job_runs_leads_it_to_the_new_primary(
        self, world: InitSqlWorld, pod: PostgresPod, server: MemberServer, other: MemberServer
    ) -> None:
        replica = world.member(other, "instance1-wxyz", "replica")
        world.ask(INSERT)
        world.runner.settle()

        pod.failover(to=replica)
        world.settle()

        found = (world.record(), rows(server), rows(other))
        other.sql("DROP TABLE IF EXISTS applied")
        replica.failover(to=pod)
        assert found == (SOURCE, 0, 1)

    def test_a_primary_that_was_not_there_before_is_not_entered(
        self, world: InitSqlWorld, pod: PostgresPod, server: MemberServer, other: MemberServer
    ) -> None:
        world.ask(INSERT)
        world.runner.settle()

        replica = world.member(other, "instance1-wxyz", "replica")
        pod.failover(to=replica)
        world.settle()
        first = (world.told()[0], rows(other))
        world.settle(within=30)

        found = (world.record(), rows(server), rows(other))
        other.sql("DROP TABLE IF EXISTS applied")
        replica.failover(to=pod)
        assert first == ("NotExecuted", 0)
        assert found == (SOURCE, 0, 1)

    def test_a_member_that_is_read_only_whatever_it_says_is_not_written_to(
        self, world: InitSqlWorld, pod: PostgresPod, other: MemberServer
    ) -> None:
        pod.say(role="replica")
        world.member(other, "instance1-wxyz", "primary")
        world.ask(INSERT)

        world.settle()

        assert world.told()[0] == "NotExecuted"
        assert "the server is in recovery" in world.told()[1]
        assert world.record() is None

    def test_a_configmap_edited_before_the_job_runs_is_judged_first(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask("CREATE TABLE other ();")
        world.runner.settle()

        world.write(INSERT)
        world.settle()

        assert (world.record(), rows(server)) == (SOURCE, 1)
        assert server.sql("SELECT to_regclass('other')") == [(None,)]

    def test_a_configmap_edited_afterwards_is_not_run_again(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(INSERT)
        world.settle()

        world.write(INSERT + "-- edited\n")
        world.settle(within=3600)

        assert rows(server) == 1
        assert world.told() == (
            "Applied",
            "the SQL was applied; it was changed since, and is not run again",
        )

    @both
    def test_taken_away_and_asked_for_again_it_runs_again(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        asked = world.ask(INSERT)
        world.settle()

        parent = world.hippo()
        bare = parent["metadata"] | {"annotations": {}}
        world.change(metadata=bare, spec={})
        world.settle()
        without = (world.record(), [world.left(kind) for kind in OURS], rows(server))
        parent = world.hippo()
        notes = {"annotations": manifests.annotations(asked)}
        world.change(metadata=parent["metadata"] | notes, spec=asked["spec"])
        world.settle()

        assert without == (None, [[], [], [], []], 1)
        assert (world.record(), rows(server)) == (SOURCE, 2)

    def test_a_lost_status_comes_back_from_the_job_and_nothing_runs(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(INSERT)
        world.settle()

        world.cluster.replace_status(world.hippo() | {"status": {}})
        world.settle()

        assert (world.record(), rows(server)) == (SOURCE, 1)

    def test_with_the_job_lost_as_well_it_runs_again(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(INSERT)
        world.settle()

        world.forget_job()
        world.settle()
        kept = rows(server)
        world.cluster.replace_status(world.hippo() | {"status": {}})
        world.settle()

        assert kept == 1
        assert (world.record(), rows(server)) == (SOURCE, 2)

    def test_a_deleted_cluster_takes_its_job_along(self, world: InitSqlWorld) -> None:
        world.ask(INSERT)
        world.settle()

        world.cluster.delete(POSTGRES_CLUSTER, TEAM, HIPPO)
        world.settle()

        assert [world.left(kind) for kind in OURS] == [[], [], [], []]


def once(world: InitSqlWorld, what: Fault) -> None:
    """Let the next command end in a fault, and those after it in none."""
    left: list[Fault] = [what]
    world.api.exec.faults = lambda _request: left.pop() if left else None


class TestWhatBreaks:
    @pytest.mark.parametrize(
        ("what", "ran"),
        [pytest.param("cut_after", 1, id="cut-after"), pytest.param("no_status", 1, id="silent")],
    )
    def test_an_end_that_nobody_saw_is_said_to_be_unknown_and_tried_again(
        self, world: InitSqlWorld, server: MemberServer, what: Fault, ran: int
    ) -> None:
        world.ask(INSERT)
        once(world, what)

        world.settle()
        unknown = (world.told()[0], world.record(), rows(server))
        world.settle(within=30)

        assert unknown == ("OutcomeUnknown", None, ran)
        assert (world.record(), rows(server)) == (SOURCE, 2)

    def test_a_script_that_arrives_in_half_is_not_run_at_all(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(INSERT)
        once(world, "cut_in_stdin")

        world.settle()
        first = (world.record(), rows(server))
        world.settle(within=30)

        assert first == (None, 0)
        assert (world.record(), rows(server)) == (SOURCE, 1)

    def test_a_container_killed_in_the_middle_is_tried_again(
        self, world: InitSqlWorld, pod: PostgresPod, server: MemberServer
    ) -> None:
        world.ask(f"{INSERT}SELECT pg_advisory_lock(7);\n")
        with held(server):
            working = threading.Thread(target=world.settle)
            working.start()
            until(lambda: waits(server))
            pod.kill()
            working.join()

        pod.run()
        world.settle()
        killed = (world.told()[0], world.record(), rows(server))
        world.settle(within=30)

        assert killed == ("OutcomeUnknown", None, 1)
        assert (world.record(), rows(server)) == (SOURCE, 2)

    def test_a_run_that_nobody_watches_any_more_is_waited_for(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(f"{INSERT}SELECT pg_advisory_lock(7);\n")
        with held(server):
            working = threading.Thread(target=world.settle)
            working.start()
            until(lambda: waits(server))
            world.forget_job()
            working.join()
            busy = (world.told(), rows(server))
        until(lambda: not waits(server))
        world.settle(within=30)

        assert busy == (
            ("NotExecuted", "PostgreSQL: an earlier run of the SQL has not ended yet"),
            1,
        )
        assert (world.record(), rows(server)) == (SOURCE, 2)

    def test_the_older_protocol_is_enough(self, world: InitSqlWorld, server: MemberServer) -> None:
        world.api.exec.protocols = ("v4.channel.k8s.io",)
        world.ask(INSERT)

        world.settle()

        assert (world.record(), rows(server)) == (SOURCE, 1)

    def test_a_duplicate_call_and_a_late_cache_make_no_second_run(
        self, world: InitSqlWorld, server: MemberServer
    ) -> None:
        world.ask(INSERT)
        for fault in ("duplicate_call", "stale_children", "stale_parent", "lost_answer"):
            world.runner.faults.inject(fault, 2)

        world.settle(within=60)

        assert (world.record(), rows(server)) == (SOURCE, 1)


@contextmanager
def held(server: MemberServer) -> Iterator[None]:
    """Hold the lock that a script waits for."""
    login = server.parameters(server.superuser)
    with psycopg.connect(make_conninfo(**login), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        yield


def waits(server: MemberServer) -> bool:
    """Say whether a script waits for the lock."""
    sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"
    return bool(server.sql(sql))


def processes() -> str:
    """Return the command lines and environments of all processes."""
    texts = []
    for file in [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]:
        with suppress(OSError):  # it has ended, or belongs to somebody else
            texts.append(file.read_bytes().decode(errors="replace"))
    return "\n".join(texts)


@both
def test_nothing_of_the_sql_shows_while_it_runs_or_when_it_fails(
    world: InitSqlWorld, server: MemberServer
) -> None:
    """Not in arguments, environments, objects, Events, Pod logs, our logs or the server's log."""
    script = "SELECT pg_advisory_lock(7);\n"
    script += f"CREATE ROLE app PASSWORD '{SECRET}' SUPERMAN;\n"
    with capture_logs() as logs, held(server):
        world.ask(script)
        working = threading.Thread(target=world.settle)
        working.start()
        until(lambda: waits(server))
        running = processes()
        server.sql("SELECT pg_advisory_unlock_all()")
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        )
        working.join()

    reason, message = world.told()
    shown = world.visible() + running + repr(logs)
    assert (reason, "42601" in message) == ("SQLFailed", True)
    assert [word for word in (SECRET, "SUPERMAN", "advisory_lock") if word in shown] == []
    assert SECRET not in server.log_text()

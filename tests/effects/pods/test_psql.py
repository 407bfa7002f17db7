"""Scripts as people have them, run by the real psql on a real server, and what is told of them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured
from hooks.effects.pods.psql import Psql
from hooks.effects.ports.pods import NotNow, OutcomeUnknown, ScriptFailed
from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import PostgresServer
from tests.effects.pods.conftest import APPLICATION, trusting_server
from tests.effects.pods.local import LocalContainer


@dataclass
class Database:
    """A database of one test, in which psql starts."""

    server: PostgresServer
    name: str
    container: LocalContainer

    def run(self, script: str, **changes: object) -> None:
        for key, value in changes.items():
            setattr(self.container, key, value)
        self.container.env = {"PGDATABASE": self.name, **self.container.env}
        psql = Psql(self.container, Deadline(90), application=APPLICATION)
        psql.exec("team-a", "hippo-0", container="database", stdin=script)

    def rows(self, statement: str, *, database: str = "") -> list[tuple[object, ...]]:
        return self.server.sql(sql.SQL(statement), database=database or self.name)


@pytest.fixture
def db(trusting: PostgresServer, container: LocalContainer) -> Iterator[Database]:
    name = f"t{uuid.uuid4().hex[:12]}"
    trusting.sql(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    database = Database(trusting, name, container)
    yield database
    trusting.sql(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        pytest.param("CREATE TABLE t AS SELECT 1 AS n;", [(1,)], id="one-statement"),
        pytest.param("CREATE TABLE t AS SELECT 1 AS n", [(1,)], id="no-semicolon-at-the-end"),
        pytest.param("CREATE TABLE t AS SELECT 1 AS n; -- done", [(1,)], id="comment-at-the-end"),
        pytest.param("\ufeffCREATE TABLE t AS SELECT 1 AS n;", [(1,)], id="bom"),
        pytest.param("CREATE TABLE t AS\r\nSELECT 1 AS n;\r\n", [(1,)], id="crlf"),
        pytest.param(
            "CREATE TABLE t AS SELECT '数据🐘é' AS n;", [("数据🐘é",)], id="cjk-and-emoji"
        ),
        pytest.param("CREATE TABLE t (n int);\nCOPY t FROM STDIN;\n1\n2\n\\.\n", [(1,), (2,)]),
        pytest.param("CREATE TABLE t (n int);\n\\copy t from stdin\n3\n\\.\n", [(3,)]),
        pytest.param("DO $$BEGIN CREATE TABLE t AS SELECT 1 AS n; END$$;", [(1,)], id="do-block"),
        pytest.param("SELECT 'CREATE TABLE t AS SELECT 7 AS n' \\gexec\n", [(7,)], id="gexec"),
        pytest.param("BEGIN; CREATE TABLE t AS SELECT 1 AS n; COMMIT;", [(1,)], id="transaction"),
        pytest.param("CREATE TABLE t AS SELECT 1 AS n; VACUUM t;", [(1,)], id="vacuum"),
        pytest.param(
            "\\set AUTOCOMMIT off\nCREATE TABLE t AS SELECT 1 AS n;\nCOMMIT;",
            [(1,)],
            id="autocommit-off-and-committed",
        ),
        pytest.param(
            "\\set FETCH_COUNT 1\nCREATE TABLE t AS SELECT 1 AS n;",
            [(1,)],
            id="a-cursor-before-psql-17",
        ),
        pytest.param(
            "\\set SINGLELINE on\nCREATE TABLE t AS SELECT 1 AS n\n", [(1,)], id="single-line"
        ),
        pytest.param("\\o /dev/null\n\\t\nCREATE TABLE t AS SELECT 1 AS n;", [(1,)], id="output"),
        pytest.param(
            "CREATE TABLE t AS SELECT 1 AS n;"
            "SELECT repeat('x', 1000) FROM generate_series(1, 5000);",
            [(1,)],
            id="much-output",
        ),
        pytest.param(
            "DO $$BEGIN FOR i IN 1..5000 LOOP RAISE WARNING 'x'; END LOOP; END$$;"
            "CREATE TABLE t AS SELECT 1 AS n;",
            [(1,)],
            id="many-warnings",
        ),
        pytest.param(
            "\\restrict k\nCREATE TABLE t AS SELECT 1 AS n;\n\\unrestrict k\n", [(1,)], id="dump"
        ),
        pytest.param(
            "SET search_path = '';\nCREATE TABLE public.t AS SELECT 1 AS n;", [(1,)], id="path"
        ),
        pytest.param(
            "CREATE TABLE t AS SELECT 1 AS n;\n" + "-- filler line\n" * 69_900, [(1,)], id="1-mib"
        ),
    ],
)
def test_a_script_that_succeeds_is_applied_once(
    db: Database, script: str, rows: list[tuple[object, ...]]
) -> None:
    db.run(script)
    assert db.rows("SELECT n FROM public.t") == rows


def test_databases_are_made_and_connected_to(db: Database) -> None:
    other = f"{db.name}_app"
    db.run(f"CREATE DATABASE {other};\n\\c {other}\nCREATE TABLE t AS SELECT 1 AS n;")
    try:
        assert db.rows("SELECT n FROM t", database=other) == [(1,)]
    finally:
        db.run(f"DROP DATABASE {other};")


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({"PGCLIENTENCODING": "LATIN1"}, id="another-encoding"),
        pytest.param({"LC_ALL": "C.UTF-8", "LANG": "de_DE.UTF-8"}, id="another-locale"),
        pytest.param({"PGOPTIONS": "-c client_encoding=SQL_ASCII"}, id="options"),
    ],
)
def test_the_containers_environment_does_not_change_the_text(
    db: Database, env: dict[str, str]
) -> None:
    db.run("CREATE TABLE t AS SELECT 'ü' AS n;", env=env)
    assert db.rows("SELECT n FROM t") == [("ü",)]


@pytest.mark.parametrize(
    ("script", "detail", "code", "line"),
    [
        pytest.param(
            "SELECT 1;\nSELECT *\nFROM nope;\n",
            "the statement that ends on line 3 failed: undefined_table",
            "42P01",
            3,
            id="last-statement",
        ),
        pytest.param(
            "SELECT 1/0;\nSELECT 1;\n",
            "the statement that ends on line 1 failed: division_by_zero",
            "22012",
            1,
            id="in-the-middle",
        ),
        pytest.param(
            "SELECT 1;\nSELECT 1/0",
            "the statement that ends on line 2 failed: division_by_zero",
            "22012",
            2,
            id="no-semicolon",
        ),
        pytest.param(
            "\\set ON_ERROR_STOP 0\nSELECT 1/0;\nSELECT 1;\n",
            "the statement that ends on line 2 failed: division_by_zero",
            "22012",
            2,
            id="on-error-stop-off",
        ),
        pytest.param(
            "\\set VERBOSITY default\nSELECT 'secret'::int;",
            "psql refused line 2",
            None,
            2,
            id="verbosity",
        ),
        pytest.param(
            "\\set VERBOSITY verbose\nSELECT 'secret'::int;",
            "the statement that ends on line 2 failed: invalid_text_representation",
            "22P02",
            2,
            id="verbose",
        ),
        pytest.param(
            "DO $$BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = 'ZZ123'; END$$;",
            "the statement that ends on line 1 failed: ZZ123",
            "ZZ123",
            1,
            id="own-code",
        ),
        pytest.param("\\c nosuchdb\n", "psql refused line 1", None, 1, id="no-such-database"),
        pytest.param("SELECT 1;\n\\foo\n", "psql refused line 2", None, 2, id="no-such-command"),
        pytest.param("\\i missing.sql\n", "psql refused line 1", None, 1, id="no-such-file"),
        pytest.param(
            "BEGIN;\nCREATE TABLE t (n int);\n",
            "it leaves a transaction open, which was rolled back: COMMIT is missing",
            "22012",
            3,
            id="open-transaction",
        ),
        pytest.param(
            "\\set AUTOCOMMIT off\nCREATE TABLE t (n int);",
            "it leaves a transaction open, which was rolled back: COMMIT is missing",
            "22012",
            2,
            id="autocommit-off",
        ),
        pytest.param(
            "\\set ON_ERROR_STOP 0\nBEGIN;\n\\set QUIET on\n\\if false\nSELECT 1;\n",
            r"it ends inside a quote, a comment, an \if or a \restrict",
            None,
            6,
            id="open-if",
        ),
        pytest.param(
            "SELECT 'never closed;",
            r"it ends inside a quote, a comment, an \if or a \restrict",
            "42601",
            1,
            id="open-quote",
        ),
        pytest.param(
            "SELECT 1; /* never closed",
            r"it ends inside a quote, a comment, an \if or a \restrict",
            "42601",
            1,
            id="open-comment",
        ),
        pytest.param(
            "\\restrict k\nSELECT 1;\n",
            r"it ends inside a quote, a comment, an \if or a \restrict",
            None,
            3,
            id="restricted",
        ),
        pytest.param(
            "SELECT 1;\n\\q\nSELECT 2;",
            r"it stopped before its last line, as \q does",
            None,
            None,
            id="quits",
        ),
        pytest.param(
            "SET default_transaction_read_only = on;\nCREATE TABLE t (n int);",
            "the statement that ends on line 2 failed: read_only_sql_transaction",
            "25006",
            2,
            id="read-only",
        ),
    ],
)
def test_a_script_that_fails_is_told_by_line_and_code_without_its_text(
    db: Database, script: str, detail: str, code: str | None, line: int | None
) -> None:
    with pytest.raises(ScriptFailed) as caught:
        db.run(script)
    told = caught.value
    assert (told.detail, told.code, told.line) == (detail, code, line)


def test_an_error_in_an_included_file_has_that_files_line(db: Database, tmp_path: Path) -> None:
    included = tmp_path / "more.sql"
    included.write_text("SELECT 1;\nSELECT 1/0;\n")
    with pytest.raises(ScriptFailed) as caught:
        db.run(f"\\i {included}\n")
    assert (caught.value.detail, caught.value.code, caught.value.line) == (
        "the statement that ends on line 2 of a file that it includes failed: division_by_zero",
        "22012",
        None,
    )


@pytest.mark.parametrize("cut", [0, 10, 40])
def test_a_stream_that_is_cut_executes_nothing(db: Database, cut: int) -> None:
    db.run("CREATE TABLE t AS SELECT 1 AS n;")
    with pytest.raises(NotNow) as caught:
        db.run("DELETE FROM t WHERE n = 2;", cut=cut)
    assert str(caught.value) == ("PostgreSQL: the SQL did not arrive whole, so it was not executed")
    assert db.rows("SELECT n FROM t") == [(1,)]


def test_a_standby_is_not_written_to(authority: Authority, tmp_path: Path) -> None:
    with trusting_server(authority, tmp_path) as server:
        directory = server.sql("SHOW data_directory")[0][0]
        (Path(str(directory)) / "standby.signal").touch()
        server.restart()
        psql = Psql(LocalContainer(server), Deadline(90), application=APPLICATION)
        with pytest.raises(NotNow) as caught:
            psql.exec("team-a", "hippo-0", container="database", stdin="SELECT 1;")
    assert caught.value.detail == "the server is in recovery: it takes no writes"


def test_an_earlier_run_that_still_works_is_waited_for(db: Database) -> None:
    parameters = db.server.parameters(db.server.superuser, database=db.name)
    with psycopg.connect(make_conninfo(**parameters, application_name=APPLICATION)):
        with pytest.raises(NotNow) as caught:
            db.run("CREATE TABLE t AS SELECT 1 AS n;")
        assert caught.value.detail == "an earlier run of the SQL has not ended yet"
        assert db.rows("SELECT to_regclass('t')") == [(None,)]


def test_a_session_that_the_server_ends_has_an_unknown_outcome(db: Database) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        db.run("SELECT 1;\nSELECT pg_terminate_backend(pg_backend_pid());\nSELECT 2;")
    assert (caught.value.detail, caught.value.code, caught.value.line) == (
        "the session was lost, and what ran last may have been executed",
        "57P01",
        2,
    )


def test_an_end_that_is_not_seen_is_an_unknown_outcome_and_the_work_stays(db: Database) -> None:
    with pytest.raises(OutcomeUnknown) as caught:
        db.run("CREATE TABLE t AS SELECT 1 AS n;", lose_end=True)
    assert caught.value.detail == "the connection was lost before the end was seen"
    assert db.rows("SELECT n FROM t") == [(1,)]


def test_a_server_that_is_down_is_no_failure_of_the_script(db: Database) -> None:
    with pytest.raises(NotNow) as caught:
        db.run("SELECT 1;", env={"PGPORT": "1"})
    assert caught.value.detail == "psql gets no connection in the container"


@pytest.mark.parametrize("programs", [["bash"], ["bash", "head", "timeout"], ["bash", "timeout"]])
def test_a_container_that_lacks_a_program_is_named(
    db: Database, programs: list[str], tmp_path: Path
) -> None:
    for name in programs:
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    with pytest.raises(Misconfigured) as caught:
        db.run("SELECT 1;", env={"PATH": str(tmp_path)})
    assert caught.value.detail == "the container lacks one of bash, head, timeout and psql"


def test_a_script_that_takes_too_long_is_canceled_on_the_server(db: Database) -> None:
    psql = Psql(db.container, Deadline(31.5), application=APPLICATION)
    db.container.env = {"PGDATABASE": db.name}
    with pytest.raises(ScriptFailed) as caught:
        psql.exec(
            "team-a", "hippo-0", container="database", stdin="SELECT 1;\nSELECT pg_sleep(60);"
        )
    assert (caught.value.code, caught.value.line) == ("57014", 2)
    assert db.rows("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(60%'") == []


def test_with_too_little_time_nothing_is_begun(db: Database) -> None:
    psql = Psql(db.container, Deadline(30), application=APPLICATION)
    with pytest.raises(NotNow):
        psql.exec("team-a", "hippo-0", container="database", stdin="SELECT 1;")
    assert db.container.argv == []


@pytest.mark.parametrize(
    "script",
    [
        "CREATE ROLE x LOGIN PASSWORD 's3cret' NOSUCHOPTION;",
        "CREATE ROLE x LOGIN PASSWORD s3cret;",
        "\\set ECHO all\n\\set ECHO_HIDDEN on\nSELECT 's3cret'::int;",
        "\\warn s3cret\nSELECT s3cret;",
        "DO $$BEGIN RAISE EXCEPTION 's3cret'; END$$;",
        "\\c s3cret",
    ],
)
def test_nothing_of_the_script_is_in_an_error_an_argument_or_the_servers_log(
    db: Database, script: str
) -> None:
    with pytest.raises(EffectError) as caught:
        db.run(script)
    told = [str(caught.value), repr(caught.value), str(db.container.argv)]
    statements = [line for line in db.server.log_text().splitlines() if "STATEMENT" in line]
    assert [text for text in [*told, *statements] if "s3cret" in text] == []

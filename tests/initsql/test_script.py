"""Which SQL is refused beforehand, since nobody could tell whether it was applied."""

from __future__ import annotations

import pytest

from hooks.initsql.script import problem

UNENDED = r"the rows of COPY ... FROM STDIN after line {} do not end with \."
EMPTY = "it holds no statement"


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        pytest.param("", EMPTY, id="empty"),
        pytest.param(" \r\n\t", EMPTY, id="blank"),
        pytest.param(";;", EMPTY, id="semicolons"),
        pytest.param("-- nothing\n/* at /* all */ */", EMPTY, id="comments"),
        pytest.param("-- \\.\n/* open", EMPTY, id="comment-left-open"),
        pytest.param("SELECT '\0'", "it holds a NUL character, which no PostgreSQL text may hold"),
        pytest.param("COPY t FROM STDIN;\n1\n", UNENDED.format(1), id="rows"),
        pytest.param("copy t (a, b) from stdin csv", UNENDED.format(1), id="no-rows-at-all"),
        pytest.param('\nCOPY "my t" FROM STDIN \\g\n1\n', UNENDED.format(2), id="sent-by-g"),
        pytest.param("\\copy t from pstdin\n1\n", UNENDED.format(1), id="meta-copy"),
        pytest.param("COPY t FROM STDIN;\n1\n\\. \n", UNENDED.format(1), id="blank-after-the-dot"),
        pytest.param(
            "COPY t FROM STDIN;\n1\n\\.\nSELECT 1;\nCOPY t FROM STDIN;\n1", UNENDED.format(5)
        ),
        pytest.param("SELECT 1 \\; COPY t FROM STDIN;", UNENDED.format(1), id="joined-to-another"),
        pytest.param("\ufeffCOPY t FROM STDIN;", UNENDED.format(1), id="after-a-bom"),
        pytest.param("\ufeff", EMPTY, id="a-bom-alone"),
    ],
)
def test_what_cannot_be_judged_is_named(sql: str, why: str) -> None:
    assert problem(sql) == why


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT 1", id="no-semicolon"),
        pytest.param("\\i other.sql", id="meta-command"),
        pytest.param("\ufeffSELECT 1;", id="bom"),
        pytest.param("COPY t FROM STDIN;\r\n1\r\n\\.\r\nSELECT 1;", id="crlf"),
        pytest.param("COPY t FROM STDIN;\n'\"$$ /* --\n\\.\n", id="rows-full-of-quotes"),
        pytest.param("COPY t FROM '/tmp/x';", id="from-a-file"),
        pytest.param("COPY t TO STDOUT;", id="to-stdout"),
        pytest.param("SELECT 'COPY t FROM STDIN;'", id="in-a-literal"),
        pytest.param("SELECT E'\\'; COPY t FROM STDIN;'", id="in-an-escaped-literal"),
        pytest.param('SELECT 1 AS "; COPY t FROM STDIN;"', id="in-an-identifier"),
        pytest.param("DO $x$ ; COPY t FROM STDIN; $$ $x$;", id="in-a-dollar-quote"),
        pytest.param("SELECT 1; -- ;COPY t FROM STDIN;", id="in-a-comment"),
        pytest.param("/* ; COPY t FROM STDIN; */ SELECT 1", id="in-a-block"),
        pytest.param("SELECT 'never closed; COPY t FROM STDIN;", id="never-closed"),
    ],
)
def test_a_text_that_only_looks_like_a_copy_is_run(sql: str) -> None:
    assert problem(sql) is None

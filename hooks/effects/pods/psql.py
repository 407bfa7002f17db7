r"""Run a SQL script with psql inside a container, and tell what became of it.

The script goes in on standard input, with its length ahead as an argument: it is executed only if
all of it arrived, so a stream that is cut does not run half a statement. (A WebSocket of version 4
cannot say that standard input ended, either.)

psql's exit code is not enough: it is 0 for a script that leaves a transaction open, ends itself
with `\q`, or turns ON_ERROR_STOP off. So a few lines are appended that fail inside a transaction
and print a random token; success is exit code 0, the token, and no error before it.

The server is told to send codes instead of sentences, since these quote statements and values.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from psycopg import errors

from hooks.core.deadline import Deadline
from hooks.core.errors import Misconfigured
from hooks.effects.pods.output import Problem, Problems, Tail
from hooks.effects.ports.pods import NotNow, OutcomeUnknown, ScriptFailed

SYSTEM = "PostgreSQL"

# Arguments: the number of bytes, the application name, the seconds, the question asked first.
# A shell's variable holds no NUL, and `$(...)` takes newlines from the end: hence the dot.
_FRAME = """
type -P head timeout psql >/dev/null || exit 127
export LC_ALL=C PGCLIENTENCODING=UTF8 PGAPPNAME="$2"
export PGOPTIONS="${PGOPTIONS:-} -c lc_messages=C -c log_min_error_statement=panic"
script=$(head -c "$1"; printf .)
script=${script%.}
[ "${#script}" -eq "$1" ] || exit 97
printf %s "$script" | timeout -s INT -k 10 "$3" psql -Xw --set=ON_ERROR_STOP=1 \
--set=VERBOSITY=sqlstate --set=SHOW_CONTEXT=never --command="$4" --file=-
"""

# Each answer but 0 is a failure with a code of its own.
_QUESTION = """
SELECT CASE
  WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_backend_pid() / 0
  WHEN EXISTS (
    SELECT FROM pg_catalog.pg_stat_activity
    WHERE application_name = pg_catalog.current_setting('application_name')
      AND pid <> pg_catalog.pg_backend_pid()
  ) THEN ('busy' || pg_catalog.pg_backend_pid())::pg_catalog.int4
  ELSE 0
END
"""
_NOT_NOW = {
    "22012": "the server is in recovery: it takes no writes",
    "22P02": "an earlier run of the SQL has not ended yet",
}

# The first line undoes what of the script's settings would have a finished script seem unfinished.
_EPILOGUE = r"""
\set ON_ERROR_STOP 1 \set AUTOCOMMIT on \set FETCH_COUNT 0 \set SINGLELINE off
;
SELECT 1 OPERATOR(pg_catalog./)
  (CASE WHEN pg_catalog.now() OPERATOR(pg_catalog.=) pg_catalog.statement_timestamp()
   THEN 1 ELSE 0 END) AS init_sql_end \gset
\echo """
_LAST_STATEMENT, _TRANSACTION = 2, 5
"""Lines of the epilogue: where an unfinished statement ends, and where a transaction shows."""

_SHORT, _TIME_IS_UP, _NOT_RUNNABLE, _MISSING, _KILLED = 97, 124, 126, 127, 137
_FAILED, _DISCONNECTED, _SCRIPT_FAILED = 1, 2, 3
_CANCELED = "57014"

_STOPPING = 30.0
"""Seconds before the end of our time at which psql is stopped."""


@dataclass(frozen=True, slots=True)
class Container:
    """Where a command is run."""

    namespace: str
    pod: str
    name: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code; None when the end was not seen.
        delivered: all of the standard input was sent.
    """

    code: int | None
    delivered: bool


class Remote(Protocol):
    """Runs commands in containers."""

    def run(
        self,
        container: Container,
        argv: Sequence[str],
        stdin: bytes,
        outputs: tuple[Callable[[bytes], None], Callable[[bytes], None]],
    ) -> Ended:
        """Run a command, telling its standard output and error as they come.

        Raises:
            EffectError: it was not started.
        """
        ...


class Psql:
    """psql in the containers of one cluster's Pods."""

    def __init__(self, remote: Remote, deadline: Deadline, *, application: str) -> None:
        """Use `application` as the name by which an earlier run is found on the server."""
        self._remote = remote
        self._deadline = deadline
        self._application = application

    def exec(self, namespace: str, pod: str, *, container: str, stdin: str) -> None:
        """Run the SQL on standard input; to return is to have succeeded."""
        seconds = self._deadline.left() - _STOPPING
        if seconds < 1:
            raise NotNow(SYSTEM, "too little time is left to run the SQL")
        token = secrets.token_hex(16)
        script = f"{stdin}{_EPILOGUE}{token}\n".encode()
        size = str(len(script))
        argv = ("bash", "-c", _FRAME, "init-sql", size, self._application, f"{seconds:.0f}")
        out, problems = Tail(), Problems()
        ended = self._remote.run(
            Container(namespace, pod, container),
            (*argv, _QUESTION),
            script,
            (out.feed, problems.feed),
        )
        problems.close()
        _not_executed(ended, problems)
        _judge(ended.code, problems, lines=stdin.count("\n") + 1)
        if not out.has_line(token):
            raise ScriptFailed(SYSTEM, r"it stopped before its last line, as \q does")


def _not_executed(ended: Ended, problems: Problems) -> None:
    """Raise if no statement of the script was executed."""
    if ended.code in (_NOT_RUNNABLE, _MISSING):
        raise Misconfigured(SYSTEM, "the container lacks one of bash, head, timeout and psql")
    if ended.code == _SHORT or not ended.delivered:
        raise NotNow(SYSTEM, "the SQL did not arrive whole, so it was not executed")
    if ended.code == _FAILED and problems.before is not None:
        why = _NOT_NOW.get(problems.before, "the server could not be asked what it is")
        raise NotNow(SYSTEM, why, code=None if problems.before in _NOT_NOW else problems.before)
    if ended.code == _DISCONNECTED and problems.unconnected and problems.first is None:
        raise NotNow(SYSTEM, "psql gets no connection in the container")


def _judge(code: int | None, problems: Problems, *, lines: int) -> None:
    """Raise unless psql says that nothing went wrong."""
    first = problems.first
    line = min(first.line, lines) if first and not first.included else None
    sqlstate = first.code if first else None
    if code is None:
        raise OutcomeUnknown(SYSTEM, "the connection was lost before the end was seen", line=line)
    if code == _TIME_IS_UP:
        detail = "its time was over: the running statement was canceled"
        raise ScriptFailed(SYSTEM, detail, code=_CANCELED, line=line)
    if code == _DISCONNECTED:
        detail = "the session was lost, and what ran last may have been executed"
        raise OutcomeUnknown(SYSTEM, detail, code=sqlstate, line=line)
    if first is not None:
        raise ScriptFailed(SYSTEM, _what(first, lines), code=sqlstate, line=line)
    if code == _SCRIPT_FAILED:
        raise ScriptFailed(SYSTEM, "psql stopped and did not say where")
    if code:
        what = "was killed" if code == _KILLED else f"ended with code {code}"
        raise OutcomeUnknown(SYSTEM, f"psql {what}")


def _what(problem: Problem, lines: int) -> str:
    """Say what failed, in our words."""
    beyond = 0 if problem.included else problem.line - lines
    if beyond == _TRANSACTION and problem.code is not None:
        return "it leaves a transaction open, which was rolled back: COMMIT is missing"
    if beyond > _LAST_STATEMENT or (beyond > 0 and problem.code is None):
        return r"it ends inside a quote, a comment, an \if or a \restrict"
    place = f"line {min(problem.line, lines)}"
    if problem.included:
        place = f"line {problem.line} of a file that it includes"
    if problem.code is None:
        return f"psql refused {place}"
    return f"the statement that ends on {place} failed: {_name(problem.code)}"


def _name(code: str) -> str:
    """Return PostgreSQL's name of a SQLSTATE, or the code when it has none."""
    try:
        camel = errors.lookup(code).__name__
    except KeyError:
        return code
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", camel).lower()

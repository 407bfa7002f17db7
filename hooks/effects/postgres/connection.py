"""A psycopg connection that ends with the request that opened it.

Statements wait on our side too: a server that has gone silent does not honour its own
statement_timeout. When time is up the socket is closed and nothing is cancelled, so that CREATE
DATABASE runs to its end on the server, which keeps the session's locks until then.
"""

from __future__ import annotations

import math
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql
from psycopg.abc import RV, PQGen, QueryNoTemplate
from psycopg.rows import TupleRow
from psycopg.waiting import Ready, Wait

from hooks.core.deadline import CALL_SECONDS, Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.ports import Endpoint, Login
from hooks.effects.postgres import certificate
from hooks.effects.postgres.errors import NO_SCRAM, POOLER, SYSTEM, of_login, translating
from hooks.effects.postgres.libpq import (
    SEARCH_PATH,
    HandshakeFailed,
    conninfo,
    poll,
    shake_hands,
)

CONNECT_FLOOR_SECONDS = 3.0

# A statement that waits for no lock and copies nothing has no reason to take longer. Settings
# that some version lacks are left out by asking pg_settings.
_NO_LIMITS = """
    SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'transaction_timeout', 'client_connection_check_interval')
"""


@contextmanager
def closing_on_error(connection: psycopg.Connection[TupleRow]) -> Iterator[None]:
    """Close the connection if what is done inside fails."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


class Connection(psycopg.Connection[TupleRow]):
    """A session in autocommit mode whose every wait obeys the deadline."""

    deadline: Deadline
    cap: float
    warnings: list[str]

    @classmethod
    def open(
        cls,
        endpoint: Endpoint,
        login: Login,
        deadline: Deadline,
        *,
        ca_file: Path | None,
        require_auth: str,
    ) -> Self:
        """Log in, and make sure that nothing sits between us and the server.

        Raises:
            EffectError: of the class that fits the stage which failed.
        """
        if not login.username or not login.password:
            raise Refused(SYSTEM, "cannot log in: the user name or the password is empty")
        target = conninfo(endpoint, login, ca_file=ca_file, require_auth=require_auth)
        spare = deadline.left() - deadline.timeout(SYSTEM, floor=CONNECT_FLOOR_SECONDS)
        try:
            pgconn = shake_hands(target, left=lambda: deadline.left() - spare)
        except HandshakeFailed as failure:
            raise _explain(failure, endpoint, deadline, ca_file) from None
        connection = cls(pgconn)
        connection.deadline = deadline
        connection.cap = CALL_SECONDS
        connection.warnings = []
        connection.autocommit = True
        connection.prepare_threshold = None
        connection.add_notice_handler(connection._hear)
        with closing_on_error(connection):
            if connection._is_direct():
                return connection
            raise Misconfigured(SYSTEM, POOLER)

    def rows(self, query: QueryNoTemplate, values: Sequence[object] = ()) -> list[TupleRow]:
        """Run one statement and return its rows; none begins with too little time left."""
        self.deadline.timeout(SYSTEM)
        cursor = self.execute(query, values or None)
        return cursor.fetchall() if cursor.description else []

    def changed(self, query: QueryNoTemplate, values: Sequence[object] = ()) -> int:
        """Run one INSERT, UPDATE or DELETE and return how many rows it touched."""
        self.deadline.timeout(SYSTEM)
        return self.execute(query, values or None).rowcount

    def send(self, table: sql.Composable, value: str) -> None:
        """Insert one value by COPY, which servers do not log."""
        self.deadline.timeout(SYSTEM)
        with (
            self.cursor() as cursor,
            cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy,
        ):
            copy.write_row([value])

    @contextmanager
    def atomic(self) -> Iterator[None]:
        """Make a transaction of what is run inside.

        psycopg's own block logs the user's name when a roll-back fails.
        """
        self.rows("BEGIN")
        try:
            yield
        except BaseException:
            with suppress(psycopg.Error, EffectError):
                self.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def run_to_the_end(self, statement: QueryNoTemplate) -> None:
        """Run a statement without a time limit on the server; we wait until the deadline."""
        self.rows(_NO_LIMITS)
        self.deadline.timeout(SYSTEM)
        self.cap = math.inf
        try:
            self.execute(statement)
        finally:
            self.cap = CALL_SECONDS
        self.rows("RESET statement_timeout")

    def wait(self, gen: PQGen[RV], interval: float = 0.0, timeout: float | None = None) -> RV:
        """Drive one exchange with the server, as psycopg asks, until its time is up."""
        del interval, timeout  # nobody but the deadline wakes us
        spare = max(0.0, self.deadline.left() - self.cap)
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send(self._ready(wanted, self.deadline.left() - spare))
        except StopIteration as finished:
            result: RV = finished.value
            return result

    def _ready(self, wanted: Wait, seconds: float) -> Ready | int:
        events = (select.POLLIN if wanted & Wait.R else 0) | (
            select.POLLOUT if wanted & Wait.W else 0
        )
        found = poll(self.pgconn.socket, events, seconds)
        if not found:
            self.close()
            raise Unavailable(
                SYSTEM, "no answer in time; what was asked may still be done by the server"
            )
        # Errors and hang-ups are for libpq to find, in whatever it waited for.
        readable = Ready.R if found & ~select.POLLOUT else Ready.NONE
        writable = Ready.W if found & ~select.POLLIN else Ready.NONE
        return (readable | writable) & wanted

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate and notice.sqlstate.startswith("01"):
            self.warnings.append(notice.sqlstate)

    def _is_direct(self) -> bool:
        """A pooler shows a process id of its own, or drops our startup options."""
        with translating("cannot look at the session"):
            rows = self.rows("SELECT pg_backend_pid(), current_setting('search_path')")
        return rows == [(self.pgconn.backend_pid, SEARCH_PATH)]


def _explain(
    failure: HandshakeFailed, endpoint: Endpoint, deadline: Deadline, ca_file: Path | None
) -> EffectError:
    """Say why there is no session; where the server gave no code, by trying the stages apart."""
    if failure.code:
        return of_login(failure.code)
    if failure.timed_out:
        return Unavailable(SYSTEM, "no answer in time while logging in")
    if failure.method_refused:
        return Refused(SYSTEM, NO_SCRAM)
    if endpoint.ssl_mode != "disable" and not failure.encrypted:
        try:
            names = certificate.read(endpoint, deadline, ca_file=ca_file)
        except EffectError as error:
            return error
        if endpoint.ssl_mode == "verify-full" and not names.covers_host:
            return Refused(SYSTEM, "the server's certificate is not for this host")
    return Unavailable(SYSTEM, "nobody listens there, or the connection was closed at once")

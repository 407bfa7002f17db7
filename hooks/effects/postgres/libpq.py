"""The handshake with a server, on libpq itself.

psycopg's own `connect` cannot be used: it knows whole seconds only, throws away which stage
failed, and has no SQLSTATE for a refused login. libpq knows that code, but prints it only in an
error verbosity that psycopg does not offer; so that one function is called through ctypes. As a
bonus no text of the server ever gets into an exception: all later ones are bare codes too.

Nothing is taken from PG* variables or files in the home directory, with one exception: libpq
reads PGSERVICE before all else and fails if there is no such service.
"""

from __future__ import annotations

import ctypes
import re
import select
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import make_conninfo

from hooks.core.errors import Misconfigured, Refused
from hooks.effects.ports import Endpoint, Login
from hooks.effects.postgres.errors import NOT_A_TEXT, SYSTEM

SEARCH_PATH = "pg_catalog,pg_temp"
STATEMENT_MILLISECONDS = 4500
LOCK_MILLISECONDS = 3000
IDLE_MILLISECONDS = 15000

# A tenant's database and role may carry settings of the tenant's choice; startup options win.
_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        f"search_path={SEARCH_PATH}",
        "role=none",
        "default_transaction_read_only=off",
        f"statement_timeout={STATEMENT_MILLISECONDS}",
        f"lock_timeout={LOCK_MILLISECONDS}",
        f"idle_in_transaction_session_timeout={IDLE_MILLISECONDS}",
    )
)

# Below verify-ca a root certificate that happens to exist would be checked after all.
_NO_FILE = "/dev/null/none"

# What "unset" has to be called, where an empty value is not allowed.
_UNSET = {b"min_protocol_version": "3.0", b"max_protocol_version": "3.0"}

_PQERRORS_SQLSTATE = 3
_SQLSTATE = re.compile(rb":  ([0-9A-Z]{5})\n\Z")


class HandshakeFailed(Exception):
    """The handshake ended without a session; what is known is in the attributes.

    Attributes:
        code: the server's SQLSTATE, if it said one.
        encrypted: TLS was established.
        method_refused: the server did not ask for the password in an acceptable way.
        timed_out: the time was spent.
    """

    def __init__(self, pgconn: pq.abc.PGconn, *, timed_out: bool = False) -> None:
        super().__init__("the handshake failed")
        message = pgconn.error_message
        found = _SQLSTATE.search(message)
        self.code = found[1].decode() if found else None
        self.encrypted = pgconn.ssl_in_use
        # Said by libpq, not by the server, and the wheels of libpq have no translations.
        self.method_refused = b"authentication method requirement" in message
        self.timed_out = timed_out


def conninfo(endpoint: Endpoint, login: Login, *, ca_file: Path | None, require_auth: str) -> bytes:
    """Return the connection string, with a value for every parameter that a variable could set."""
    verified = endpoint.ssl_mode in {"verify-ca", "verify-full"}
    if verified and ca_file is None:
        raise Misconfigured(
            SYSTEM, f"sslMode {endpoint.ssl_mode} needs a CA file in the controller's settings"
        )
    ours = {
        "host": endpoint.host,
        "hostaddr": endpoint.hostaddr,
        "port": str(endpoint.port),
        "dbname": endpoint.database,
        "user": login.username,
        "password": login.password,
        "passfile": "/dev/null",
        "sslmode": endpoint.ssl_mode,
        "sslrootcert": str(ca_file) if verified else _NO_FILE,
        "sslcertmode": "disable",
        "gssencmode": "disable",
        "channel_binding": "prefer",
        "require_auth": require_auth,
        "target_session_attrs": "any",
        "application_name": "database-hooks",
        "client_encoding": "UTF8",
        "options": _OPTIONS,
        "keepalives": "1",
        "keepalives_idle": "30",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": "60000",
    }
    if not all(map(_is_text, ours.values())):
        raise Refused(SYSTEM, NOT_A_TEXT)
    return make_conninfo("", **_defaults() | ours).encode()


def shake_hands(conninfo: bytes, *, left: Callable[[], float]) -> pq.abc.PGconn:
    """Connect and authenticate.

    Raises:
        HandshakeFailed: there is no session.
    """
    pgconn = pq.PGconn.connect_start(conninfo)
    try:
        _print_only_codes(pgconn)
        _drive(pgconn, left)
    except BaseException:
        pgconn.finish()
        raise
    pgconn.nonblocking = 1
    return pgconn


def _drive(pgconn: pq.abc.PGconn, left: Callable[[], float]) -> None:
    while pgconn.status != pq.ConnStatus.BAD:
        match pgconn.connect_poll():
            case pq.PollingStatus.OK:
                return
            case pq.PollingStatus.READING:
                wanted = select.POLLIN
            case pq.PollingStatus.WRITING:
                wanted = select.POLLOUT
            case _:
                break
        if not poll(pgconn.socket, wanted, left()):
            raise HandshakeFailed(pgconn, timed_out=True)
    raise HandshakeFailed(pgconn)


def poll(descriptor: int, wanted: int, seconds: float) -> int:
    """Wait until the socket is ready; 0 when it was not in time."""
    poller = select.poll()
    poller.register(descriptor, wanted)
    ready = poller.poll(max(0.0, seconds) * 1000)
    return ready[0][1] if ready else 0


def _is_text(value: str) -> bool:
    """Whether it can be sent: a NUL would end it early, half a character has no encoding."""
    return "\0" not in value and value.encode(errors="ignore").decode() == value


def _defaults() -> dict[str, str]:
    """Compiled-in values of what a PG* variable could set."""
    return {
        option.keyword.decode(): _UNSET.get(option.keyword, (option.compiled or b"").decode())
        for option in pq.Conninfo.get_defaults()
        if option.envvar and option.keyword != b"service"
    }


@cache
def _set_error_verbosity() -> Callable[[int | None, int], int]:
    """Find libpq's PQsetErrorVerbosity through the module that is linked to that libpq."""
    module = sys.modules[pq.PGconn.__module__]
    function = ctypes.CDLL(module.__file__).PQsetErrorVerbosity
    function.argtypes = [ctypes.c_void_p, ctypes.c_int]
    function.restype = ctypes.c_int
    return lambda pointer, verbosity: int(function(pointer, verbosity))


def _print_only_codes(pgconn: pq.abc.PGconn) -> None:
    pointer = pgconn.pgconn_ptr  # type: ignore[attr-defined]  # the typed protocol leaves it out
    _set_error_verbosity()(pointer, _PQERRORS_SQLSTATE)

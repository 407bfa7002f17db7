"""PostgreSQL's errors, translated once into classes that a condition can show.

A SQLSTATE decides; the server's sentences are never shown, since they name roles and addresses
and come in the server's language. Failures to connect have a SQLSTATE too, see `libpq`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import psycopg

from hooks.core.errors import (
    Blocked,
    Denied,
    EffectError,
    Misconfigured,
    Refused,
    Taken,
    Unavailable,
)

SYSTEM = "PostgreSQL"

Meaning = tuple[type[EffectError], str]

LOST = "the connection was lost; its outcome is not known yet"
NOT_A_TEXT = "cannot log in: the user name or the password holds a character that PostgreSQL lacks"
NO_SCRAM = (
    "cannot log in: the server asks for no password, or not for one in the form of SCRAM:"
    " see pg_hba.conf"
)
POOLER = "a connection pooler seems to be in between; the controller needs a direct connection"

_CLASSES: Mapping[str, Meaning] = {
    "08": (Unavailable, "the connection failed"),
    "57P": (Unavailable, "the server is starting up, shutting down or ended the session"),
}

_STATEMENTS: Mapping[str, Meaning] = {
    "22P02": (Misconfigured, "a value is not of the expected form"),
    "23505": (Taken, "somebody else has the name"),
    "25006": (Unavailable, "the server is read-only; it may be a standby"),
    "2BP01": (Blocked, "other objects, maybe in another database, still depend on it"),
    "3D000": (Blocked, "the database does not exist"),
    "3F000": (Blocked, "the schema does not exist"),
    "40001": (Blocked, "it collided with another transaction"),
    "40P01": (Blocked, "it collided with another transaction"),
    "42501": (Denied, "the role lacks the right to do so"),
    "42704": (Blocked, "an object that it needs does not exist"),
    "42710": (Taken, "somebody else has the name"),
    "42939": (Blocked, "the name is reserved"),
    "42P01": (Blocked, "the ownership registry is not there"),
    "42P04": (Taken, "somebody else has the name"),
    "53100": (Blocked, "the server's disk is full"),
    "53300": (Unavailable, "the server has no free connection"),
    "55006": (Blocked, "it is in use"),
    "55P03": (Blocked, "another session holds a lock"),
    "57014": (Blocked, "the server's time limit was reached"),
    "XX000": (Blocked, "it collided with another change, or the server has an internal problem"),
}

_IN_THE_WAY: Meaning = (Blocked, "an object in the database has the name of one that it makes")

_EXTENSIONS: Mapping[str, Meaning] = {
    "0A000": (Blocked, "the server does not have it, or not in a usable form"),
    "3F000": (Blocked, "schema public does not exist in the database"),
    "42501": (
        Denied,
        "it is not trusted, or needs one that is not; an administrator can install it",
    ),
    "42710": _IN_THE_WAY,
    "42723": _IN_THE_WAY,
    "42P07": _IN_THE_WAY,
    "58P01": (Blocked, "the server does not have it, or not in a usable form"),
}

_DROPS: Mapping[str, Meaning] = {
    "42501": (
        Denied,
        "the admin role may not drop it, or may not end a session that is open in it",
    ),
    "42809": (Blocked, "it is marked as a template"),
    "55006": (
        Blocked,
        "it is in use: a session, a prepared transaction, a replication slot or a subscription",
    ),
}

_LOGINS: Mapping[str, Meaning] = {
    "08P01": (Misconfigured, POOLER),
    "28000": (Refused, "the server does not let this role in: see pg_hba.conf, or it has NOLOGIN"),
    "28P01": (Refused, "the user name or password is wrong, or the password has expired"),
    "3D000": (Misconfigured, "the database does not exist"),
    "42501": (Denied, "the role may not connect to the database"),
    "42704": (Misconfigured, "the server does not know a setting that every PostgreSQL 13 has"),
    "53300": (Unavailable, "the server, the database or the role has no free connection"),
    "55000": (Blocked, "the database accepts no connections"),
    "57P03": (Unavailable, "the server is starting up or shutting down"),
}

COLLATION = (
    "the collation version of template0 is not the one of the operating system; "
    "the database administrator must refresh it"
)


def of_statement(error: psycopg.Error, doing: str) -> EffectError:
    """Translate the error of a statement; `doing` is the beginning of the sentence."""
    code = error.sqlstate
    if code is None:
        return _of_client(error, doing)
    if code == "XX000" and error.diag.source_function == "createdb":
        return Blocked(SYSTEM, f"{doing}: {COLLATION}", code=code)
    return _known(code, doing, _STATEMENTS)


def of_extension(error: psycopg.Error, doing: str) -> EffectError:
    """Translate the error of CREATE EXTENSION."""
    return _special(error, doing, _EXTENSIONS)


def of_drop(error: psycopg.Error, doing: str) -> EffectError:
    """Translate the error of DROP DATABASE."""
    return _special(error, doing, _DROPS)


def of_login(code: str) -> EffectError:
    """Translate the SQLSTATE with which a server refused a connection."""
    return _known(code, "cannot log in", _LOGINS)


Translate = Callable[[psycopg.Error, str], EffectError]


@contextmanager
def translating(doing: str, translate: Translate = of_statement) -> Iterator[None]:
    """Turn psycopg's errors into ours; also a decorator."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, doing) from error


def _special(error: psycopg.Error, doing: str, special: Mapping[str, Meaning]) -> EffectError:
    code = error.sqlstate
    if code and code in special:
        return _known(code, doing, special)
    return of_statement(error, doing)


def _of_client(error: psycopg.Error, doing: str) -> EffectError:
    """No SQLSTATE: the connection broke, or psycopg could not send a value."""
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(SYSTEM, f"{doing}: {LOST}")
    return Misconfigured(SYSTEM, f"{doing}: a value cannot be sent to the server")


def _known(code: str, doing: str, table: Mapping[str, Meaning]) -> EffectError:
    by_class = _CLASSES.get(code[:2]) or _CLASSES.get(code[:3])
    kind, text = table.get(code) or by_class or (Blocked, "the server refused")
    return kind(SYSTEM, f"{doing}: {text}", code=code)

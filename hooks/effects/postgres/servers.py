"""PostgreSQL servers as one request sees them; the implementation of the port `Postgres`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from hooks.core.deadline import Deadline
from hooks.core.errors import Refused
from hooks.effects.ports import Admin, CertificateNames, Endpoint, Login, Postgres, Presence
from hooks.effects.postgres import certificate
from hooks.effects.postgres.connection import Connection
from hooks.effects.postgres.errors import SYSTEM, of_extension, translating
from hooks.effects.postgres.session import AdminSession

_SCRAM = "scram-sha-256"

# What an administrator's login may use besides. A password in clear only inside TLS.
_HASHED = f"{_SCRAM},md5"
_ANY_IN_TLS = f"{_HASHED},password"


class PostgresServers:
    """How servers are reached; the same for all requests.

    Args:
        ca_file: the authorities that verify-ca and verify-full trust.
        schema: the schema of the ownership registry.
        keepers: roles that keep CONNECT on tenants' databases.
    """

    def __init__(
        self,
        *,
        ca_file: Path | None,
        schema: str = "tenant_registry",
        keepers: frozenset[str] = frozenset(),
    ) -> None:
        self.ca_file = ca_file
        self.schema = schema
        self.keepers = keepers

    def bind(self, deadline: Deadline) -> Postgres:
        """Return the servers for a request that ends then."""
        return _BoundServers(self, deadline)


class _BoundServers:
    def __init__(self, servers: PostgresServers, deadline: Deadline) -> None:
        self._servers = servers
        self._deadline = deadline

    def certificate(self, endpoint: Endpoint) -> CertificateNames:
        return certificate.read(endpoint, self._deadline, ca_file=self._servers.ca_file)

    @contextmanager
    def administer(self, endpoint: Endpoint, login: Login) -> Iterator[Admin]:
        connection = self._open(endpoint, login, require_auth=_any_password(endpoint))
        try:
            yield AdminSession(connection, self._servers.schema, self._servers.keepers)
        finally:
            connection.close()

    def log_in(self, endpoint: Endpoint, login: Login) -> Presence:
        connection = self._open(endpoint, login, require_auth=_SCRAM)
        try:
            if not connection.pgconn.used_password:
                raise Refused(SYSTEM, "the server lets the role in without a password")
            with translating("cannot look at the database"):
                rows = connection.rows(
                    "SELECT current_user::text, current_database()::text,"
                    " ARRAY(SELECT extname::text FROM pg_extension)"
                )
        finally:
            connection.close()
        role, database, extensions = rows[0]
        return Presence(role, database, frozenset(extensions))

    def create_extension(self, endpoint: Endpoint, login: Login, name: str) -> None:
        connection = self._open(endpoint, login, require_auth=_any_password(endpoint))
        # Without SCHEMA the pinned search_path would choose pg_catalog; an extension with a
        # schema of its own keeps it, because of CASCADE.
        statement = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public CASCADE")
        try:
            with translating(f"cannot install extension {name}", of_extension):
                _create(connection, statement.format(sql.Identifier(name)), attempts=3)
        finally:
            connection.close()

    def _open(self, endpoint: Endpoint, login: Login, *, require_auth: str) -> Connection:
        return Connection.open(
            endpoint,
            login,
            self._deadline,
            ca_file=self._servers.ca_file,
            require_auth=require_auth,
        )


def _any_password(endpoint: Endpoint) -> str:
    return _HASHED if endpoint.ssl_mode == "disable" else _ANY_IN_TLS


def _create(connection: Connection, statement: sql.Composed, *, attempts: int) -> None:
    """Run it, again when a racer was first: then it exists, unless the racer gave up."""
    try:
        connection.run_to_the_end(statement)
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject):
        if attempts == 1:
            raise
        _create(connection, statement, attempts=attempts - 1)

"""What is asked of a PostgreSQL server."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from hooks.effects.ports.server import (
    Available,
    CertificateNames,
    Database,
    Endpoint,
    Login,
    Presence,
    RegistryInfo,
    Role,
    Row,
    RowState,
    ServerInfo,
)


class Registry(Protocol):
    """The ownership registry: schema tenant_registry in endpoint.database."""

    def registry(self) -> RegistryInfo | None:
        """Read the registry's version and probe it; None when there is none."""
        ...

    def migrate(self) -> None:
        """Bring the registry to this code's version, under an advisory lock."""
        ...

    def row(self, uid: str) -> Row | None:
        """Read one tenant's row."""
        ...

    def claims(self, *, database: str, role: str, secret: tuple[str, str] = ("", "")) -> list[Row]:
        """Read the rows that name this database, role or Secret, whoever's they are.

        `secret` is a namespace and a name; an unmanaged row has no Secret any more.
        """
        ...

    def candidates(self, instance_uid: str, *, older_than: float) -> list[Row]:
        """Read rows of an Instance, planned or managed, unchanged for so many seconds."""
        ...

    def insert_row(self, row: Row) -> None:
        """Record the intent. Raises Taken when the UID, database or role has a row."""
        ...

    def rewrite_row(self, row: Row) -> None:
        """Change the names of a row that is still planned and has no OID."""
        ...

    def mark(self, uid: str, *, state: RowState, was: frozenset[RowState]) -> None:
        """Move a row to a state. Raises Taken when it is in none of `was`."""
        ...

    def delete_row(self, uid: str) -> None:
        """Forget a row in state deleting; no row is success."""
        ...

    def record_extensions(self, uid: str, extensions: frozenset[str]) -> None:
        """Record the extensions that were seen, as the append-only baseline."""
        ...

    def record_approval(self, uid: str, approval: str) -> None:
        """Record that what was approved is done, so that it is done once."""
        ...

    def hand_over(self, old: str, new: str) -> None:
        """Give the unmanaged row of a Tenant that is gone to one of the same name.

        The row becomes managed and records the approval, in one statement. Raises Taken when it
        is not unmanaged any more.
        """
        ...

    def rebind(self, row: Row) -> None:
        """Record another Instance UID and other OIDs, as an administrator has proved them."""
        ...

    def record_sweep(self) -> None:
        """Record that a sweep ended now."""
        ...


class Catalog(Protocol):
    """Roles, databases and extensions of the server."""

    def role(self, name: str) -> Role | None:
        """Read a role."""
        ...

    def database(self, name: str) -> Database | None:
        """Read a database."""
        ...

    def names_of(self, *, role_oid: int, database_oid: int) -> tuple[str | None, str | None]:
        """Read which role and database have these OIDs; None for each that is gone."""
        ...

    def available(self, extensions: frozenset[str]) -> list[Available]:
        """Read which of these extensions the server can install, and which are trusted."""
        ...

    def create_role(self, uid: str, login: Login) -> None:
        """Create the login role and record its OID in the row, in one transaction.

        The server gets a SCRAM verifier. The admin is made a member, so that it may create the
        database. The row becomes managed. Raises Taken when the role exists.
        """
        ...

    def administer_role(self, name: str) -> None:
        """Make the admin a member of the role with INHERIT and SET."""
        ...

    def set_password(self, login: Login) -> None:
        """Give the role this password, as a SCRAM verifier."""
        ...

    def forbid_login(self, name: str) -> None:
        """Set NOLOGIN; no role is success."""
        ...

    def drop_role(self, name: str, *, oid: int) -> None:
        """Drop the role if it still has this OID; gone is success."""
        ...

    def create_database(self, name: str, *, owner: str) -> None:
        """Run CREATE DATABASE, owned by `owner`, from template0.

        It has no statement time-out: when the deadline comes the socket is closed, the server
        finishes, and the session lock stays taken until it has.
        """
        ...

    def secure_database(self, uid: str, name: str) -> None:
        """Take PUBLIC's rights away and record the database's OID in the row, in one transaction.

        CONNECT is granted to the roles that keep it by setting.
        """
        ...

    def drop_database(self, name: str, *, oid: int) -> None:
        """Drop the database, ending its sessions, if it still has this OID; gone is success."""
        ...


class Admin(Registry, Catalog, Protocol):
    """One administrative session in endpoint.database, kept for the whole request."""

    def try_lock(self, key: str) -> bool:
        """Take the session advisory lock of this UID; False when another session has it."""
        ...

    def server(self) -> ServerInfo:
        """Read what the server says of itself and of us."""
        ...


class Postgres(Protocol):
    """Connections to PostgreSQL servers, made for one request and closed with it."""

    def certificate(self, endpoint: Endpoint) -> CertificateNames:
        """Shake hands and read the server's names; the chain is verified against our CA.

        Raises:
            Refused: the server has no TLS, or its certificate is not trusted.
            Unavailable: nobody answers.
        """
        ...

    def administer(self, endpoint: Endpoint, login: Login) -> AbstractContextManager[Admin]:
        """Open the admin session; leaving the context closes it and frees its locks."""
        ...

    def log_in(self, endpoint: Endpoint, login: Login) -> Presence:
        """Log in with a password that the server really asks for, look around, and leave."""
        ...

    def create_extension(self, endpoint: Endpoint, login: Login, name: str) -> None:
        """Install an extension in endpoint.database with the rights of `login`.

        The session is one that the database's settings cannot steer.
        """
        ...

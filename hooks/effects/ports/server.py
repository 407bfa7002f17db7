"""What is read of a PostgreSQL server, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

SslMode = Literal["disable", "require", "verify-ca", "verify-full"]
RowState = Literal["planned", "managed", "deleting", "unmanaged"]

REGISTRY_VERSION = 1
"""The version of the registry's tables that this code was written for."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server is and how it is trusted; the fields of spec.endpoint."""

    host: str
    hostaddr: str
    port: int
    database: str
    ssl_mode: SslMode


@dataclass(frozen=True, slots=True)
class Login:
    """A user name and password."""

    username: str = field(repr=False)
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CertificateNames:
    """Subject alternative names of the certificate that a server showed."""

    dns: frozenset[str]
    ips: frozenset[str]
    """Canonical text of `ipaddress` objects."""
    covers_host: bool
    covers_hostaddr: bool


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a server says of itself and of the admin role that asks.

    Attributes:
        version: as the server prints it, "17.10".
        version_num: server_version_num, 170010.
        standby: in recovery.
        read_only: writes would fail, although the session asks for read-write.
        superuser, createdb, createrole, inherit: attributes of the admin role.
        registry_creatable: the registry schema may be created, or is there and ours.
        registry_schema: the name of the registry schema when it is there, otherwise empty.
    """

    version: str
    version_num: int
    standby: bool
    read_only: bool
    superuser: bool
    createdb: bool
    createrole: bool
    inherit: bool
    registry_creatable: bool
    registry_schema: str = ""


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """The ownership registry's own state.

    Attributes:
        schema_version: of the tables on the server.
        min_code: the lowest schema version that code must know to use these tables.
        sweep_age: seconds since the last sweep ended, by the server's clock, or None.
        writable: a write probe inside a rolled-back transaction passed.
    """

    schema_version: int
    min_code: int
    sweep_age: float | None
    writable: bool

    @property
    def usable(self) -> bool:
        """Say whether this code may use the tables: old enough to know, new enough to be there."""
        return self.min_code <= REGISTRY_VERSION <= self.schema_version


@dataclass(frozen=True, slots=True)
class Row:
    """One tenant in the ownership registry (table tenant_registry.tenant).

    Attributes:
        approvals: what an administrator allowed and was done, each once: "hand-over:<uid>" for
            the Tenant that had the database before, "new-credential:<annotation's value>".
    """

    uid: str
    instance_uid: str
    instance_name: str
    namespace: str
    name: str
    database: str
    role: str
    kv_path: str
    secret_name: str
    state: RowState = "planned"
    database_oid: int | None = None
    role_oid: int | None = None
    extensions: frozenset[str] = frozenset()
    approvals: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Role:
    """A login role as pg_roles shows it.

    Attributes:
        expired: VALID UNTIL lies in the past.
        elevated: it has an attribute that a tenant must not have (SUPERUSER, CREATEDB,
            CREATEROLE, REPLICATION, BYPASSRLS).
        administered: the admin may act as it (member with INHERIT and SET, or superuser).
    """

    oid: int
    can_login: bool
    expired: bool
    connection_limit: int
    elevated: bool
    administered: bool


@dataclass(frozen=True, slots=True)
class Database:
    """A database as pg_database shows it.

    Attributes:
        connection_limit: -1 none, -2 an interrupted DROP left it invalid.
        public_privileges: what PUBLIC may do, read from datacl ("CONNECT", "TEMPORARY").
        keepers_missing: roles of the setting "roles that keep CONNECT" which exist and lack it.
    """

    oid: int
    owner_oid: int
    allows_connections: bool
    connection_limit: int
    is_template: bool
    public_privileges: frozenset[str]
    keepers_missing: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Available:
    """An extension that the server can install."""

    name: str
    trusted: bool


@dataclass(frozen=True, slots=True)
class Presence:
    """What a login into a database saw: proof that it works.

    Attributes:
        role: current_user.
        database: current_database().
        extensions: names in pg_extension.
    """

    role: str
    database: str
    extensions: frozenset[str]

"""What the resources ask of the outside world.

Every call may raise EffectError and nothing else; each has a time-out taken from the request's
deadline, which the adapters hold. `None` always means "looked, not there".

A method that changes something is one write: it is atomic, safe to repeat and safe to race. It
does what it says or raises; that its effect is there is only known after reading again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hooks.core.deadline import Deadline
from hooks.effects.ports.druid import Druid
from hooks.effects.ports.kubernetes import (
    EXTERNAL_SECRETS,
    INSTANCES,
    TENANTS,
    Kubernetes,
    Resource,
    Secret,
)
from hooks.effects.ports.openbao import Credential, CredentialStore
from hooks.effects.ports.postgres import Admin, Catalog, Postgres, Registry
from hooks.effects.ports.server import (
    REGISTRY_VERSION,
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
    SslMode,
)

__all__ = [
    "EXTERNAL_SECRETS",
    "INSTANCES",
    "REGISTRY_VERSION",
    "TENANTS",
    "Admin",
    "Available",
    "Catalog",
    "CertificateNames",
    "Credential",
    "CredentialStore",
    "Database",
    "Druid",
    "Endpoint",
    "Kubernetes",
    "Login",
    "Postgres",
    "Presence",
    "Registry",
    "RegistryInfo",
    "Resource",
    "Role",
    "Row",
    "RowState",
    "Secret",
    "ServerInfo",
    "Services",
    "SslMode",
]


@dataclass(frozen=True, slots=True)
class Services:
    """The outside world of one request."""

    kubernetes: Kubernetes
    postgres: Postgres
    credentials: CredentialStore
    druid: Druid
    deadline: Deadline
    now: datetime

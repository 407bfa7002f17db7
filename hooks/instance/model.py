"""What a PostgreSQLInstance asks for, or everything wrong with it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.core.names import DNS_SUBDOMAIN, IDENTIFIER, MAX_NAME
from hooks.effects.ports import Endpoint

PHASES = ("Pending", "Validating", "InitializingRegistry", "Ready")
DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class Config:
    """What the deployment decides for all Instances.

    Attributes:
        controller_namespace: where the admin Secrets are.
        sweep_seconds: how often, at most, rows of vanished Tenants are looked for; a row must
            have been unchanged for as long.
    """

    controller_namespace: str
    sweep_seconds: float


@dataclass(frozen=True, slots=True)
class Spec:
    """A valid Instance."""

    uid: str
    name: str
    generation: int
    endpoint: Endpoint


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class _Endpoint(_Model):
    host: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    hostaddr: str
    port: Annotated[int, Field(ge=1, le=65535)] = 5432
    database: str = "postgres"
    ssl_mode: Literal["disable", "require", "verify-ca", "verify-full"] = "verify-full"


class _AdminCredential(_Model):
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    username_key: Annotated[str, Field(min_length=1)] = "username"
    password_key: Annotated[str, Field(min_length=1)] = "password"  # noqa: S105  a key's name


class _Instance(_Model):
    endpoint: _Endpoint
    admin_credential_ref: _AdminCredential


def parse(parent: Manifest) -> Spec | list[str]:
    """Read an Instance.

    Returns:
        The spec, or every problem as "path: what is wrong and what to do".
    """
    try:
        model = _Instance.model_validate(parent.get("spec") or {})
    except ValidationError as error:
        return [
            f"{'.'.join(('spec', *map(str, problem['loc'])))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
    problems = list(_problems(model))
    if problems:
        return problems
    endpoint = model.endpoint
    return Spec(
        uid=manifests.uid(parent),
        name=manifests.name(parent),
        generation=manifests.generation(parent),
        endpoint=Endpoint(
            host=endpoint.host,
            hostaddr=endpoint.hostaddr,
            port=endpoint.port,
            database=endpoint.database,
            ssl_mode=endpoint.ssl_mode,
        ),
    )


def _problems(model: _Instance) -> Iterator[str]:
    endpoint = model.endpoint
    if not DNS_SUBDOMAIN.match(endpoint.host.lower()) or _is_address(endpoint.host):
        yield f"spec.endpoint.host: {endpoint.host!r} is no DNS name"
    if not _is_address(endpoint.hostaddr):
        yield f"spec.endpoint.hostaddr: {endpoint.hostaddr!r} is not one IPv4 or IPv6 address"
    if not IDENTIFIER.match(endpoint.database):
        yield (
            f"spec.endpoint.database: {endpoint.database!r} is no PostgreSQL identifier"
            " ^[a-z][a-z0-9_]{0,62}$"
        )
    name = model.admin_credential_ref.name
    if not DNS_SUBDOMAIN.match(name):
        yield f"spec.adminCredentialRef.name: {name!r} is no Kubernetes object name"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text

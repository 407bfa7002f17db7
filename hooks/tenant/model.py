"""What a PostgreSQLTenant asks for, with every default computed, or everything wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.core.names import DNS_SUBDOMAIN, IDENTIFIER, MAX_NAME

EXTENSION = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\Z")

MAX_INSTANCE_AND_NAME = 241
"""instanceRef and metadata.name together; with "-" and "-postgresql" they name an object."""

NEW_CREDENTIAL = "database.ddupan.top/new-credential"
"""Annotation of a Tenant: make a new password, if the old one is lost. Each value works once."""
HAND_OVER = "database.ddupan.top/hand-over"
"""Annotation of an Instance: `<old UID>=<new UID>`, several by commas. The database that the old
Tenant retained goes to the new one of the same namespace and name."""

RESERVED = frozenset({"postgres", "template0", "template1", "public", "none"})

PHASES = (
    "Pending",
    "Planned",
    "CredentialCreated",
    "RoleCreated",
    "DatabaseCreated",
    "ExternalSecretCreated",
    "CredentialProjected",
    "Ready",
)


@dataclass(frozen=True, slots=True)
class Config:
    """What the deployment decides for all Tenants.

    Attributes:
        controller_namespace: where the admin Secrets are.
        mount: the KV v2 mount.
        base_path: under the mount; a tenant's path is base_path/namespace/name.
        consumer_address: how users reach OpenBao; goes to status.credential.openBaoURL.
        store_name, store_kind: the SecretStore that ExternalSecrets name.
        refresh_interval: of the ExternalSecrets, a Go duration.
        ca_pem: the CA of the PostgreSQL servers, for key ca.crt; empty for none.
    """

    controller_namespace: str
    mount: str
    base_path: str
    consumer_address: str
    store_name: str
    store_kind: Literal["SecretStore", "ClusterSecretStore"]
    refresh_interval: str
    ca_pem: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a Tenant is; known even when its spec is wrong."""

    uid: str
    namespace: str
    name: str
    generation: int

    @classmethod
    def of(cls, parent: Manifest) -> Identity:
        """Read metadata."""
        return cls(
            uid=manifests.uid(parent),
            namespace=manifests.namespace(parent),
            name=manifests.name(parent),
            generation=manifests.generation(parent),
        )

    def owner(self, instance: str, instance_uid: str) -> dict[str, str]:
        """Return the custom metadata that marks a credential as this Tenant's."""
        return {
            "tenant-uid": self.uid,
            "tenant-namespace": self.namespace,
            "tenant-name": self.name,
            "instance": instance,
            "instance-uid": instance_uid,
        }

    def kv_path(self, config: Config) -> str:
        """Return the path of the credential, relative to the mount."""
        return f"{config.base_path}/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Spec:
    """A valid Tenant: names are effective, defaults applied."""

    identity: Identity
    instance: str
    database: str
    role: str
    extensions: frozenset[str]
    secret_name: str
    external_secret_name: str
    kv_path: str
    new_credential: str = ""
    """The value of the annotation by which a lost credential may be made anew, once."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class _Credential(_Model):
    secret_name: str | None = None


class _Tenant(_Model):
    instance_ref: Annotated[str, Field(min_length=1)]
    database: str | None = None
    login_role: str | None = None
    extensions: tuple[str, ...] = ()
    credential: _Credential = _Credential()
    deletion_policy: Literal["Retain", "Delete"] = "Retain"


def parse(parent: Manifest, config: Config) -> Spec | list[str]:
    """Read a Tenant.

    Returns:
        The spec, or every problem as "path: what is wrong and what to do".
    """
    try:
        model = _Tenant.model_validate(parent.get("spec") or {})
    except ValidationError as error:
        return [
            f"{'.'.join(('spec', *map(str, problem['loc'])))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
    identity = Identity.of(parent)
    derived = f"{model.instance_ref}-{identity.name}-postgresql"
    spec = Spec(
        identity=identity,
        instance=model.instance_ref,
        database=model.database if model.database is not None else identity.name,
        role=model.login_role if model.login_role is not None else identity.name,
        extensions=frozenset(model.extensions),
        secret_name=derived
        if model.credential.secret_name is None
        else model.credential.secret_name,
        external_secret_name=derived,
        kv_path=identity.kv_path(config),
        new_credential=manifests.annotations(parent).get(NEW_CREDENTIAL, ""),
    )
    problems = [*_name_problems(spec, model), *_reference_problems(spec)]
    return problems or spec


def _name_problems(spec: Spec, model: _Tenant) -> Iterator[str]:
    for path, given, value in (
        ("spec.database", model.database, spec.database),
        ("spec.loginRole", model.login_role, spec.role),
    ):
        if not IDENTIFIER.match(value):
            hint = "" if given is not None else f" (it defaults to metadata.name: set {path})"
            yield f"{path}: {value!r} is no PostgreSQL identifier ^[a-z][a-z0-9_]{{0,62}}${hint}"
        elif value in RESERVED or value.startswith("pg_"):
            yield f"{path}: {value!r} is reserved by PostgreSQL: choose another name"
    for extension in sorted(spec.extensions):
        if not EXTENSION.match(extension) or "--" in extension:
            yield f"spec.extensions: {extension!r} is no extension name"


def _reference_problems(spec: Spec) -> Iterator[str]:
    for path, value in (
        ("spec.instanceRef", spec.instance),
        ("spec.credential.secretName", spec.secret_name),
    ):
        if len(value) > MAX_NAME or not DNS_SUBDOMAIN.match(value):
            yield f"{path}: {value!r} is no Kubernetes object name (DNS subdomain)"
    length = len(spec.instance) + len(spec.identity.name)
    if length > MAX_INSTANCE_AND_NAME:
        yield (
            f"spec.instanceRef: with metadata.name it has {length} characters,"
            f" {MAX_INSTANCE_AND_NAME} are allowed"
        )

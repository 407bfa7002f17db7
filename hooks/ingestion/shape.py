"""The members of a DruidIngestion's spec and their shapes, as the CRD has them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.ingestion.model import Connection, SecretRef, Tls


class _Model(BaseModel):
    """A part of spec; members that are not known are somebody else's."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class _Reference(_Model):
    name: str = ""
    namespace: str = ""
    key: str = ""


class _Auth(_Model):
    secret_ref: _Reference = _Reference()
    username_key: str = ""
    password_key: str = ""


class _Trust(_Model):
    ca_secret_ref: _Reference = _Reference()
    client_cert_secret_ref: _Reference = _Reference()
    insecure_skip_verify: bool = False


class _Retry(_Model):
    max_retries: Annotated[int, Field(ge=0, le=10)] = 0
    backoff_seconds: Annotated[int, Field(ge=1, le=86400)] = 60


class _Ingestion(_Model):
    type: Annotated[str, Field(min_length=1)]
    spec: str = ""
    native_spec: dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None
    rules: list[dict[str, Any]] | None = None


class _Way(_Model):
    druid_cluster: Annotated[str, Field(min_length=1)]
    auth: _Auth | None = None
    tls: _Trust | None = None


class Whole(_Way):
    """The whole spec, each member of the right shape."""

    ingestion: _Ingestion
    suspend: bool = False
    retry_policy: _Retry = _Retry()
    deletion_policy: Literal["Terminate", "Orphan"] = "Terminate"
    drift: Literal["Report", "Restore"] = "Report"


def shape(parent: Manifest) -> Whole | list[str]:
    """Read spec, or say all that has a wrong shape."""
    try:
        return Whole.model_validate(parent.get("spec") or {})
    except ValidationError as error:
        return [
            f"{'.'.join(('spec', *map(str, problem['loc'])))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        ]


def connection(parent: Manifest) -> Connection | None:
    """Read the way to the cluster, and nothing else; None when spec does not say it."""
    try:
        way = _Way.model_validate(parent.get("spec") or {})
    except ValidationError:
        return None
    return way_of(way, manifests.namespace(parent))


def way_of(way: _Way, namespace: str) -> Connection:
    """Return the way to the cluster; an auth block without a name is none."""
    auth, tls = way.auth or _Auth(), way.tls
    reference = auth.secret_ref
    secret = SecretRef(
        namespace=reference.namespace or namespace,
        name=reference.name,
        username_key=auth.username_key or "OperatorUserName",
        password_key=auth.password_key or "OperatorPassword",
    )
    trust = None
    if tls is not None:
        trust = Tls(
            ca_secret=tls.ca_secret_ref.name,
            ca_key=tls.ca_secret_ref.key or "ca.crt",
            client_secret=tls.client_cert_secret_ref.name,
            verify=not tls.insecure_skip_verify,
        )
    return Connection(namespace, way.druid_cluster, secret if reference.name else None, trust)

"""The settings: environment variables, read once, every problem reported together.

A field is a variable: `listen_address` is LISTEN_ADDRESS. A secret is never one: variables name
the file that holds it. Files are only looked for here; what is in them is read by who uses it,
again and again, so that it may rotate.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from hooks import __version__
from hooks.setting_values import (
    Address,
    Duration,
    File,
    Identifier,
    Image,
    Namespace,
    ObjectName,
    PathInside,
    Quantity,
    Roles,
    Url,
    split_commas,
)

ResourceName = Literal["instance", "tenant", "initsql", "ingestion"]
RESOURCES: tuple[ResourceName, ...] = ("instance", "tenant", "initsql", "ingestion")


class SettingsError(Exception):
    """The settings cannot be used.

    Attributes:
        problems: all of them, one sentence each, safe to show.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Settings(BaseModel):
    """Everything that an administrator decides."""

    model_config = ConfigDict(frozen=True, alias_generator=str.upper, extra="ignore")

    listen_address: Address = Field("0.0.0.0:8080", description="address and port to listen on")
    resources: Annotated[tuple[ResourceName, ...], BeforeValidator(split_commas)] = Field(
        RESOURCES, min_length=1, description="resources to serve, by commas"
    )
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], BeforeValidator(str.lower)
    ] = Field("info", description="debug, info, warning or error")
    hook_token_files: Annotated[tuple[File, ...], BeforeValidator(split_commas)] = Field(
        description="files with the Bearer tokens to accept, by commas; several for rotation"
    )
    tls_cert_file: File | None = Field(None, description="certificate chain to serve https with")
    tls_key_file: File | None = Field(None, description="key of that certificate")
    controller_namespace: Namespace = Field(
        description="namespace of this program, where admin Secrets are"
    )
    kubeconfig: File | None = Field(
        None, description="kubeconfig file; the pod's service account when unset"
    )
    postgres_ca_file: File | None = Field(
        None, description="CA of the PostgreSQL servers; verify-ca and verify-full need it"
    )
    registry_schema: Identifier = Field("tenant_registry", description="schema of the registry")
    connect_keepers: Roles = Field(
        (), description="roles that keep CONNECT to tenant databases, by commas"
    )
    sweep_seconds: float = Field(
        600, ge=1, allow_inf_nan=False, description="seconds between two sweeps of a registry"
    )
    openbao_address: Url = Field("", description="URL of OpenBao for this program")
    openbao_consumer_address: Url = Field(
        "", description="URL of OpenBao in a Tenant's status; OPENBAO_ADDRESS when unset"
    )
    openbao_ca_file: File | None = Field(None, description="CA of OpenBao; system's when unset")
    openbao_namespace: PathInside = Field("", description="OpenBao namespace")
    openbao_mount: PathInside = Field("secret", description="mount of the KV v2 engine")
    openbao_base_path: PathInside = Field(
        "postgresql", description="path inside the mount, above namespace and name of a Tenant"
    )
    openbao_auth: Literal["kubernetes", "approle", "token"] = Field(
        "kubernetes", description="kubernetes, approle or token"
    )
    openbao_role: str = Field("", description="role to log in as; for kubernetes")
    openbao_auth_mount: PathInside = Field(
        "", description="mount of the auth method; OPENBAO_AUTH when unset"
    )
    openbao_jwt_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
        description="service account token; for kubernetes",
    )
    openbao_token_file: File | None = Field(None, description="file with the token; for token")
    openbao_role_id_file: File | None = Field(None, description="role ID; for approle")
    openbao_secret_id_file: File | None = Field(None, description="secret ID; for approle")
    secret_store_name: ObjectName = Field(
        "", description="store that the ExternalSecrets of Tenants name"
    )
    secret_store_kind: Literal["SecretStore", "ClusterSecretStore"] = Field(
        "SecretStore", description="SecretStore or ClusterSecretStore"
    )
    secret_refresh_interval: Duration = Field(
        "1h", description="refreshInterval of ExternalSecrets"
    )
    druid_ca_file: File | None = Field(
        None, description="CA of Druid's Routers; system's when unset"
    )
    druid_secret_namespaces: Annotated[tuple[Namespace, ...], BeforeValidator(split_commas)] = (
        Field((), description="other namespaces that a DruidIngestion may take its login from")
    )
    init_sql_image: Image = Field(
        f"database-hooks:{__version__}",
        description="image of the init-SQL Jobs; the one that this runs as",
    )
    init_sql_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        "IfNotPresent", description="imagePullPolicy of the Jobs: Always, IfNotPresent or Never"
    )
    init_sql_pull_secrets: Annotated[tuple[ObjectName, ...], BeforeValidator(split_commas)] = Field(
        (), description="imagePullSecrets of the Jobs, in the cluster's namespace"
    )
    init_sql_seconds: int = Field(
        3600, ge=60, le=604800, description="seconds after which a Job is stopped"
    )
    init_sql_cpu: Quantity = Field("100m", description="CPU that a Job requests")
    init_sql_memory: Quantity = Field("256Mi", description="memory that a Job may use")
    request_seconds: float = Field(
        20, ge=5, le=600, description="time for one hook call; keep it below the webhook's timeout"
    )
    max_in_flight: int = Field(
        24, ge=1, le=1000, description="sync and finalize calls at once; more are answered 429"
    )
    threads: int = Field(
        32, ge=2, le=1000, description="threads; those above MAX_IN_FLIGHT serve the other calls"
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read the variables; an empty one counts as unset.

        Raises:
            SettingsError: with every problem that was found.
        """
        given = {key: text.strip() for key, text in environ.items() if text.strip()}
        problems = []
        try:
            settings = cls.model_validate(given)
        except ValidationError as error:
            problems = [_sentence(str(each["loc"][0]), each["msg"]) for each in error.errors()]
        problems += _together(given)
        if problems:
            raise SettingsError(problems)
        consumer = settings.openbao_consumer_address or settings.openbao_address
        mount = settings.openbao_auth_mount or settings.openbao_auth
        update = {"openbao_consumer_address": consumer, "openbao_auth_mount": mount}
        return settings.model_copy(update=update)

    @classmethod
    def from_process(cls) -> Settings:
        """Read this process's own environment; see from_env."""
        return cls.from_env(os.environ)  # noqa: TID251  the one place that reads it


def _sentence(name: str, message: str) -> str:
    text = message.removeprefix("Value error, ")
    return f"{name}: {'is required' if text == 'Field required' else text[:1].lower() + text[1:]}"


def _default(name: str) -> str:
    default = Settings.model_fields[name.lower()].get_default()
    if isinstance(default, tuple):
        return ",".join(default)
    return f"{default:.15g}" if isinstance(default, int | float) else str(default or "")


def _together(given: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong between variables, also while one of them is wrong by itself."""
    if ("TLS_CERT_FILE" in given) != ("TLS_KEY_FILE" in given):
        yield "TLS_CERT_FILE, TLS_KEY_FILE: set both or neither"
    base = given.get("OPENBAO_BASE_PATH", "").lstrip("/") + "/"
    for start in ("data", "metadata", given.get("OPENBAO_MOUNT", "secret").strip("/")):
        if start and base.startswith(f"{start}/"):
            yield f"OPENBAO_BASE_PATH: begins inside the mount: leave {start}/ away"
    tenants = "tenant" in re.split(r"\s*,\s*", given.get("RESOURCES", _default("RESOURCES")))
    if tenants or "OPENBAO_AUTH" in given:
        yield from _login(given)
    for name in FOR_TENANTS if tenants else ():
        if name not in given:
            yield f"{name}: is required to serve tenants"
    numbers = [given.get(name, _default(name)) for name in ("THREADS", "MAX_IN_FLIGHT")]
    if all(number.isdecimal() for number in numbers) and int(numbers[0]) <= int(numbers[1]):
        yield "THREADS: must be above MAX_IN_FLIGHT, or probes and customize would wait"


def _login(given: Mapping[str, str]) -> Iterator[str]:
    auth = given.get("OPENBAO_AUTH", "kubernetes")
    for name in _NEEDED.get(auth, ()):
        if name not in given:
            yield f"{name}: is required with OPENBAO_AUTH={auth}"
    jwt = Path(given.get("OPENBAO_JWT_FILE", _default("OPENBAO_JWT_FILE")))
    if auth == "kubernetes" and not jwt.is_file():
        yield f"OPENBAO_JWT_FILE: there is no file {jwt}"


FOR_TENANTS = ("OPENBAO_ADDRESS", "SECRET_STORE_NAME")
"""What a Tenant cannot do without."""

_NEEDED = {
    "kubernetes": ("OPENBAO_ROLE",),
    "approle": ("OPENBAO_ROLE_ID_FILE", "OPENBAO_SECRET_ID_FILE"),
    "token": ("OPENBAO_TOKEN_FILE",),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable as the manual shows it; an empty default is none.

    Attributes:
        required: "yes", or the resource that needs it, or empty.
    """

    name: str
    default: str
    meaning: str
    required: str


def _required(name: str, *, always: bool) -> str:
    if always:
        return "yes"
    return "tenant" if name in FOR_TENANTS else ""


SETTINGS = tuple(
    Setting(
        name=field.upper(),
        default="" if info.is_required() else _default(field),
        meaning=info.description or "",
        required=_required(field.upper(), always=info.is_required()),
    )
    for field, info in Settings.model_fields.items()
)

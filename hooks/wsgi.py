"""The composition root: settings in, application out. The only module that knows everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import flask
import structlog

from hooks.app import Controller, Limits, create_app
from hooks.core.deadline import Deadline
from hooks.effects import druid, kubernetes, openbao, postgres
from hooks.effects.ports import Services
from hooks.ingestion.hooks import IngestionHooks
from hooks.ingestion.model import Config as IngestionConfig
from hooks.initsql.hooks import InitSqlHooks
from hooks.initsql.model import Config as InitSqlConfig
from hooks.initsql.pgo import InitSqlPgoHooks
from hooks.instance.hooks import InstanceHooks
from hooks.instance.model import Config as InstanceConfig
from hooks.settings import ResourceName, Settings
from hooks.telemetry import Effects, Metrics
from hooks.tenant import rebind as rebinding
from hooks.tenant.hooks import TenantHooks
from hooks.tenant.model import Config as TenantConfig
from hooks.tenant.rebind import Plan

_log = structlog.get_logger(__name__)


def build(settings: Settings, ready: Callable[[], bool]) -> flask.Flask:
    """Build the application that a server process serves.

    Args:
        settings: what the administrator decided.
        ready: says whether this process takes new calls. It asks no dependency: a server that is
            down would take every replica out at once, and with them the statuses that say so.
    """
    metrics = Metrics()
    return create_app(
        controllers(settings, Effects(metrics)),
        services(settings),
        tokens=TokenFiles(settings.hook_token_files),
        ready=ready,
        metrics=metrics,
        limits=Limits(settings.max_in_flight, settings.request_seconds),
    )


def controllers(settings: Settings, effects: Effects) -> tuple[Controller, ...]:
    """Make the hooks of the resources that are served; none of them talks to anything yet."""
    init_sql = _init_sql_config(settings)
    known: tuple[tuple[ResourceName, Controller], ...] = (
        ("instance", InstanceHooks(_instance_config(settings), partial(effects, "instance"))),
        ("tenant", TenantHooks(tenant_config(settings), partial(effects, "tenant"))),
        ("initsql", InitSqlHooks(init_sql, partial(effects, "initsql"))),
        ("initsql", InitSqlPgoHooks(init_sql, partial(effects, "initsql-pgo"))),
        ("ingestion", IngestionHooks(_ingestion_config(settings), partial(effects, "ingestion"))),
    )
    return tuple(hooks for resource, hooks in known if resource in settings.resources)


def _instance_config(settings: Settings) -> InstanceConfig:
    return InstanceConfig(
        controller_namespace=settings.controller_namespace, sweep_seconds=settings.sweep_seconds
    )


def _init_sql_config(settings: Settings) -> InitSqlConfig:
    return InitSqlConfig(
        image=settings.init_sql_image,
        pull_policy=settings.init_sql_pull_policy,
        pull_secrets=settings.init_sql_pull_secrets,
        deadline_seconds=settings.init_sql_seconds,
        cpu=settings.init_sql_cpu,
        memory=settings.init_sql_memory,
    )


def _ingestion_config(settings: Settings) -> IngestionConfig:
    return IngestionConfig(
        controller_namespace=settings.controller_namespace,
        secret_namespaces=frozenset(settings.druid_secret_namespaces),
    )


def tenant_config(settings: Settings) -> TenantConfig:
    """Return what the deployment decides for all Tenants."""
    ca_file = settings.postgres_ca_file
    return TenantConfig(
        controller_namespace=settings.controller_namespace,
        mount=settings.openbao_mount,
        base_path=settings.openbao_base_path,
        consumer_address=settings.openbao_consumer_address,
        store_name=settings.secret_store_name,
        store_kind=settings.secret_store_kind,
        refresh_interval=settings.secret_refresh_interval,
        ca_pem=ca_file.read_text() if ca_file else "",
    )


def rebind(settings: Settings, *, namespace: str, name: str, apply: bool) -> Plan:
    """Rebind a Tenant to what a restore left, or only say what that would be."""
    bound = services(settings)(Deadline(settings.request_seconds))
    return rebinding.rebind(
        bound, tenant_config(settings), namespace=namespace, name=name, apply=apply
    )


def services(settings: Settings) -> Callable[[Deadline], Services]:
    """Make the adapters once, and return what binds them to one request."""
    api = kubernetes.connect(settings.kubeconfig)
    servers = postgres.PostgresServers(
        ca_file=settings.postgres_ca_file,
        schema=settings.registry_schema,
        keepers=frozenset(settings.connect_keepers),
    )
    bao = openbao.OpenBao(
        address=settings.openbao_address,
        mount=settings.openbao_mount,
        auth=openbao_auth(settings),
        ca_file=settings.openbao_ca_file,
        namespace=settings.openbao_namespace,
    )

    clusters = druid.DruidClusters(ca_file=settings.druid_ca_file)

    def bind(deadline: Deadline) -> Services:
        return Services(
            kubernetes=api.bind(deadline),
            postgres=servers.bind(deadline),
            credentials=bao.bind(deadline),
            druid=clusters.bind(deadline),
            deadline=deadline,
            now=datetime.now(UTC),  # noqa: TID251  the one clock; everybody else is handed `now`
        )

    return bind


def openbao_auth(settings: Settings) -> openbao.Auth:
    """Return how to log in to OpenBao."""
    mount = settings.openbao_auth_mount
    if settings.openbao_auth == "kubernetes":
        return openbao.KubernetesAuth(
            settings.openbao_role, mount=mount, jwt_file=settings.openbao_jwt_file
        )
    if settings.openbao_auth == "approle":
        return openbao.AppRole(
            _set(settings.openbao_role_id_file), _set(settings.openbao_secret_id_file), mount=mount
        )
    return openbao.TokenFile(_set(settings.openbao_token_file))


def _set(path: Path | None) -> Path:
    if path is None:
        raise ValueError("the settings were not checked")
    return path


class TokenFiles:
    """The tokens that files hold, read again when a file changes.

    A file that is gone or empty holds no token: taking it away revokes it.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = tuple(paths)
        self._seen: dict[Path, tuple[object, bytes]] = {}

    def __call__(self) -> list[bytes]:
        """Return the tokens that are valid now."""
        return [token for token in map(self._read, self._paths) if token]

    def _read(self, path: Path) -> bytes:
        before, token = self._seen.get(path, (None, b""))
        try:
            status = path.stat()
            mark: object = (status.st_ino, status.st_size, status.st_mtime_ns)
            if mark != before:
                token = path.read_bytes().strip()
        except OSError as error:
            mark, token = str(error), b""
        if mark != before and not token:
            _log.warning("token_file_unusable", path=str(path))
        self._seen[path] = (mark, token)
        return token

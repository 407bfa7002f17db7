"""Everything at once on loopback: real servers, the real app, and doubles for the rest.

Real: PostgreSQL and OpenBao, from wheels, with TLS from a CA made at start; the app under
gunicorn. Doubles: the Kubernetes API with its Jobs and Pods, Metacontroller, External Secrets,
Druid, and the operator that makes PostgresClusters, whose members are real servers again.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import requests

from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.druids import LocalDruids
from hooks.sandbox.jobs import Jobs
from hooks.sandbox.metacontroller import Connection, Runner
from hooks.sandbox.openbao_server import (
    MOUNT,
    OpenBaoServer,
    controller_policy,
    reader_policy,
)
from hooks.sandbox.postgres_clusters import PostgresClusters
from hooks.sandbox.postgres_pod import Where
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import Process, free_port
from hooks.sandbox.projector import KvStore, Projector
from hooks.sandbox.samples import LocalServer
from hooks.sandbox.shipped import ROOT, controllers, crds

__all__ = ["BASE_PATH", "NAMESPACE", "ROOT", "STORE", "World", "controllers", "crds", "started"]

NAMESPACE = "database-hooks"
STORE = "openbao"
BASE_PATH = "postgresql"


@dataclass(frozen=True, slots=True)
class World:
    """What runs; `start` makes it."""

    directory: Path
    authority: Authority
    postgres: PostgresServer
    openbao: OpenBaoServer
    cluster: MemoryCluster
    api: ApiServer
    kubeconfig: Path
    app: Process
    app_url: str
    app_log: Path
    connection: Connection
    runner: Runner
    projector: Projector
    jobs: Jobs
    clusters: PostgresClusters
    druids: LocalDruids

    @property
    def local_server(self) -> LocalServer:
        """Return what takes the place of the endpoints in manifests."""
        server = self.postgres
        return LocalServer(
            host=server.host,
            hostaddr=server.hostaddr,
            port=server.port,
            username=server.admin.name,
            password=server.admin.password,
        )


@contextmanager
def started(
    directory: Path,
    *,
    live: bool = True,
    postgres: Mapping[str, str] | None = None,
    druid_url: str = "",
    **settings: str,
) -> Iterator[World]:
    """Start everything; leaving the block stops it in the opposite order.

    Args:
        directory: for logs, certificates and token files; exists.
        live: let the doubles of controllers work by themselves; without it somebody calls
            `runner.settle`, `projector.reconcile_all`, `clusters.settle` and `jobs.settle`.
        postgres: settings of the PostgreSQL server.
        druid_url: of a real Druid's Router, to take the place of the double.
        settings: environment variables of the app, over those that the sandbox sets.
    """
    with ExitStack() as stack:
        authority = Authority(directory / "tls")
        server = stack.enter_context(
            PostgresServer.start(directory / "postgres", authority, settings=postgres)
        )
        druids = LocalDruids.start(authority, druid_url, stack)
        world = _start(directory, authority, server, druids, settings, stack)
        stack.callback(world.clusters.stop)
        stack.callback(world.jobs.stop)
        for part in (world.runner, world.projector) if live else ():
            part.start()
            stack.callback(part.stop)
        for double in (world.clusters, world.jobs) if live else ():
            double.start()
        yield world


def _start(
    directory: Path,
    authority: Authority,
    postgres: PostgresServer,
    druids: LocalDruids,
    settings: dict[str, str],
    stack: ExitStack,
) -> World:
    openbao = stack.enter_context(OpenBaoServer.start(directory / "openbao", authority))
    cluster = MemoryCluster(crds(), clock=_now, namespaces=("default", NAMESPACE))
    api, kubeconfig = _start_api(directory, authority, cluster, stack)
    environment = _settings(directory, authority, openbao) | settings
    environment["KUBECONFIG"] = str(kubeconfig)
    app_log, url = directory / "app.log", f"https://{environment['LISTEN_ADDRESS']}"
    app = _start_app(environment, app_log, stack)
    app.wait_until(lambda: _answers(url, authority.ca_file), despite=(requests.RequestException,))
    token = Path(environment["HOOK_TOKEN_FILES"]).read_text()
    connection = Connection(url, token=token, ca_file=authority.ca_file)
    return World(
        directory=directory,
        authority=authority,
        postgres=postgres,
        openbao=openbao,
        cluster=cluster,
        api=api,
        kubeconfig=kubeconfig,
        app=app,
        app_url=url,
        app_log=app_log,
        connection=connection,
        runner=Runner(cluster, controllers(), connect=connection),
        projector=_projector(directory, authority, openbao, cluster),
        jobs=Jobs(cluster, api, _made(directory / "jobs"), _now),
        clusters=PostgresClusters(
            Where(cluster, api.exec, lambda: f"{_now():%Y-%m-%dT%H:%M:%SZ}"),
            _made(directory / "clusters"),
            authority,
        ),
        druids=druids,
    )


def _start_api(
    directory: Path, authority: Authority, cluster: MemoryCluster, stack: ExitStack
) -> tuple[ApiServer, Path]:
    token = secrets.token_urlsafe(24)
    server = ApiServer(
        cluster,
        certificate=authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"]),
        ca_file=authority.ca_file,
        tokens={token: "database-hooks"},
    )
    api = stack.enter_context(server)
    return api, api.kubeconfig(directory / "kubeconfig", token)


def _start_app(environment: Mapping[str, str], log: Path, stack: ExitStack) -> Process:
    app = Process(
        [sys.executable, "-m", "hooks", "serve"],
        log=log,
        env={**environment, "PATH": os.defpath, "PYTHONPATH": str(ROOT)},
    )
    stack.callback(app.stop)
    return app


def _projector(
    directory: Path, authority: Authority, openbao: OpenBaoServer, cluster: MemoryCluster
) -> Projector:
    token = openbao.token(reader_policy(MOUNT, BASE_PATH))
    store = KvStore(
        address=openbao.address,
        mount=MOUNT,
        token_file=_secret_file(directory / "reader-token", token),
        ca_file=authority.ca_file,
    )
    return Projector(cluster, store, _now)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  the clock of the doubles


def _answers(url: str, ca_file: Path) -> bool:
    return bool(requests.get(f"{url}/readyz", verify=str(ca_file), timeout=5).ok)


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _secret_file(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _settings(directory: Path, authority: Authority, openbao: OpenBaoServer) -> dict[str, str]:
    certificate = authority.issue("app", dns=["localhost"], ips=["127.0.0.1"])
    token = openbao.token(controller_policy(MOUNT, BASE_PATH))
    return {
        "LISTEN_ADDRESS": f"127.0.0.1:{free_port()}",
        "TLS_CERT_FILE": str(certificate.cert),
        "TLS_KEY_FILE": str(certificate.key),
        "HOOK_TOKEN_FILES": str(_secret_file(directory / "hook-token", secrets.token_urlsafe(24))),
        "CONTROLLER_NAMESPACE": NAMESPACE,
        "POSTGRES_CA_FILE": str(authority.ca_file),
        "OPENBAO_ADDRESS": openbao.address,
        "OPENBAO_CA_FILE": str(authority.ca_file),
        "OPENBAO_MOUNT": MOUNT,
        "OPENBAO_BASE_PATH": BASE_PATH,
        "OPENBAO_AUTH": "token",
        "OPENBAO_TOKEN_FILE": str(_secret_file(directory / "openbao-token", token)),
        "SECRET_STORE_NAME": STORE,
    }

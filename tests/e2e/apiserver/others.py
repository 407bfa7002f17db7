"""Metacontroller and External Secrets: doubles, or the real programs that variables name.

METACONTROLLER_BIN goes with METACONTROLLER_CRDS, EXTERNAL_SECRETS_BIN with EXTERNAL_SECRETS_CRDS:
a program, and the manifest of its kinds, of one release. Without them the kinds are stand-ins.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.kube_cluster import KubeCluster
from hooks.sandbox.metacontroller import Connection, Runner
from hooks.sandbox.openbao_server import MOUNT, reader_policy
from hooks.sandbox.processes import Process
from hooks.sandbox.projector import KvStore, Projector
from hooks.sandbox.runner_config import find_kind
from tests.e2e.tools.programs import given

if TYPE_CHECKING:
    from tests.e2e.apiserver.installation import Installation

BASE_PATH = "postgresql"
_HERE = Path(__file__).parent
_CONTROLLERS = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "resource": "compositecontrollers"}


def crds() -> list[Path]:
    """Return the manifests of the others' kinds."""
    return [
        given("METACONTROLLER_CRDS") or _HERE / "metacontroller-crds.yaml",
        given("EXTERNAL_SECRETS_CRDS") or _HERE / "external-secrets-crds.yaml",
    ]


def patches(checkout: Path, address: str) -> list[Manifest]:
    """Return what leads a real Metacontroller to the program: it cannot resolve a Service here."""
    if given("METACONTROLLER_BIN") is None:
        return []
    parts = (checkout / "metacontroller" / part for part in ("base", "components/druid"))
    paths = [path for part in parts for path in sorted(part.glob("compositecontroller-*.yaml"))]
    return [{"patch": yaml.safe_dump(_redirected(path, address))} for path in paths]


def _redirected(path: Path, address: str) -> Manifest:
    found = yaml.safe_load(path.read_text())
    hooks = {
        name: {
            "webhook": {
                "service": None,
                "path": None,
                "url": f"http://{address}{hook['webhook']['path']}",
            }
        }
        for name, hook in found["spec"]["hooks"].items()
    }
    named = {key: found[key] for key in ("apiVersion", "kind")}
    return {**named, "metadata": {"name": manifests.name(found)}, "spec": {"hooks": hooks}}


@contextmanager
def metacontroller(made: Installation, directory: Path) -> Iterator[None]:
    """Run Metacontroller for the controllers that were applied."""
    program = given("METACONTROLLER_BIN")
    if program is not None:
        flags = ["--client-go-qps=100", "--client-go-burst=200"]
        flags += ["--metrics-address=0", "--health-probe-bind-address=0"]
        with _process(program, flags, made, directory):
            yield
        return
    with KubeCluster(made.control_plane.kubeconfig, now) as cluster:
        controllers = cluster.list(find_kind(cluster.kinds, _CONTROLLERS))
        token = _hook_token(made, controllers[0])
        connection = Connection(f"http://{made.address}", token=token)
        runner = Runner(cluster, controllers, connect=connection)
        runner.start()
        try:
            yield
        finally:
            runner.stop()


def _hook_token(made: Installation, controller: Manifest) -> str:
    """Return the token that a controller names."""
    webhook = controller["spec"]["hooks"]["sync"]["webhook"]
    reference = webhook["authorization"]["secretRef"]
    words = ("secret", reference["name"], "-n", reference["namespace"])
    found = made.administrator.get(*words)
    return base64.b64decode(found["data"][reference["key"]]).decode()


@contextmanager
def external_secrets(made: Installation, directory: Path) -> Iterator[None]:
    """Run External Secrets."""
    program = given("EXTERNAL_SECRETS_BIN")
    if program is not None:
        flags = ["--metrics-addr=0", "--live-addr=0", "--enable-leader-election=false"]
        with _process(program, flags, made, directory):
            yield
        return
    with KubeCluster(made.control_plane.kubeconfig, now) as cluster:
        projector = Projector(cluster, _store(made, directory), now)
        projector.start()
        try:
            yield
        finally:
            projector.stop()


def _store(made: Installation, directory: Path) -> KvStore:
    token = directory / "reader-token"
    token.touch(mode=0o600)
    token.write_text(made.openbao.token(reader_policy(MOUNT, BASE_PATH)))
    return KvStore(
        address=made.openbao.address, mount=MOUNT, token_file=token, ca_file=made.openbao.ca_file
    )


@contextmanager
def _process(
    program: Path, flags: list[str], made: Installation, directory: Path
) -> Iterator[None]:
    """Run a controller as an administrator of the cluster."""
    process = Process(
        [str(program), *flags],
        log=directory / f"{program.name}.log",
        env={"PATH": os.defpath, "KUBECONFIG": str(made.control_plane.kubeconfig)},
    )
    try:
        yield
    finally:
        process.stop(timeout=60)


def now() -> datetime:
    """Return the time, for the doubles."""
    return datetime.now(UTC)  # noqa: TID251  the clock of the doubles

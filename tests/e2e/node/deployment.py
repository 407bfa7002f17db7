"""The hooks on the node: installed as the manual says, with TLS between them and Metacontroller.

Real: everything on the node, PostgreSQL, and OpenBao with its Kubernetes auth. Doubles, unless a
real program is given: Metacontroller, which calls the hooks by their Service, and External Secrets.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.kube_cluster import KubeCluster
from hooks.sandbox.metacontroller import Connection, Runner
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import Process
from hooks.sandbox.runner_config import find_kind
from tests.docs.pages import blocks
from tests.e2e.apiserver import others
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.apiserver.installation import NAMESPACE, Installation, install, prepared
from tests.e2e.node.names import with_cluster_names
from tests.e2e.node.node import Node
from tests.e2e.node.places import API, LOGS, ROOT
from tests.e2e.tools.programs import given

PODS = ("-n", NAMESPACE, "-l", "app.kubernetes.io/name=database-hooks")
DEPLOYMENT = f"deployment/{NAMESPACE}"
NAME = f"{NAMESPACE}.{NAMESPACE}"
"""How Metacontroller calls the Service."""

_INIT_SQL = ROOT / "docs" / "database-init-sql.md"
_COMPONENTS = "../database-hooks/metacontroller/components"
_CONTROLLERS = {"apiVersion": "metacontroller.k8s.io/v1alpha1", "resource": "compositecontrollers"}
_SERVICE_IP = "10.219.89.80"
_SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
    "spec": {"clusterIP": _SERVICE_IP},
}
_SECRET: dict[str, Any] = {
    "name": "database-hooks-tls",
    "namespace": NAMESPACE,
    "files": ["tls.crt", "tls.key", "ca.crt"],
    "options": {"disableNameSuffixHash": True},
}


@dataclass(frozen=True)
class Deployed:
    """The hooks, with Metacontroller and External Secrets at work."""

    installation: Installation
    cluster: KubeCluster
    connection: Connection

    @property
    def administrator(self) -> Administrator:
        """Return who may do everything."""
        return self.installation.administrator

    def runner(self) -> Runner:
        """Return a double of Metacontroller that does not work yet."""
        controllers = self.cluster.list(find_kind(self.cluster.kinds, _CONTROLLERS))
        return Runner(self.cluster, controllers, connect=self.connection)

    def becomes_ready(self, *words: str) -> Manifest:
        """Wait until an object is Ready, and return it."""
        self.administrator.kubectl("wait", *words, "--for=condition=Ready", "--timeout=60s")
        return self.administrator.get(*words)

    def secret(self, namespace: str, name: str) -> dict[str, str]:
        """Return the decoded values of a Secret."""
        found = self.administrator.get("secret", name, "-n", namespace)
        return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


@contextmanager
def deployed(
    directory: Path,
    node: Node,
    authority: Authority,
    postgres: PostgresServer,
    openbao: OpenBaoServer,
) -> Iterator[Deployed]:
    """Install, wait until all replicas are ready, and let the others work."""
    control_plane = ControlPlane(API, node.ca_file, node.kubeconfig, LOGS / "audit.log")
    made = prepared(directory, control_plane, postgres, openbao)
    _extend(made, authority)
    who = made.administrator
    who.kubectl("apply", "-k", "crds/init-sql")
    install(made)
    await_rollout(who)
    with ExitStack() as stack:
        cluster = stack.enter_context(KubeCluster(node.kubeconfig, others.now))
        connection = Connection(f"https://{_SERVICE_IP}:8080", ca_file=authority.ca_file)
        at_work = Deployed(made, cluster, connection)
        token = at_work.secret(NAMESPACE, "database-hooks-token")["token"]
        at_work = replace(at_work, connection=replace(connection, token=token))
        stack.enter_context(_metacontroller(at_work))
        stack.enter_context(others.external_secrets(made, directory))
        yield at_work


def await_rollout(who: Administrator) -> None:
    """Wait until the pods are of the last version, and ready."""
    try:
        who.kubectl("rollout", "status", DEPLOYMENT, "-n", NAMESPACE, "--timeout=60s")
    except AssertionError as error:
        error.add_note(who.kubectl("describe", "pods", *PODS))
        error.add_note(who.kubectl("logs", *PODS, "--prefix", "--tail=20"))
        raise


@contextmanager
def _metacontroller(hooks: Deployed) -> Iterator[None]:
    program = given("METACONTROLLER_BIN")
    if program is None:
        runner = hooks.runner()
        runner.start()
        try:
            yield
        finally:
            runner.stop()
        return
    flags = ("--client-go-qps=100", "--client-go-burst=200")
    listening = ("--metrics-address=0", "--health-probe-bind-address=0")
    process = Process(
        with_cluster_names(str(program), *flags, *listening),
        log=LOGS / "metacontroller.log",
        env={"KUBECONFIG": str(hooks.installation.control_plane.kubeconfig)},
    )
    try:
        yield
    finally:
        process.stop()


def _extend(made: Installation, authority: Authority) -> None:
    """Add to the overlay: init SQL, TLS with a certificate, and an address that we know.

    The name in the certificate is for callers that know the names of Services. The double of
    Metacontroller does not, and calls the Service by its address.
    """
    overlay = made.directory / "overlay"
    issued = authority.issue("hooks", dns=[NAME], ips=[_SERVICE_IP])
    for file, name in zip(
        (issued.cert, issued.key, authority.ca_file), _SECRET["files"], strict=True
    ):
        shutil.copy(file, overlay / name)
    path = overlay / "kustomization.yaml"
    kustomization = yaml.safe_load(path.read_text())
    # Those without a path lead a real Metacontroller to where there is no node.
    patches = [patch for patch in kustomization["patches"] if "path" in patch]
    kustomization |= {
        "patches": [*patches, {"patch": yaml.safe_dump(_SERVICE)}],
        "components": [f"{_COMPONENTS}/{name}" for name in ("init-sql", "tls")],
        "secretGenerator": [_SECRET],
        "replacements": _manual("replacements:")["replacements"],
    }
    path.write_text(yaml.safe_dump(kustomization))


def _manual(words: str) -> Manifest:
    """Return the one block of the page on init SQL that has these words."""
    (found,) = {block.text for block in blocks(_INIT_SQL) if words in block.text}
    document: Manifest = yaml.safe_load(found)
    return document

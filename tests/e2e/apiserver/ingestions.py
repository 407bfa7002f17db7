"""Ingestions, and a Druid for them: the double, which a Service of the cluster leads to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.druid import Conduct, DruidServer
from tests.docs.pages import ROOT
from tests.e2e.apiserver.operation import Operation

CLUSTER = "tiny-cluster"
LOGIN = "druid-login"


def sample(name: str) -> Manifest:
    """Return the DruidIngestion of a sample."""
    path = ROOT / "samples" / f"druidingestion-{name}.yaml"
    found: Manifest = yaml.safe_load(path.read_text())
    return found


def inserting(namespace: str) -> Manifest:
    """Return an ingestion that logs in."""
    made = sample("sql")
    made["metadata"]["namespace"] = namespace
    made["spec"]["auth"] = {"secretRef": {"name": LOGIN}}
    return made


@contextmanager
def druid(operation: Operation, namespace: str, *, seconds: float | None) -> Iterator[DruidServer]:
    """Run a Druid whose Router is known in a new namespace, where a login is too.

    Args:
        operation: where.
        namespace: its name.
        seconds: after which tasks succeed; None for never.
    """
    who = operation.administrator
    who.kubectl("create", "namespace", namespace)
    who.kubectl(
        *("create", "secret", "generic", LOGIN, "-n", namespace),
        *("--from-literal=OperatorUserName=any", "--from-literal=OperatorPassword=any"),
    )
    with DruidServer(Conduct(seconds=seconds)) as server:
        who.apply(_router(namespace, server.port))
        yield server


def _router(namespace: str, port: int) -> Manifest:
    meta = {
        "name": "druid-routers",
        "namespace": namespace,
        "labels": {"druid_cr": CLUSTER, "component": "router"},
    }
    spec = {
        "type": "ExternalName",
        "externalName": "localhost",
        "ports": [{"name": "http", "port": port}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def submitted(operation: Operation, wanted: Manifest) -> Manifest:
    """Create an ingestion, and return it when Druid has taken it."""
    operation.administrator.apply(wanted)
    name, namespace = manifests.name(wanted), manifests.namespace(wanted)
    operation.administrator.kubectl(
        *("wait", f"druidin/{name}", "-n", namespace, "--timeout=60s"),
        "--for=condition=Submitted",
    )
    return operation.get("druidin", name, namespace)

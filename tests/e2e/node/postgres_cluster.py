"""A PostgresCluster of ours whose one Pod is as Crunchy's operator makes them, for what we need."""

from __future__ import annotations

import json

from hooks.core.manifests import Manifest
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.node.images import POSTGRES

NAMESPACE = "postgres"

_PREFIX = "postgres-operator.crunchydata.com"
_START = """
test -e "$PGDATA/PG_VERSION" || initdb --no-sync --auth-local=peer --auth-host=reject >/dev/null
exec postgres -c listen_addresses= -c unix_socket_directories="$PGHOST" -c fsync=off
"""
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def make_namespace(who: Administrator) -> None:
    """Make the namespace; it takes no Pod that is not restricted."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    who.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "labels": labels},
        }
    )


def start(who: Administrator, name: str) -> None:
    """Start the primary of a cluster, and wait until it is ready."""
    who.apply(_primary(name))
    words = ("-n", NAMESPACE, f"pod/{name}-00-0", "--for=condition=Ready", "--timeout=60s")
    who.kubectl("wait", *words)


def ask(who: Administrator, name: str, sql: str) -> None:
    """Let a cluster ask for SQL, which a ConfigMap has."""
    meta = {"name": f"{name}-init-sql", "namespace": NAMESPACE}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    labels = {"database.ddupan.top/init-sql": "composite"}
    cluster = {
        "apiVersion": f"{_PREFIX}/v1beta1",
        "kind": "PostgresCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"databaseInitSQL": {"name": meta["name"], "key": "init.sql"}},
    }
    who.apply(config_map | {"data": {"init.sql": sql}}, cluster)


def query(who: Administrator, name: str, sql: str) -> list[str]:
    """Return the rows that a query of the superuser returns."""
    words = ("exec", "-n", NAMESPACE, f"{name}-00-0", "-c", "database", "--")
    return who.kubectl(*words, "psql", "-XAtc", sql, "postgres").splitlines()


def _primary(name: str) -> Manifest:
    labels = {f"{_PREFIX}/cluster": name, f"{_PREFIX}/instance": f"{name}-00"}
    member = {"role": "primary", "state": "running"}
    ready = {"exec": {"command": ["pg_isready"]}, "periodSeconds": 1}
    container = {
        "name": "database",
        "image": POSTGRES,
        "imagePullPolicy": "Never",
        "command": ["sh", "-ec", _START],
        "env": [
            {"name": "PGDATA", "value": "/pgdata/pg15"},
            {"name": "PGHOST", "value": "/tmp"},  # noqa: S108  of the pod
        ],
        "readinessProbe": ready,
        "securityContext": _RESTRICTED,
        "volumeMounts": [
            {"name": "data", "mountPath": "/pgdata"},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  of the pod
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-00-0",
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {"status": json.dumps(member)},
        },
        "spec": {
            "containers": [container],
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "fsGroup": 1026,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
        },
    }

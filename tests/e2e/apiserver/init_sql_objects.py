"""The objects that databaseInitSQL lives among: clusters, their instances, and rights."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from hooks.core.manifests import Manifest
from hooks.initsql.model import FROM, Mode
from tests.docs.pages import ROOT
from tests.sandbox import pgo

LABEL = "database.ddupan.top/init-sql"
PREFIX = "postgres-operator.crunchydata.com"
TEAM = "team-a"
IMAGE = "registry.example.com/any:1"
_RBAC = "rbac.authorization.k8s.io"
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_LOOK = ["get", "list", "watch"]
_WRITE = [*_LOOK, "create", "update", "patch", "delete"]


def _rule(group: str, resources: str, verbs: list[str]) -> Manifest:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs}


RIGHTS: tuple[Manifest, ...] = (
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "metacontroller"},
        "rules": [
            _rule("metacontroller.k8s.io", "*", ["*"]),
            _rule("apiextensions.k8s.io", "customresourcedefinitions", _LOOK),
            _rule("", "namespaces pods configmaps secrets", _LOOK),
            _rule("", "events", ["create", "patch", "list"]),
            _rule("", "serviceaccounts", _WRITE),
            _rule("batch", "jobs", _WRITE),
            _rule(_RBAC, "roles rolebindings", _WRITE),
            _rule(PREFIX, "postgresclusters", [*_LOOK, "update"]),
            _rule(PREFIX, "postgresclusters/status postgresclusters/finalizers", ["update"]),
            # What it gives to a Job and does not use itself.
            _rule("", "pods/exec", ["get", "create"]),
        ],
    },
    {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metacontroller"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "metacontroller"},
        "subjects": [
            {"kind": "ServiceAccount", "name": "metacontroller", "namespace": "database-hooks"}
        ],
    },
)
"""What Metacontroller may: what it needs for this, and what it gives."""


def kinds(mode: Mode) -> Manifest:
    """Return the CRD of PostgresCluster: ours, or one that drops what PGO's does not declare."""
    if mode == "composite":
        name = "postgresclusters.postgres-operator.crunchydata.com"
        found: Manifest = yaml.safe_load((ROOT / f"crds/init-sql/{name}.yaml").read_text())
        return found
    made = pgo.crd()
    for version in made["spec"]["versions"]:
        version |= {"storage": True}
        version["schema"]["openAPIV3Schema"]["type"] = "object"
    made["spec"]["names"] |= {"listKind": "PostgresClusterList", "singular": "postgrescluster"}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return head | {"metadata": {"name": f"postgresclusters.{PREFIX}"}} | made


def manifest(path: Path, address: str) -> Manifest:
    """Return a controller whose hooks are at an address: a Service leads nowhere here."""
    found: Manifest = yaml.safe_load(path.read_text())
    for hook in found["spec"]["hooks"].values():
        webhook = hook["webhook"]
        del webhook["service"]
        webhook["url"] = f"http://{address}{webhook.pop('path')}"
    return found


def team(name: str) -> Manifest:
    """Return a namespace that takes no Pod which is not restricted."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def config_map(name: str, sql: str) -> Manifest:
    """Return the ConfigMap with a cluster's SQL."""
    meta = {"name": f"{name}-sql", "namespace": TEAM}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"init.sql": sql}}


def postgres_cluster(name: str, mode: Mode) -> Manifest:
    """Return a cluster that asks for its SQL; with the decorator it is one of PGO."""
    meta: Manifest = {"name": name, "namespace": TEAM, "labels": {LABEL: mode}}
    spec: Manifest = {"databaseInitSQL": {"name": f"{name}-sql", "key": "init.sql"}}
    if mode == "decorator":
        meta["annotations"] = {FROM: f"{name}-sql/init.sql"}
        meta["finalizers"] = [pgo.FINALIZER]
        spec = {"postgresVersion": 17}
    head = {"apiVersion": f"{PREFIX}/v1beta1", "kind": "PostgresCluster"}
    return head | {"metadata": meta, "spec": spec}


def backup(owner: Manifest) -> Manifest:
    """Return a Job as PGO makes those of its backups."""
    name, head = owner["metadata"]["name"], {"apiVersion": "batch/v1", "kind": "Job"}
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        "name": name,
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {
        "name": f"{name}-backup",
        "namespace": TEAM,
        "labels": {f"{PREFIX}/cluster": name, f"{PREFIX}/pgbackrest-backup": "manual"},
        "ownerReferences": [reference],
    }
    template = {"spec": _pod_spec("pgbackrest") | {"restartPolicy": "Never"}}
    return head | {"metadata": meta, "spec": {"suspend": True, "template": template}}


def instance(name: str) -> Manifest:
    """Return the one instance of a cluster, which Patroni says is the primary."""
    meta = {
        "name": f"{name}-00-0",
        "namespace": TEAM,
        "labels": {f"{PREFIX}/cluster": name, f"{PREFIX}/instance": f"{name}-00"},
        "annotations": {"status": json.dumps({"role": "primary", "state": "running"})},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _pod_spec("database")}


def running() -> Manifest:
    """Return the status of an instance whose container runs."""
    entry = {
        "name": "database",
        "image": IMAGE,
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }
    return {"phase": "Running", "containerStatuses": [entry]}


def _pod_spec(container: str) -> Manifest:
    return {
        "containers": [{"name": container, "image": IMAGE, "securityContext": _RESTRICTED}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }

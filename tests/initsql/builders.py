"""Clusters, Pods and Jobs as the API server shows them."""

from __future__ import annotations

import json
from typing import Any

from hooks.core.contract import Request
from hooks.core.manifests import Manifest
from hooks.initsql.model import Config
from tests.builders import EARLIER, merged

NAMESPACE = "team-a"
NAME = "hippo"
UID = "11111111-2222-3333-4444-555555555555"
SQL = "CREATE TABLE t AS SELECT 1 AS n;"

CONFIG = Config(
    image="registry.example/database-hooks:1",
    pull_policy="IfNotPresent",
    pull_secrets=(),
    deadline_seconds=600,
    cpu="100m",
    memory="256Mi",
)


def cluster(**changes: Any) -> Manifest:  # noqa: ANN401  members of a manifest
    """Return a PostgresCluster that asks for SQL."""
    return merged(
        {
            "apiVersion": "postgres-operator.crunchydata.com/v1beta1",
            "kind": "PostgresCluster",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 3},
            "spec": {"databaseInitSQL": {"name": "seed", "key": "init.sql"}},
        },
        changes,
    )


def pod(
    role: str = "primary",
    *,
    instance: str = "hippo-instance1-abcd",
    suffix: str = "0",
    **changes: Any,  # noqa: ANN401  members of a manifest
) -> Manifest:
    """Return the Pod of an instance, running."""
    return merged(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{instance}-{suffix}",
                "namespace": NAMESPACE,
                "labels": {
                    "postgres-operator.crunchydata.com/cluster": NAME,
                    "postgres-operator.crunchydata.com/instance": instance,
                    "postgres-operator.crunchydata.com/role": "master",
                },
                "annotations": {"status": json.dumps({"state": "running", "role": role})},
            },
            "status": {"containerStatuses": [{"name": "database", "state": {"running": {}}}]},
        },
        changes,
    )


def config_map(**data: str) -> Manifest:
    """Return the ConfigMap of the SQL."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "seed", "namespace": NAMESPACE},
        "data": data or {"init.sql": SQL},
    }


def ended(job: Manifest, condition: str, *, at: str = EARLIER, reason: str = "") -> Manifest:
    """Return a Job that has ended."""
    told = {"type": condition, "status": "True", "lastTransitionTime": at, "reason": reason}
    return merged(job, {"status": {"conditions": [told]}})


def job_pod(job: Manifest, state: str, **described: str) -> Manifest:
    """Return the Pod of a Job, with its container in a state."""
    labels = job["spec"]["template"]["metadata"]["labels"]
    name = job["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-x7k2p",
            "namespace": NAMESPACE,
            "labels": labels | {"batch.kubernetes.io/job-name": name},
        },
        "status": {"containerStatuses": [{"name": "init-sql", "state": {state: described}}]},
    }


def request(
    parent: Manifest,
    *related: Manifest,
    children: tuple[Manifest, ...] = (),
    decorates: bool = False,
) -> Request:
    """Return a call about a cluster; children are shown as their last applied form is."""
    return Request(
        parent=parent,
        children=_grouped(children),
        related=_grouped(related),
        decorates=decorates,
    )


def _grouped(objects: tuple[Manifest, ...]) -> dict[str, dict[str, Manifest]]:
    groups: dict[str, dict[str, Manifest]] = {}
    for found in objects:
        group, _, version = found["apiVersion"].rpartition("/")
        kind = f"{found['kind']}.{group}/{version}" if group else f"{found['kind']}.{version}"
        meta = found["metadata"]
        groups.setdefault(kind, {})[f"{meta['namespace']}/{meta['name']}"] = found
    return groups

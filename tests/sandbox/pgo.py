"""A simulated PGO: the status, the finalizer and the Jobs that it writes on its PostgresClusters.

It observes, computes, and later writes the difference as a JSON merge patch without a
resourceVersion, so what it writes may be older than what others wrote in between. Its CRD drops
every field that it does not declare.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.admission import merge_patched
from hooks.sandbox.edits import edit, edit_status
from hooks.sandbox.kinds import JOB
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER
from hooks.sandbox.runner_writes import controller_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from hooks.core.manifests import Manifest
    from hooks.sandbox.cluster import MemoryCluster
    from hooks.sandbox.port import Change

FINALIZER = "postgres-operator.crunchydata.com/finalizer"
LABEL = "postgres-operator.crunchydata.com"

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}


def _object(**properties: object) -> Manifest:
    return {"type": "object", "properties": properties}


_SPEC = _object(
    databaseInitSQL=_object(name=_TEXT, key=_TEXT) | {"required": ["name", "key"]},
    postgresVersion=_NUMBER,
    paused={"type": "boolean"},
    shutdown={"type": "boolean"},
    users={"type": "array", "items": _object(name=_TEXT)},
)
_CONDITION = _object(
    type=_TEXT,
    status=_TEXT,
    reason=_TEXT,
    message=_TEXT,
    lastTransitionTime=_TEXT,
    observedGeneration=_NUMBER,
)
_STATUS = _object(
    conditions={"type": "array", "items": _CONDITION},
    databaseInitSQL=_TEXT,
    databaseRevision=_TEXT,
    usersRevision=_TEXT,
    observedGeneration=_NUMBER,
    patroni=_object(systemIdentifier=_TEXT),
    pgbackrest=_object(restore=_object(id=_TEXT, finished={"type": "boolean"})),
    postgresVersion=_NUMBER,
    startupInstance=_TEXT,
)


def crd() -> Manifest:
    """Return a CRD with PGO's fields, as far as they matter here."""
    return {
        "spec": {
            "group": POSTGRES_CLUSTER.group,
            "scope": "Namespaced",
            "names": {"kind": POSTGRES_CLUSTER.kind, "plural": POSTGRES_CLUSTER.plural},
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "schema": {"openAPIV3Schema": _object(spec=_SPEC, status=_STATUS)},
                    "subresources": {"status": {}},
                }
            ],
        }
    }


MEMORY: Manifest = {
    "databaseRevision": "5f4dcc3b5a",
    "usersRevision": "8d969eef6e",
    "patroni": {"systemIdentifier": "7412365478"},
    "pgbackrest": {"restore": {"id": "~pgo-restore-1", "finished": True}},
    "postgresVersion": 17,
}
"""What PGO reads back from the status. Losing pgbackrest.restore.id makes it restore again."""


@dataclass
class Pgo:
    """The operator. `execute` is how it runs the SQL of the field itself."""

    cluster: MemoryCluster
    execute: Callable[[], None] = lambda: None
    reconciles: int = 0

    def follow(self) -> Callable[[], None]:
        """Reconcile after each change of a PostgresCluster; calling the result ends that."""

        def told(change: Change, obj: Manifest, /) -> None:
            if obj["kind"] == POSTGRES_CLUSTER.kind and change != "DELETED":
                self.reconcile(self.observe(manifests.namespace(obj), manifests.name(obj)))

        return self.cluster.subscribe(told)

    def observe(self, namespace: str, name: str) -> Manifest:
        """Read a cluster as PGO's cache has it."""
        found = self.cluster.get(POSTGRES_CLUSTER, namespace, name)
        assert found is not None
        return found

    def reconcile(self, observed: Manifest) -> None:
        """Do what PGO does for a cluster that it saw, perhaps long ago."""
        self.reconciles += 1
        edit(self.cluster, POSTGRES_CLUSTER, observed, _with_finalizer)
        before: Manifest = observed.get("status") or {}
        after = copy.deepcopy(before) | copy.deepcopy(MEMORY)
        after["observedGeneration"] = manifests.generation(observed)
        self._init_sql(observed, after)
        patch = {key: value for key, value in after.items() if before.get(key) != value}
        patch |= {key: None for key in before if key not in after}

        def change(status: Manifest) -> None:
            merged = merge_patched(status, patch)
            assert isinstance(merged, dict)
            status.clear()
            status.update(merged)

        if patch:
            edit_status(self.cluster, POSTGRES_CLUSTER, observed, change)

    def _init_sql(self, observed: Manifest, status: Manifest) -> None:
        wanted = (observed.get("spec") or {}).get("databaseInitSQL")
        if wanted is None:
            status.pop("databaseInitSQL", None)
        elif "databaseInitSQL" not in status:
            self.execute()
            status["databaseInitSQL"] = wanted["name"]

    def backup(self, observed: Manifest) -> Manifest:
        """Make a Job as PGO makes those of its backups: owned by the cluster."""
        namespace, name = manifests.namespace(observed), manifests.name(observed)
        container = {"name": "pgbackrest", "image": "registry.example.com/pgbackrest:1"}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return self.cluster.create(
            {
                "apiVersion": JOB.api_version,
                "kind": JOB.kind,
                "metadata": {
                    "name": f"{name}-backup",
                    "namespace": namespace,
                    "labels": {f"{LABEL}/cluster": name, f"{LABEL}/pgbackrest-backup": "manual"},
                    "ownerReferences": [controller_reference(observed)],
                },
                "spec": {"suspend": True, "template": template},
            }
        )


def _with_finalizer(cluster: Manifest) -> None:
    cluster["metadata"]["finalizers"] = [FINALIZER]

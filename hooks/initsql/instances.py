"""The observed instances of a cluster, and which of them takes writes.

Patroni says who is the primary in the Pod's annotation `status`. The label `role` is no proof: the
leader of a standby cluster has the same one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from hooks.core import manifests
from hooks.core.manifests import Manifest

CLUSTER = "postgres-operator.crunchydata.com/cluster"
INSTANCE = "postgres-operator.crunchydata.com/instance"

DATABASE = "database"
"""The container that runs PostgreSQL."""

_MEMBER = "status"
_WRITABLE = frozenset({"master", "primary"})


@dataclass(frozen=True, slots=True)
class ObservedInstances:
    """The Pods of each instance, by the instance's name, in the order of these names."""

    by_name: tuple[tuple[str, tuple[Manifest, ...]], ...] = ()

    @classmethod
    def of(cls, pods: Iterable[Manifest]) -> ObservedInstances:
        """Group Pods by the instance that their label names; others are left out."""
        groups: dict[str, list[Manifest]] = {}
        for pod in pods:
            instance = (manifests.metadata(pod).get("labels") or {}).get(INSTANCE)
            if instance:
                groups.setdefault(str(instance), []).append(pod)
        return cls(tuple((name, tuple(groups[name])) for name in sorted(groups)))

    def pods(self) -> tuple[str, ...]:
        """Return the names of all Pods, sorted."""
        return tuple(sorted(manifests.name(pod) for _, group in self.by_name for pod in group))

    def writable_pod(self, container: str) -> str | None:
        """Return the Pod of the primary, if that container of it runs and it is not going away.

        An instance with two Pods is skipped: which of them is meant is not known.
        """
        for _, group in self.by_name:
            if len(group) == 1 and _takes_writes(group[0], container):
                return manifests.name(group[0])
        return None


def _takes_writes(pod: Manifest, container: str) -> bool:
    return (
        not manifests.deleting(pod)
        and _role(manifests.annotations(pod).get(_MEMBER)) in _WRITABLE
        and _runs(pod, container)
    )


def _role(member: object) -> str:
    """Return Patroni's role of a member, empty when it is not known."""
    try:
        described = json.loads(member) if isinstance(member, str) else None
    except (ValueError, RecursionError):
        return ""
    role = described.get("role") if isinstance(described, dict) else None
    return role if isinstance(role, str) else ""


def _runs(pod: Manifest, container: str) -> bool:
    status = pod.get("status") or {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(kind) or ():
            if entry.get("name") == container:
                return (entry.get("state") or {}).get("running") is not None
    return False

"""One attempt, as the Job makes it: look again, and run the SQL if all is as it was.

Between the decision and this moment the primary may have moved, and the SQL or the wish changed.
Whatever does not fit ends the attempt with nothing executed; the hook decides anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hooks.core import manifests
from hooks.effects.ports import Kubernetes
from hooks.effects.ports.pods import (
    POSTGRES_CLUSTERS,
    ConfigMap,
    ConfigMaps,
    NotNow,
    PodExec,
    Pods,
)
from hooks.initsql.instances import CLUSTER, INSTANCE, ObservedInstances
from hooks.initsql.model import Mode, Wish, parse
from hooks.initsql.reconciler import Reconciler, script

SYSTEM = "PostgresCluster"


@dataclass(frozen=True, slots=True)
class Order:
    """What the Job was made for.

    Attributes:
        digest: of the SQL that was judged.
        pods: in which it may run commands.
    """

    mode: Mode
    namespace: str
    cluster: str
    digest: str
    pods: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ports:
    """What an attempt works with; `psql` takes the name by which an earlier run is found."""

    kubernetes: Kubernetes
    config_maps: ConfigMaps
    pods: Pods
    psql: Callable[[str], PodExec]


def make(order: Order, ports: Ports) -> None:
    """Run the SQL; to return is to have succeeded.

    Raises:
        NotNow: nothing was executed, since something is not as it was.
        MissingKey, EffectError: as the reconciler raises them.
    """
    wish = _wish(order, ports.kubernetes)
    cluster = wish.cluster()
    selector = f"{CLUSTER}={order.cluster},{INSTANCE}"
    instances = ObservedInstances.of(ports.pods.list(order.namespace, selector))
    reconciler = Reconciler(
        _Judged(ports.config_maps, wish, order.digest),
        _Allowed(ports.psql(f"init-sql-{wish.uid}"), order.pods),
    )
    reconciler.reconcile_database_init_sql(cluster, instances)
    if cluster.status.database_init_sql is None:
        raise NotNow(SYSTEM, "no running instance takes writes")


def _wish(order: Order, kubernetes: Kubernetes) -> Wish:
    """Read what the cluster asks for, and that it still does."""
    parent = kubernetes.get(POSTGRES_CLUSTERS, order.cluster, order.namespace)
    if parent is None or manifests.deleting(parent):
        raise NotNow(SYSTEM, "it is being deleted")
    wish = parse(parent, order.mode)
    if not isinstance(wish, Wish):
        raise NotNow(SYSTEM, "; ".join(wish))
    if wish.source is None:
        raise NotNow(SYSTEM, "it asks for no SQL any more")
    if wish.applied is not None:
        raise NotNow(SYSTEM, "its SQL was applied by somebody else")
    return wish


@dataclass(frozen=True, slots=True)
class _Judged:
    """ConfigMaps, of which only the SQL that was judged is taken."""

    config_maps: ConfigMaps
    wish: Wish
    digest: str

    def read(self, namespace: str, name: str) -> ConfigMap:
        found = self.config_maps.read(namespace, name)
        source = self.wish.source
        if source and self.wish.digest(script(found, source.key)) != self.digest:
            raise NotNow(SYSTEM, "the SQL was changed in the meantime")
        return found


@dataclass(frozen=True, slots=True)
class _Allowed:
    """Pods, of which only those of the decision are entered."""

    pods: PodExec
    names: frozenset[str]

    def exec(self, namespace: str, pod: str, *, container: str, stdin: str) -> None:
        if pod not in self.names:
            raise NotNow(SYSTEM, "the primary is an instance that was not there before")
        self.pods.exec(namespace, pod, container=container, stdin=stdin)

"""The step of a reconciliation that runs `spec.databaseInitSQL`, once.

It may run the SQL again: the status can be lost, and the field taken away and added back. Whoever
writes the SQL makes it repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass

from hooks.effects.ports.pods import ConfigMap, ConfigMaps, PodExec
from hooks.initsql.cluster import PostgresCluster
from hooks.initsql.instances import DATABASE, ObservedInstances

_SHOWN = 10
"""Keys that are named where one is missing: a ConfigMap may have thousands."""


class MissingKey(Exception):
    """The ConfigMap is there and does not hold the key."""

    def __init__(self, key: str, config_map: ConfigMap) -> None:
        text = f"ConfigMap did not contain expected key: {key}"
        if key in config_map.binary:
            text += " (it is in binaryData: the file is not UTF-8 text)"
        elif config_map.data:
            has = sorted(config_map.data)
            others = f" and {len(has) - _SHOWN} more" if len(has) > _SHOWN else ""
            text += f" (it has {', '.join(has[:_SHOWN])}{others})"
        super().__init__(text)


def script(config_map: ConfigMap, key: str) -> str:
    """Return the SQL that a key holds.

    Raises:
        MissingKey: there is no such key.
    """
    if key not in config_map.data:
        raise MissingKey(key, config_map)
    return config_map.data[key]


@dataclass(frozen=True, slots=True)
class Reconciler:
    """Runs the SQL of clusters."""

    config_maps: ConfigMaps
    pods: PodExec

    def reconcile_database_init_sql(
        self, cluster: PostgresCluster, instances: ObservedInstances | None
    ) -> None:
        """Bring `cluster.status.database_init_sql` to what `cluster.spec` asks for.

        Returns without setting it when no instance takes writes now: call again later.

        Raises:
            MissingKey: the ConfigMap does not hold the key.
            Exception: what reading the ConfigMap or running the SQL raised, as it is.
        """
        wanted = cluster.spec.database_init_sql
        if wanted is None:
            cluster.status.database_init_sql = None
            return
        if cluster.status.database_init_sql is not None:
            return
        sql = script(self.config_maps.read(cluster.namespace, wanted.name), wanted.key)
        pod = instances.writable_pod(DATABASE) if instances is not None else None
        if pod is None:
            return
        self.pods.exec(cluster.namespace, pod, container=DATABASE, stdin=sql)
        cluster.status.database_init_sql = wanted.name

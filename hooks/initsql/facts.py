"""What is so with a cluster: the only input of the decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from hooks.core import manifests
from hooks.core.contract import Request
from hooks.core.errors import EffectError, attempt
from hooks.core.manifests import Manifest
from hooks.effects.config_maps import LiveConfigMaps
from hooks.effects.ports import Services
from hooks.effects.ports.pods import ConfigMap
from hooks.initsql.instances import CLUSTER, ObservedInstances
from hooks.initsql.jobs import Job, observed
from hooks.initsql.model import Wish


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that deciding needs.

    Attributes:
        jobs: those for what is asked for now; others go.
        config_map: None when it was not looked for, since the SQL is applied.
        idle: why the cluster as a whole is not to be written to now; empty when it may be.
    """

    wish: Wish
    config_map: ConfigMap | EffectError | None = field(repr=False)
    instances: ObservedInstances
    jobs: tuple[Job, ...]
    idle: str
    now: datetime


def gather(wish: Wish, request: Request, services: Services) -> Facts:
    """Look at everything a sync needs."""
    pods = [
        pod
        for pod in request.related.get("Pod.v1", {}).values()
        if (manifests.metadata(pod).get("labels") or {}).get(CLUSTER) == wish.name
    ]
    return Facts(
        wish=wish,
        config_map=_config_map(wish, request, services),
        instances=ObservedInstances.of(pods),
        jobs=tuple(job for job in observed(request) if job.origin == wish.origin),
        idle=_idle(request.parent, managed=wish.managed),
        now=services.now,
    )


def _config_map(wish: Wish, request: Request, services: Services) -> ConfigMap | EffectError | None:
    """Return the ConfigMap: as related when it is there, and live when it is not.

    What is related is asked for by generation. An annotation changes none, so a ConfigMap that is
    named in one may be missing there.
    """
    source = wish.source
    if source is None:
        return None
    key = f"{wish.namespace}/{source.name}"
    related = request.related.get("ConfigMap.v1", {}).get(key)
    if related is not None:
        return ConfigMap.of(related)
    if wish.applied is not None:
        return None
    reader = LiveConfigMaps(services.kubernetes)
    return attempt(lambda: reader.read(wish.namespace, source.name))


def _idle(parent: Manifest, *, managed: bool) -> str:
    spec, status = parent.get("spec") or {}, parent.get("status") or {}
    if manifests.deleting(parent):
        return "the cluster is being deleted"
    if spec.get("shutdown"):
        return "the cluster is shut down"
    if spec.get("paused"):
        return "the cluster is paused"
    standby = spec.get("standby")
    if isinstance(standby, dict) and standby.get("enabled"):
        return "the cluster is a standby of another"
    if managed and spec.get("users") and not status.get("usersRevision"):
        return "the operator has not made the users yet"
    return ""

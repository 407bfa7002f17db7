"""What a cluster is told of: its Pods, those of our Jobs, and the ConfigMap.

Metacontroller keeps the answer for each generation, and asks for clusters that carry no label of
ours too. So the ConfigMap of an annotation may be missing: what is related only wakes us.
"""

from __future__ import annotations

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.initsql.instances import CLUSTER, INSTANCE
from hooks.initsql.jobs import UID
from hooks.initsql.model import Mode, Wish, parse

_MAX_LABEL = 63


def rules(parent: Manifest, mode: Mode) -> list[Manifest]:
    """Return the rules; every one names the cluster's namespace."""
    namespace, name = manifests.namespace(parent), manifests.name(parent)
    found = [_pods(namespace, {"matchLabels": {UID: manifests.uid(parent)}})]
    if len(name) <= _MAX_LABEL:  # a longer one is no label value, and would fail every sync
        exists = [{"key": INSTANCE, "operator": "Exists"}]
        selector = {"matchLabels": {CLUSTER: name}, "matchExpressions": exists}
        found.append(_pods(namespace, selector))
    wish = parse(parent, mode)
    if isinstance(wish, Wish) and wish.source is not None:
        found.append(
            {
                "apiVersion": "v1",
                "resource": "configmaps",
                "namespace": namespace,
                "names": [wish.source.name],
            }
        )
    return found


def _pods(namespace: str, selector: Manifest) -> Manifest:
    return {
        "apiVersion": "v1",
        "resource": "pods",
        "namespace": namespace,
        "labelSelector": selector,
    }

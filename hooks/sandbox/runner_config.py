"""What a controller manifest says, resolved against the kinds that the cluster serves.

Idea: a CompositeController has one parent resource, a DecoratorController any number of them, each
with its own selectors. Children and attachments are the same thing under two names.

Limits: hooks of version v2, update methods OnDelete, InPlace and Recreate; conditions of an update
strategy, revision history, ETags and per-hook credentials are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from hooks.core import manifests
from hooks.sandbox.runner_labels import satisfies

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind

Method = Literal["OnDelete", "InPlace", "Recreate"]
HookName = Literal["sync", "finalize", "customize"]
ControllerType = Literal["CompositeController", "DecoratorController"]

DEFAULT_TIMEOUT = 10.0
INFORMER_RESYNC = 1800.0
_METHODS: Mapping[str, Method] = {
    "": "OnDelete",
    "OnDelete": "OnDelete",
    "InPlace": "InPlace",
    "Recreate": "Recreate",
}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class BadController(Exception):
    """The manifest is one that Metacontroller would not start, or that the runner cannot serve."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook.

    `address` is scheme and host, which a connection usually replaces.
    """

    address: str
    path: str
    timeout: float
    strict: bool


@dataclass(frozen=True, slots=True)
class ParentRule:
    """Which objects of a kind are parents, and which of their changes count.

    Both selectors are in the form of a LabelSelector; None selects everything.
    """

    labels: Manifest | None
    annotations: Manifest | None
    ignore_status_changes: bool

    def selects(self, obj: Manifest) -> bool:
        """Say whether an object is chosen by its labels and by its annotations."""
        meta = manifests.metadata(obj)
        chosen = satisfies(self.labels, meta.get("labels") or {})
        return chosen and satisfies(self.annotations, meta.get("annotations") or {})


@dataclass(frozen=True, slots=True)
class ControllerSpec:
    """One CompositeController or DecoratorController."""

    manifest: Manifest
    type: ControllerType
    parents: Mapping[Kind, ParentRule]
    children: Mapping[Kind, Method]
    generate_selector: bool
    resync_period: float
    hooks: Mapping[HookName, Hook]

    @property
    def name(self) -> str:
        """Return its name."""
        return manifests.name(self.manifest)

    @property
    def key(self) -> str:
        """Return what tells it from every other controller, of either type."""
        return f"{self.type}/{self.name}"

    @property
    def parent(self) -> Kind:
        """Return the kind of the parents of a CompositeController."""
        return next(iter(self.parents))

    @property
    def finalizer(self) -> str:
        """Return the finalizer that parents get if there is a finalize hook."""
        return f"metacontroller.io/{self.type.lower()}-{self.name}"

    def method(self, kind: Kind) -> Method:
        """Return how children of a kind are updated; the version does not count."""
        for child, method in self.children.items():
            if (child.group, child.kind) == (kind.group, kind.kind):
                return method
        return "OnDelete"


def read(manifest: Manifest, kinds: Sequence[Kind]) -> ControllerSpec:
    """Read a controller.

    Raises:
        BadController: Metacontroller would not start it, or the runner cannot.
    """
    spec = manifest["spec"]
    type_: ControllerType
    if manifest["kind"] == "DecoratorController":
        type_, parents, children = "DecoratorController", spec["resources"], "attachments"
    else:
        type_, parents, children = "CompositeController", [spec["parentResource"]], "childResources"
    period = spec.get("resyncPeriodSeconds")
    return ControllerSpec(
        manifest=manifest,
        type=type_,
        hooks=_hooks(spec.get("hooks") or {}),
        parents={find_kind(kinds, parent): _parent_rule(parent) for parent in parents},
        children={find_kind(kinds, child): _method(child) for child in spec.get(children) or ()},
        generate_selector=bool(spec.get("generateSelector")),
        resync_period=INFORMER_RESYNC if period is None else min(max(period, 1), INFORMER_RESYNC),
    )


def _parent_rule(rule: Manifest) -> ParentRule:
    annotations = rule.get("annotationSelector")
    if annotations is not None:
        annotations = {
            "matchLabels": annotations.get("matchAnnotations"),
            "matchExpressions": annotations.get("matchExpressions"),
        }
    return ParentRule(rule.get("labelSelector"), annotations, bool(rule.get("ignoreStatusChanges")))


def find_kind(kinds: Sequence[Kind], rule: Manifest) -> Kind:
    """Return the kind that `apiVersion` and `resource` (plural) name.

    Raises:
        BadController: The cluster does not serve it.
    """
    for kind in kinds:
        if (kind.api_version, kind.plural) == (rule.get("apiVersion"), rule.get("resource")):
            return kind
    raise BadController(
        f"discovery: can't find resource {rule.get('resource')} in apiVersion "
        f"{rule.get('apiVersion')}"
    )


def _method(child: Manifest) -> Method:
    name = (child.get("updateStrategy") or {}).get("method") or ""
    if name not in _METHODS:
        raise BadController(f"update method {name} is not supported here")
    return _METHODS[name]


def _hooks(section: Manifest) -> Mapping[HookName, Hook]:
    names: tuple[HookName, ...] = ("sync", "finalize", "customize")
    found = {name: _hook(name, section[name]) for name in names if section.get(name)}
    if "sync" not in found:
        raise BadController("there is no sync hook: every sync would fail")
    return found


def _hook(name: HookName, section: Manifest) -> Hook:
    if section.get("version") != "v2":
        raise BadController(f"hook {name} is not of version v2")
    webhook = section.get("webhook") or {}
    url = urlsplit(_url(name, webhook))
    path = url.path + (f"?{url.query}" if url.query else "")
    mode = webhook.get("responseUnMarshallMode", "strict")
    return Hook(
        address=f"{url.scheme}://{url.netloc}",
        path=path,
        timeout=duration(webhook.get("timeout") or "") or DEFAULT_TIMEOUT,
        strict=mode == "strict",
    )


def _url(name: HookName, webhook: Manifest) -> str:
    if webhook.get("url"):
        return str(webhook["url"])
    service, path = webhook.get("service"), webhook.get("path")
    if not service or not path:
        raise BadController(f"hook {name}: must specify either a full url, or service and path")
    protocol, port = service.get("protocol", "http"), service.get("port", 80)
    return f"{protocol}://{service['name']}.{service['namespace']}:{port}{path}"


def duration(text: str) -> float:
    """Return the seconds of a Go duration; nonsense is none at all."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)

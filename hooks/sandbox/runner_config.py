"""What a CompositeController manifest says, resolved against the kinds that the cluster serves.

Limits: hooks of version v2, update methods OnDelete, InPlace and Recreate; conditions of an update
strategy, revision history, ETags and per-hook credentials are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from hooks.core import manifests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind

Method = Literal["OnDelete", "InPlace", "Recreate"]
HookName = Literal["sync", "finalize", "customize"]

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
class ControllerSpec:
    """One CompositeController."""

    manifest: Manifest
    parent: Kind
    selector: Manifest | None
    children: Mapping[Kind, Method]
    generate_selector: bool
    ignore_status_changes: bool
    resync_period: float
    hooks: Mapping[HookName, Hook]

    @property
    def name(self) -> str:
        """Return its name."""
        return manifests.name(self.manifest)

    @property
    def finalizer(self) -> str:
        """Return the finalizer that parents get if there is a finalize hook."""
        return f"metacontroller.io/compositecontroller-{self.name}"

    def method(self, kind: Kind) -> Method:
        """Return how children of a kind are updated; the version does not count."""
        for child, method in self.children.items():
            if (child.group, child.kind) == (kind.group, kind.kind):
                return method
        return "OnDelete"


def read(manifest: Manifest, kinds: Sequence[Kind]) -> ControllerSpec:
    """Read a CompositeController.

    Raises:
        BadController: Metacontroller would not start it, or the runner cannot.
    """
    spec = manifest["spec"]
    hooks = _hooks(spec.get("hooks") or {})
    parent = spec["parentResource"]
    period = spec.get("resyncPeriodSeconds")
    return ControllerSpec(
        manifest=manifest,
        parent=find_kind(kinds, parent),
        selector=parent.get("labelSelector"),
        children={
            find_kind(kinds, child): _method(child) for child in spec.get("childResources") or ()
        },
        generate_selector=bool(spec.get("generateSelector")),
        ignore_status_changes=bool(parent.get("ignoreStatusChanges")),
        resync_period=INFORMER_RESYNC if period is None else min(max(period, 1), INFORMER_RESYNC),
        hooks=hooks,
    )


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

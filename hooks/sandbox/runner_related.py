"""Related objects: what a customize hook asks to see.

Idea: its rules are kept per UID and generation of the parent, so they may depend on spec only. An
object that matches a rule now, or did before its last change, wakes the parent.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import NAMESPACE, Kind
from hooks.sandbox.runner_claim import Objects, key
from hooks.sandbox.runner_config import BadController, find_kind
from hooks.sandbox.runner_labels import matches
from hooks.sandbox.runner_state import SyncError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_cache import Cache
    from hooks.sandbox.runner_queue import Time

RULES_TTL = 20 * 60.0


class Related:
    """The related objects of one controller's parents."""

    def __init__(
        self, ask: Callable[[Manifest], list[Manifest]], cache: Cache, clock: Time
    ) -> None:
        """Use `ask` to call the customize hook for a parent."""
        self._ask = ask
        self._cache = cache
        self._time = clock
        self._lock = threading.Lock()
        self._rules: dict[tuple[str, int], tuple[float, list[Manifest]]] = {}
        self._kinds: set[Kind] = set()

    def objects(self, parent: Manifest) -> dict[Kind, Objects]:
        """Return what the parent's rules select, with a group for each rule's kind.

        Raises:
            SyncError: The hook fails, or a rule makes no sense.
        """
        found: dict[Kind, Objects] = {}
        for rule in self.rules(parent):
            kind = self._kind(rule)
            wanted = self._filter(kind, rule)
            selected = self._cache.select(kind, wanted)
            found.setdefault(kind, {}).update((key(obj), obj) for obj in selected)
        return found

    def wakes(self, parent: Manifest, changed: Iterable[tuple[Kind, Manifest]]) -> bool:
        """Say whether a parent relates to one of these versions of an object.

        Raises:
            SyncError: The hook fails, or a rule makes no sense: the wake-up is lost.
        """
        versions = list(changed)
        for rule in self.rules(parent):
            kind = self._kind(rule)
            wanted = self._filter(kind, rule)
            if any(of == kind and wanted(obj) for of, obj in versions):
                return True
        return False

    def follows(self, kind: Kind) -> bool:
        """Say whether a rule has ever named a kind."""
        with self._lock:
            return kind in self._kinds

    def rules(self, parent: Manifest) -> list[Manifest]:
        """Return the rules of a parent, asking the hook when they are not known or old.

        Raises:
            SyncError: The hook fails.
        """
        about = (manifests.uid(parent), manifests.generation(parent))
        now = self._time.now()
        with self._lock:
            asked, rules = self._rules.get(about, (None, []))
        if asked is not None and now - asked < RULES_TTL:
            return rules
        rules = self._ask(parent)
        with self._lock:
            self._rules[about] = (now, rules)
        return rules

    def _kind(self, rule: Manifest) -> Kind:
        try:
            kind = find_kind(self._cache.kinds, rule)
        except BadController as error:
            raise SyncError(str(error)) from error
        with self._lock:
            self._kinds.add(kind)
        return kind

    def _filter(self, kind: Kind, rule: Manifest) -> Callable[[Manifest], bool]:
        """Return what a rule selects of its kind."""
        labels, namespaces = rule.get("labelSelector"), rule.get("namespaceSelector")
        namespace, names = rule.get("namespace") or "", rule.get("names") or ()
        if names and (labels is not None or namespaces is not None):
            raise SyncError("related rule cannot have both names and labelSelector specified")
        if namespace and namespaces is not None:
            raise SyncError("related rule cannot have both namespace and namespaceSelector")
        if namespaces is not None and not kind.namespaced:
            raise SyncError("namespaceSelector is only supported for namespaced related resources")

        def wanted(obj: Manifest) -> bool:
            here = not (namespace and kind.namespaced) or manifests.namespace(obj) == namespace
            named = not names or manifests.name(obj) in names
            return here and named and matches(labels, obj) and self._in_namespace(namespaces, obj)

        return wanted

    def _in_namespace(self, selector: Manifest | None, obj: Manifest) -> bool:
        if selector is None:
            return True
        found = self._cache.get(NAMESPACE, "", manifests.namespace(obj))
        return found is not None and matches(selector, found)

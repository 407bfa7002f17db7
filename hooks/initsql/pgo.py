"""The hooks of a PostgresCluster that Crunchy's operator has, or may have.

That operator's memory is in the status. So a status is answered in two cases only: the SQL of
the field was applied, or the field is gone and its record is not; and in neither while that
operator manages the cluster. Everything else is told in annotations of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hooks.core import contract, manifests
from hooks.core.contract import Request
from hooks.core.decorator import Decoration
from hooks.core.manifests import Manifest
from hooks.effects.ports import Services
from hooks.initsql import children, facts, related, report
from hooks.initsql.decide import applied, judge
from hooks.initsql.model import APPLIED, FIELD, STATE, Config, Wish, parse


class InitSqlPgoHooks:
    """PostgresCluster at `/initsql-pgo/sync` and `/customize`, for a DecoratorController."""

    resource = "initsql-pgo"
    children = children.KINDS

    def __init__(self, config: Config, on_effect: Callable[[object, str], None]) -> None:
        self._config = config
        self._on_effect = on_effect

    def customize(self, request: Request) -> list[Manifest]:
        """Name the cluster's Pods, the Jobs' Pods and the ConfigMap."""
        return related.rules(request.parent, "decorator")

    def sync(self, request: Request, services: Services) -> Decoration:
        """Have the SQL run once, and say what became of it."""
        parent = request.parent
        wish = parse(parent, "decorator")
        if not isinstance(wish, Wish):
            notes = {STATE: report.state(report.invalid(wish))}
            return Decoration(
                children.held(request), _changed(parent, notes), recheck=report.NEEDS_A_PERSON
            )
        if wish.source is None:
            notes_gone = _changed(parent, {STATE: None, APPLIED: None})
            return Decoration((), notes_gone, _status(parent, wish, None))
        seen = facts.gather(wish, request, services)
        decision = judge(seen)
        if decision.action is not None:
            self._on_effect(decision.action, "ok")
        record = applied(seen)
        current = report.condition(decision, seen, report.told(parent))
        notes_told = {STATE: report.state(current), APPLIED: record if wish.annotated else None}
        return Decoration(
            children.desired(decision, seen, request, self._config),
            _changed(parent, notes_told),
            _status(parent, wish, record),
            report.recheck(decision),
        )

    def finalize(self, request: Request, services: Services) -> Decoration:  # noqa: ARG002
        """Let go at once: deleting a database cluster must not depend on us."""
        return Decoration(contract.hold(request), finalized=True)


def _changed(parent: Manifest, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the annotations that are not yet as wanted: an idle answer names none."""
    have = manifests.annotations(parent)
    return {key: value for key, value in wanted.items() if have.get(key) != value}


def _status(parent: Manifest, wish: Wish, record: str | None) -> Manifest | None:
    """Return the observed status with the record as it should be, or None to leave it."""
    before: Manifest = parent.get("status") or {}
    if wish.managed or wish.annotated or before.get(FIELD) == record:
        return None
    others = {key: value for key, value in before.items() if key != FIELD}
    return others if record is None else others | {FIELD: record}

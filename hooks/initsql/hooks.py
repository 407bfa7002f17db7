"""The hooks of a PostgresCluster that is ours: no other operator has it."""

from __future__ import annotations

from collections.abc import Callable

from hooks.core import contract, manifests
from hooks.core.contract import Request, Response
from hooks.core.manifests import Manifest
from hooks.effects.ports import Services
from hooks.initsql import children, facts, related, report
from hooks.initsql.decide import applied, judge
from hooks.initsql.model import FIELD, Config, Wish, parse


class InitSqlHooks:
    """PostgresCluster at `/initsql/sync` and `/initsql/customize`, for a CompositeController."""

    resource = "initsql"
    children = children.KINDS

    def __init__(self, config: Config, on_effect: Callable[[object, str], None]) -> None:
        self._config = config
        self._on_effect = on_effect

    def customize(self, request: Request) -> list[Manifest]:
        """Name the cluster's Pods, the Jobs' Pods and the ConfigMap."""
        return related.rules(request.parent, "composite")

    def sync(self, request: Request, services: Services) -> Response:
        """Have the SQL run once, and say what became of it."""
        parent, now = request.parent, services.now
        before = parent.get("status") or {}
        wish = parse(parent, "composite")
        if not isinstance(wish, Wish):
            current = report.invalid(wish)
            status = report.status(parent, current, before.get(FIELD), now)
            return Response(status, children.held(request), report.NEEDS_A_PERSON)
        if wish.managed:  # the label is wrong: this status is somebody else's memory
            return Response(before, children.held(request))
        if wish.source is None:
            return Response(report.status(parent, None, None, now))
        seen = facts.gather(wish, request, services)
        decision = judge(seen)
        if decision.action is not None:
            self._on_effect(decision.action, "ok")
        current = report.condition(decision, seen, manifests.condition(parent, report.CONDITION))
        return Response(
            report.status(parent, current, applied(seen), now),
            children.desired(decision, seen, request, self._config),
            report.recheck(decision),
        )

    def finalize(self, request: Request, services: Services) -> Response:  # noqa: ARG002
        """Let go at once: deleting a database cluster must not depend on us."""
        status = request.parent.get("status") or {}
        return Response(status, contract.hold(request), finalized=True)

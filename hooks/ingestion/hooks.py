"""The three hooks of a DruidIngestion: parse, converge, report.

There is no lock: a submission happens once because its id can be taken once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

from hooks.core import contract, manifests
from hooks.core.conditions import NEEDS_A_PERSON
from hooks.core.contract import Request, Response
from hooks.core.converge import Loop, Outcome, converge
from hooks.core.decision import Met
from hooks.core.manifests import Manifest
from hooks.core.report import recheck
from hooks.effects.ports import Services
from hooks.ingestion import act, gathering, past, remains, report, router
from hooks.ingestion.absent import absent
from hooks.ingestion.actions import LetGo, Removal
from hooks.ingestion.decide import present
from hooks.ingestion.model import Config, Invalid, let_go, orphaned
from hooks.ingestion.parsing import parse
from hooks.ingestion.remains import Remains
from hooks.ingestion.world import World


class IngestionHooks:
    """DruidIngestion at `/ingestion/sync`, `/ingestion/finalize` and `/ingestion/customize`."""

    resource = "ingestion"
    children: frozenset[tuple[str, str]] = frozenset()

    def __init__(self, config: Config, on_effect: Callable[[object, str], None]) -> None:
        self._config = config
        self._on_effect = on_effect

    def customize(self, request: Request) -> list[Manifest]:
        """Name the Router's Services as related, so that their changes wake the object."""
        spec = request.parent.get("spec")
        cluster = spec.get("druidCluster") if isinstance(spec, dict) else None
        if not isinstance(cluster, str) or not cluster:
            return []
        return [
            {
                "apiVersion": "v1",
                "resource": "services",
                "namespace": manifests.namespace(request.parent),
                "labelSelector": {"matchLabels": router.labels(cluster)},
            }
        ]

    def sync(self, request: Request, services: Services) -> Response:
        """Bring a live DruidIngestion nearer to Ready and say how far it is."""
        parent = request.parent
        spec = parse(parent)
        if isinstance(spec, Invalid):
            status = report.invalid(spec, parent, services.now)
            return Response(status, recheck=NEEDS_A_PERSON)
        world = World(services, self._config, request.related)
        before = past.of(parent, spec)
        outcome = converge(
            Loop(
                gather=lambda _locked: gathering.gather(spec, before, world),
                decide=present,
                act=lambda action, seen: act.act(action, seen, world),
                lock=lambda: nullcontext(True),  # noqa: FBT003  what Loop.lock says
                on_effect=self._on_effect,
            )
        )
        decision = outcome.decision
        status = report.present(outcome.facts, decision, parent, world)
        met = isinstance(decision.verdict, Met)
        return Response(status, recheck=None if met else recheck(decision, status, services.now))

    def finalize(self, request: Request, services: Services) -> Response:
        """End what is proved to be ours, and wait until Druid shows that it ended."""
        parent = request.parent
        previous = parent.get("status") or {}
        if not contract.must_finalize(request) or orphaned(parent):
            return Response(previous, finalized=True)
        before = remains.begin(parent, services.now)
        if let_go(parent):
            return self._let_go(before, previous)
        world = World(services, self._config, request.related)
        outcome = self._remove(before, parent, world)
        if outcome.facts.abandoned:
            return self._let_go(outcome.facts, previous)
        status = report.deleting(outcome.facts, outcome.decision, parent, services.now)
        if isinstance(outcome.decision.verdict, Met):
            return Response(status, finalized=True)
        return Response(status, recheck=recheck(outcome.decision, status, services.now))

    def _remove(self, before: Remains, parent: Manifest, world: World) -> Outcome[Remains, Removal]:
        return converge(
            Loop(
                gather=lambda _locked: remains.gather(before, parent, world),
                decide=absent,
                act=lambda action, seen: act.remove(action, seen.access, world),
                lock=lambda: nullcontext(True),  # noqa: FBT003  what Loop.lock says
                on_effect=self._on_effect,
            )
        )

    def _let_go(self, left: Remains, previous: Manifest) -> Response:
        """Give up, and tell what may run on."""
        if left.live:
            self._on_effect(LetGo(tuple(entry.id for entry in left.live)), "ok")
        return Response(previous, finalized=True)

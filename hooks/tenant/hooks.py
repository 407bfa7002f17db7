"""The three hooks of a PostgreSQLTenant: parse, converge, report."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import ExitStack

from hooks.core import contract
from hooks.core.conditions import MIN_RECHECK, NEEDS_A_PERSON
from hooks.core.contract import Request, Response
from hooks.core.converge import Loop, Outcome, converge
from hooks.core.decision import Met
from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.core.report import recheck
from hooks.effects.ports import Credential, Services
from hooks.tenant import act, children, facts, projection, remains, report
from hooks.tenant.absent import DROPS_CHILDREN, absent
from hooks.tenant.actions import MarkUnmanaged, Provision
from hooks.tenant.decide import present
from hooks.tenant.facts import Facts, Instance, Past
from hooks.tenant.model import Config, Identity, Spec, parse
from hooks.tenant.ownership import object_stranger
from hooks.tenant.remains import Remains
from hooks.tenant.world import World

READY_RECHECK = 600
READY_SPREAD = 120

CHILD_GATES = frozenset({"", projection.OBSERVED, projection.PROJECTED, projection.LOGIN_WORKS})
"""Every gate before these is met, so the ExternalSecret may be as the spec asks."""


class TenantHooks:
    """PostgreSQLTenant at `/tenant/sync`, `/tenant/finalize` and `/tenant/customize`."""

    resource = "tenant"
    children = children.KINDS

    def __init__(self, config: Config, on_effect: Callable[[object, str], None]) -> None:
        self._config = config
        self._on_effect = on_effect

    def customize(self, request: Request) -> list[Manifest]:
        """Name the Instance as related, so that its changes wake the Tenant."""
        spec = request.parent.get("spec")
        instance = spec.get("instanceRef") if isinstance(spec, dict) else None
        if not isinstance(instance, str) or not instance:
            return []
        return [
            {
                "apiVersion": "database.ddupan.top/v1alpha1",
                "resource": "postgresqlinstances",
                "names": [instance],
            }
        ]

    def sync(self, request: Request, services: Services) -> Response:
        """Bring a live Tenant nearer to Ready and say how far it is."""
        parent = request.parent
        spec = parse(parent, self._config)
        if not isinstance(spec, Spec):
            status = report.invalid(spec, parent, services.now)
            return Response(status, contract.hold(request), NEEDS_A_PERSON)
        with ExitStack() as stack:
            world = World(services, self._config, stack)
            outcome = self._converge(spec, Past.of(parent), world)
            if outcome.busy and parent.get("status"):
                return Response(parent["status"], contract.hold(request), MIN_RECHECK)
            status = report.present(outcome.facts, outcome.decision, parent, world)
            if isinstance(outcome.decision.verdict, Met):
                again = _ready_recheck(spec.identity)
            else:
                again = recheck(outcome.decision, status, services.now)
            return Response(status, self._children(outcome, request), again)

    def _converge(self, spec: Spec, past: Past, world: World) -> Outcome[Facts, Provision]:
        return converge(
            Loop(
                gather=lambda locked: facts.gather(spec, past, world, locked=locked),
                decide=present,
                act=lambda action, seen: act.act(action, seen, world),
                lock=lambda: world.lock(spec.identity.uid),
                on_effect=self._on_effect,
            )
        )

    def _children(
        self, outcome: Outcome[Facts, Provision], request: Request
    ) -> tuple[Manifest, ...]:
        """List the ExternalSecret once everything before it is proved; else change nothing."""
        seen = outcome.facts
        proved = outcome.decision.gate in CHILD_GATES and object_stranger(seen) is None
        if outcome.busy or not proved:
            return contract.hold(request)
        if not isinstance(seen.instance, Instance) or not isinstance(seen.credential, Credential):
            return contract.hold(request)
        endpoint = seen.instance.endpoint
        child = children.external_secret(seen.spec, endpoint, seen.credential, self._config)
        return (child,)

    def finalize(self, request: Request, services: Services) -> Response:
        """Retain: let go at once. Delete: destroy what is proved to be ours, step by step."""
        parent = request.parent
        previous = parent.get("status") or {}
        if not contract.must_finalize(request):
            return Response(previous, contract.hold(request), finalized=True)
        with ExitStack() as stack:
            world = World(services, self._config, stack)
            before = remains.begin(parent, self._config)
            if not _delete(parent) and not before.recorded and self._retain(before, world):
                return Response(previous, finalized=True)
            return self._remove(request, before, world)

    def _retain(self, before: Remains, world: World) -> bool:
        """Mark the row unmanaged, if the server can be reached; False when Delete was decided."""
        action = MarkUnmanaged(before.identity.uid)
        try:
            world.instance(before.instance_name)
            locked = world.admin().try_lock(before.identity.uid)
            row = world.admin().row(before.identity.uid)
            if row is not None and row.state == "deleting":
                return False
            if row is None or row.state == "unmanaged" or not locked:
                return True
            act.retain(action, world)
        except EffectError as error:
            self._on_effect(action, type(error).__name__)
            return True
        self._on_effect(action, "ok")
        return True

    def _remove(self, request: Request, before: Remains, world: World) -> Response:
        parent, now = request.parent, world.services.now
        outcome = converge(
            Loop(
                gather=lambda _locked: remains.gather(before, world),
                decide=absent,
                act=lambda action, _seen: act.remove(action, world),
                lock=lambda: world.lock(before.identity.uid),
                on_effect=self._on_effect,
            )
        )
        status = report.deleting(outcome.decision, parent, now)
        if outcome.busy:
            return Response(parent.get("status") or status, contract.hold(request), MIN_RECHECK)
        if isinstance(outcome.decision.verdict, Met):
            return Response(status, finalized=True)
        drops = outcome.decision.gate in DROPS_CHILDREN
        held = () if drops else contract.hold(request)
        return Response(status, held, recheck(outcome.decision, status, now))


def _delete(parent: Manifest) -> bool:
    spec = parent.get("spec")
    return isinstance(spec, dict) and spec.get("deletionPolicy") == "Delete"


def _ready_recheck(identity: Identity) -> float:
    """Return when to look at a Ready Tenant again; the UID spreads them over the round."""
    offset = zlib.crc32(identity.uid.encode()) % (2 * READY_SPREAD + 1) - READY_SPREAD
    return float(READY_RECHECK + offset)

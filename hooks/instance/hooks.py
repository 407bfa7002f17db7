"""The hooks of a PostgreSQLInstance: parse, converge, report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from hooks.core import contract, manifests
from hooks.core.conditions import MIN_RECHECK, NEEDS_A_PERSON
from hooks.core.contract import Request, Response
from hooks.core.converge import Loop, Outcome, converge
from hooks.core.decision import Met
from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.core.report import recheck, unread
from hooks.effects.ports import TENANTS, Services
from hooks.instance import act, facts, report
from hooks.instance.actions import Action
from hooks.instance.decide import present, ready_despite_sweep
from hooks.instance.facts import Facts
from hooks.instance.model import Config, Spec, parse
from hooks.instance.world import World

DELETION_RECHECK = 5.0


class InstanceHooks:
    """PostgreSQLInstance at `/instance/sync` and `/instance/finalize`; it has no children."""

    resource = "instance"
    children: frozenset[tuple[str, str]] = frozenset()

    def __init__(self, config: Config, on_effect: Callable[[object, str], None]) -> None:
        self._config = config
        self._on_effect = on_effect

    def customize(self, request: Request) -> list[Manifest]:  # noqa: ARG002  the hook's shape
        """Name nothing as related: Tenants change too often to wake an Instance each time."""
        return []

    def sync(self, request: Request, services: Services) -> Response:
        """Check the server and keep its registry."""
        parent = request.parent
        spec = parse(parent)
        if not isinstance(spec, Spec):
            status = report.invalid(spec, parent, services.now)
            return Response(status, recheck=NEEDS_A_PERSON)
        outcome = self._probe(spec, parent, services)
        was_ready = manifests.condition(parent, "Ready").get("status") == "True"
        if was_ready and unread(outcome.decision):
            outcome = self._probe(spec, parent, services)
        previous = parent.get("status") or {}
        if outcome.busy and previous.get("conditions"):
            return Response(previous, recheck=MIN_RECHECK)
        decision = ready_despite_sweep(outcome.decision)
        status = report.present(outcome.facts, decision, parent, services.now)
        met = isinstance(decision.verdict, Met)
        again = None if met else recheck(decision, status, services.now)
        return Response(status, recheck=again)

    def _probe(self, spec: Spec, parent: Manifest, services: Services) -> Outcome[Facts, Action]:
        """Look at the server over a new connection, and write what is missing."""
        with ExitStack() as stack:
            world = World(services, self._config, parent, spec.endpoint, stack)
            return converge(
                Loop(
                    gather=lambda _locked: facts.gather(spec, world),
                    decide=present,
                    act=lambda action, _seen: act.act(action, world.admin()),
                    lock=lambda: world.lock(spec.uid),
                    on_effect=self._on_effect,
                )
            )

    def finalize(self, request: Request, services: Services) -> Response:
        """Wait until no Tenant names this Instance; the server is never touched."""
        parent = request.parent
        if not contract.must_finalize(request):
            return Response(parent.get("status") or {}, contract.hold(request), finalized=True)
        message = self._tenants_left(manifests.name(parent), services)
        if not message:
            return Response(parent.get("status") or {}, finalized=True)
        status = report.deleting(message, parent, services.now)
        return Response(status, recheck=DELETION_RECHECK)

    def _tenants_left(self, name: str, services: Services) -> str:
        """Say what keeps the Instance; empty when nothing does. Unknown keeps it too."""
        try:
            tenants = services.kubernetes.list(TENANTS, fields={"spec.instanceRef": name})
        except EffectError as error:
            return f"the Tenants of this Instance cannot be listed: {error}"
        count = len(tenants)
        return f"{count} PostgreSQLTenants still name this Instance: delete them" if count else ""

"""A Ready Tenant at rest: its sync beside its own remote calls, over HTTP too, and what it writes.

Customize is measured here as well; beside it stands the answer of the app that needs no thought.
"""

from __future__ import annotations

from bench.bare import Bare
from bench.client import Call, Client
from bench.figures import Figure, compared, in_turn, percentiles, timed
from bench.stage import TENANTS, Stage
from bench.traces import Traces
from bench.watch import Watch
from hooks.core import contract, manifests
from hooks.core.manifests import Manifest

MOST = 2.0
SYNC_MS = 100.0
CUSTOMIZE_MS = 5.0
WARM_UP = 5
APPLIED = 10


def measure(stage: Stage, tenant: Manifest, times: int) -> list[Figure]:
    """Sync one Tenant again and again."""
    bare, call = Bare(stage), stage.call(tenant)
    client = Client(stage.world.connection)
    actions = (
        lambda: timed(lambda: stage.answer(call.body)),
        lambda: timed(lambda: bare.idle(tenant)),
        lambda: client.timed(call),
    )
    in_turn(WARM_UP, *actions)
    before = Traces.of(stage)
    direct, remote, over_http = in_turn(times, *actions)
    for _ in range(APPLIED):
        _sync_and_apply(stage, tenant)
    written = Traces.of(stage).since(before)
    client.close()
    _explain(stage, call)
    calls = f"{2 * times + APPLIED} idle syncs, {APPLIED} of them by the runner"
    return [
        compared("idle sync: hook / its remote calls", direct, remote, MOST),
        percentiles("idle sync over HTTP", over_http, remote, SYNC_MS),
        Figure(f"writes anywhere in {calls}", str(written), target="0", met=written == 0),
    ]


def _sync_and_apply(stage: Stage, tenant: Manifest) -> None:
    """Let the runner, which writes what differs, do it all."""
    namespace, name = manifests.namespace(tenant), manifests.name(tenant)
    stage.world.runner.sync(TENANTS, namespace, name)


def _explain(stage: Stage, call: Call) -> None:
    watch, request = Watch(), contract.parse(call.body)
    whole = sum(
        timed(lambda: stage.answered(request, watch.services(stage.services()))) for _ in range(20)
    )
    parts = [*watch.totals(), ("own", whole - sum(total for _, total in watch.totals()))]
    shown = ", ".join(f"{name} {total / 20 * 1000:.1f}" for name, total in parts)
    print(f"  an idle sync's milliseconds by what was called: {shown}")


def customize(stage: Stage, tenant: Manifest, times: int) -> list[Figure]:
    """Ask for the related objects again and again."""
    call, health = stage.call(tenant, "customize"), Call("/healthz")
    client = Client(stage.world.connection)
    actions = (lambda: client.timed(call), lambda: client.timed(health))
    in_turn(WARM_UP, *actions)
    measured, floor = in_turn(times, *actions)
    client.close()
    return [percentiles("customize over HTTP (bare: /healthz)", measured, floor, CUSTOMIZE_MS)]

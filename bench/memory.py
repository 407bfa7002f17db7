"""The app's memory over thousands of mixed requests, and one that is very large.

Two apps take the same requests in turn: one with the allocator's settings of the Dockerfile, one
without. Bare is a program that only imports the libraries.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.client import Call, Client, Workers, workers
from bench.figures import Figure, Series, in_turn, timed
from bench.processes import libraries_mb, own_mb, peak_mb, rss_mb, worker_of
from bench.stage import INSTANCE, Stage, encoded
from hooks.core.manifests import Manifest
from hooks.sandbox.metacontroller import WORKERS

DOCKERFILE = {"MALLOC_ARENA_MAX": "2", "MALLOC_TRIM_THRESHOLD_": "131072"}
MOST_MB = 120.0
MARKS = (1_000, 5_000)
"""And at the end."""
FLAT_MB = 5.0
STEP = 250
LARGE_BYTES = 10_000_000
LARGE_SECONDS = 1.0


@dataclass
class _App:
    """One app and what it is asked."""

    name: str
    worker: int
    calls: Iterator[Call]
    through: Workers
    seen: list[float] = field(default_factory=list)

    def ask(self, count: int) -> None:
        self.through.run(itertools.islice(self.calls, count))


def measure(
    tuned: tuple[Stage, Sequence[Manifest]], plain: tuple[Stage, Sequence[Manifest]], total: int
) -> list[Figure]:
    """Send so many requests to each app."""
    with (
        workers(tuned[0].world.connection, WORKERS) as one,
        workers(plain[0].world.connection, WORKERS) as other,
    ):
        apps = [
            _app("as in the Dockerfile", *tuned, one),
            _app("without MALLOC_*", *plain, other),
        ]
        for sent in range(STEP, total + 1, STEP):
            for app in apps:
                app.ask(STEP)
                if sent in (*MARKS, total):
                    app.seen.append(rss_mb(app.worker))
    bare = f"{libraries_mb():.0f} MB (libraries alone)"
    pids = tuned[0].world.app.pid, apps[0].worker
    print(f"  both processes of the app together, shared memory once: {own_mb(*pids):.0f} MB")
    return [_figure(app, total, bare) for app in apps]


def _figure(app: _App, total: int, bare: str) -> Figure:
    marks = "/".join(str(mark) for mark in (*MARKS, total) if mark <= total)
    shown = "/".join(f"{megabytes:.1f}" for megabytes in app.seen)
    flat = len(app.seen) < 2 or app.seen[-1] - app.seen[-2] <= FLAT_MB  # noqa: PLR2004  a pair
    return Figure(
        f"worker's RSS after {marks} requests, {app.name}",
        f"{shown} MB",
        bare,
        target=f"< {MOST_MB:g} MB, flat",
        met=app.seen[-1] < MOST_MB and flat,
    )


def _app(name: str, stage: Stage, tenants: Sequence[Manifest], through: Workers) -> _App:
    return _App(name, worker_of(stage.world.app.pid), _mixed(stage, tenants), through)


def _mixed(stage: Stage, tenants: Sequence[Manifest]) -> Iterator[Call]:
    """Yield calls for ever: of twenty, two idle syncs, thirteen customize, and what goes wrong."""
    for tenant in itertools.cycle(tenants):
        sync, customize = stage.call(tenant), stage.call(tenant, "customize")
        yield from [sync] * 2
        yield from [customize] * 13
        yield _invalid(sync)
        yield Call("/tenant/sync", b'{"parent": [')
        # Live, so it is let go at once, with its children.
        yield stage.call(tenant, "finalize")
        yield Call("/metrics")
        yield Call("/nowhere", b"{}")


def _invalid(sync: Call) -> Call:
    document = json.loads(sync.body)
    document["parent"]["spec"]["database"] = "Not An Identifier"
    return Call(sync.path, encoded(document))


def large(stage: Stage, tenant: Manifest, times: int) -> list[Figure]:
    """Send a sync of ten megabytes, most of it related objects, beside the same without them."""
    small = stage.call(tenant)
    call = Call(small.path, _padded(small.body))
    worker = worker_of(stage.world.app.pid)
    before = rss_mb(worker)
    client = Client(stage.world.connection)
    client.timed(small)
    found = in_turn(
        times,
        lambda: client.timed(call),
        lambda: client.timed(small),
        lambda: timed(lambda: json.loads(call.body)),
    )
    client.close()
    sizes = f"{before:.0f} MB before, {rss_mb(worker):.0f} after, {peak_mb(worker):.0f} at most"
    return [_slowest(len(call.body), found), Figure("worker's RSS with these requests", sizes)]


def _slowest(size: int, found: Sequence[Series]) -> Figure:
    measured, small, loads = found
    return Figure(
        f"idle sync of {size / 1e6:.1f} MB over HTTP",
        str(measured),
        f"{small} small; json.loads {loads.median * 1000:.0f} ms",
        measured.median / (small.median + loads.median),
        f"< {LARGE_SECONDS:g} s",
        max(measured.seconds) < LARGE_SECONDS,
    )


def _padded(body: bytes) -> bytes:
    document = json.loads(body)
    (group,) = document["related"].values()
    instance = json.dumps(group[INSTANCE])
    for number in range((LARGE_BYTES - len(body)) // (len(instance) + 20)):
        group[f"other-{number:06}"] = json.loads(instance)
    return encoded(document)

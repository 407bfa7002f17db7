"""Many Ready Tenants: one resync round beside a world with ten, and the connections it takes.

Two whole worlds stand side by side and are asked in turn, each by as many workers as
Metacontroller has. What Metacontroller itself needs for a round is not in the figures.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.client import OK, Call, Workers, workers
from bench.figures import Figure, Series, compared, in_turn
from bench.processes import cpu_seconds, worker_of
from bench.stage import Stage
from hooks.core.manifests import Manifest
from hooks.sandbox.metacontroller import WORKERS

SLICES = 10
ROUNDS = 2
MOST = 1.1
IN_FLIGHT = 24
PER_CALL = 2
"""The admin session, and the login as the tenant."""
CROWD = 40

_COUNT = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'database-hooks'"


def measure(
    few: tuple[Stage, Sequence[Manifest]], many: tuple[Stage, Sequence[Manifest]]
) -> list[Figure]:
    """Sync every Tenant of the second world, slice by slice, and those of the first as often."""
    sides = [_Side(*few), _Side(*many)]
    size = max(len(many[1]) // SLICES, 1)
    with (
        workers(sides[0].connection, WORKERS) as first,
        workers(sides[1].connection, WORKERS) as second,
    ):
        actions = [
            lambda: sides[0].round(first, size),
            lambda: sides[1].round(second, size),
        ]
        in_turn(1, *actions)
        used = [side.cpu for side in sides]
        ten, all_ = in_turn(SLICES * ROUNDS, *actions)
        used = [side.cpu - before for side, before in zip(sides, used, strict=True)]
        most = sides[1].most_connections(second, len(many[1]))
    count = size * SLICES * ROUNDS
    cpu = [Series([seconds / count]) for seconds in used]
    overload = _overloaded(sides[1])
    what = f"resync round, {len(many[1])} Tenants / {len(few[1])}, {WORKERS} workers"
    seconds = sum(all_.seconds) * size / ROUNDS
    return [
        compared(f"{what}: a Tenant's share ({seconds:.1f} s a round)", all_, ten, MOST),
        compared("the app's processor time in it, a Tenant", cpu[1], cpu[0], None),
        _bounded(f"most PostgreSQL connections, {WORKERS} workers", most, WORKERS),
        _bounded(f"the same, {CROWD} callers at once", overload, IN_FLIGHT),
    ]


def _bounded(what: str, most: int, threads: int) -> Figure:
    bound = PER_CALL * threads
    return Figure(what, str(most), target=f"<= {bound} (2 a call in flight)", met=most <= bound)


class _Side:
    """One world."""

    def __init__(self, stage: Stage, tenants: Sequence[Manifest]) -> None:
        self.connection = stage.world.connection
        self._stage = stage
        self._calls = itertools.cycle([stage.call(tenant) for tenant in tenants])
        self._worker = worker_of(stage.world.app.pid)

    @property
    def cpu(self) -> float:
        return cpu_seconds(self._worker)

    def calls(self, count: int) -> Iterator[Call]:
        return itertools.islice(self._calls, count)

    def round(self, through: Workers, count: int) -> float:
        """Sync the next Tenants; return the seconds for each."""
        seconds, statuses = through.run(self.calls(count))
        assert set(statuses) == {OK}, statuses
        return seconds / count

    def most_connections(self, through: Workers, count: int) -> int:
        """Sync the next Tenants while somebody counts connections."""
        with self._counted() as seen:
            through.run(self.calls(count))
        return max(seen)

    @contextmanager
    def _counted(self) -> Iterator[list[int]]:
        server, seen, done = self._stage.world.postgres, [0], threading.Event()

        def count() -> None:
            while not done.wait(0.005):
                seen.append(int(str(server.sql(_COUNT)[0][0])))

        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            done.set()
            thread.join()


def _overloaded(side: _Side) -> int:
    """Ask from more callers than are served at once; the rest is answered 429."""
    with workers(side.connection, CROWD) as crowd:
        return side.most_connections(crowd, 5 * CROWD)

"""Metacontroller for CompositeControllers and DecoratorControllers, in this process.

Idea: the steps of the real one against any `Cluster`: an event or a timer queues a parent, a sync
calls its hook and does what the answer says. Either threads work the queue off, or a test settles
it step by step, skipping the time between timers. A `Faults` makes happen what is rare: late
caches, doubled calls, lost answers; `restart` loses all that is kept in memory.

Limits: hooks of version v2, no rolling updates, no ETags, one queue for all controllers. The
webhook's host and credentials come from the caller, not from the manifests.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Literal

from hooks.sandbox import runner_config
from hooks.sandbox.runner_cache import Cache
from hooks.sandbox.runner_children import DynamicApply, Strategy
from hooks.sandbox.runner_process import Process
from hooks.sandbox.runner_queue import Time, WorkQueue
from hooks.sandbox.runner_server_side import ServerSideApply
from hooks.sandbox.runner_state import (
    Faults,
    Item,
    NotSettled,
    RunnerCrashed,
    Statistics,
    SyncError,
    TooManyRequests,
)
from hooks.sandbox.runner_sync import Parts
from hooks.sandbox.runner_webhook import Connection, Webhooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Cluster

__all__ = [
    "Connection",
    "Faults",
    "NotSettled",
    "Runner",
    "RunnerCrashed",
    "Statistics",
    "SyncError",
    "Time",
    "TooManyRequests",
]

ApplyStrategy = Literal["dynamic-apply", "server-side-apply"]
WORKERS = 5
_STRATEGIES: Mapping[ApplyStrategy, Callable[[], Strategy]] = {
    "dynamic-apply": DynamicApply,
    "server-side-apply": ServerSideApply,
}
_STOP_TIMEOUT = 40.0


class Runner:
    """Metacontroller, for as long as the object lives."""

    def __init__(
        self,
        cluster: Cluster,
        controllers: Iterable[Manifest],
        *,
        connect: Connection,
        time: Time | None = None,
        strategy: ApplyStrategy = "dynamic-apply",
    ) -> None:
        """Read the controllers; `BadController` says why one would not start.

        Args:
            cluster: where everything is.
            controllers: their manifests.
            connect: how the hooks are reached.
            time: share it with a hook that is to see the same time.
            strategy: how children are written.

        """
        self.statistics = Statistics()
        self.faults = Faults()
        self.time = time or Time()
        self._cluster = cluster
        self._specs = [runner_config.read(manifest, cluster.kinds) for manifest in controllers]
        self._webhooks = Webhooks(connect, self.faults)
        self._strategy: Strategy = _STRATEGIES[strategy]()
        self._process: Process | None = None
        self._threads: list[threading.Thread] = []
        self._crash: RunnerCrashed | None = None
        self._crashed = threading.Event()

    def start(self) -> None:
        """Work in threads until `stop`."""
        process = self._running()
        works = [process.follow] + [process.work] * (WORKERS * len(self._specs))
        for work in works:
            thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop the threads and lose what is in memory; finalizers stay on the parents.

        Raises:
            RunnerCrashed: It had crashed.
        """
        if self._process is not None:
            self._process.close()
            self._process = None
        for thread in self._threads:
            thread.join(_STOP_TIMEOUT)
        self._threads.clear()
        if self._crash is not None:
            raise self._crash

    def restart(self) -> None:
        """Lose what is in memory, as a new Pod would, also after a crash; all parents are due."""
        threaded = bool(self._threads)
        with contextlib.suppress(RunnerCrashed):
            self.stop()
        self._crash = None
        self._crashed.clear()
        self._strategy.forget()
        if threaded:
            self.start()

    @property
    def crash(self) -> RunnerCrashed | None:
        """Return why there is no work done any more, None while there is."""
        return self._crash

    def wait_for_crash(self, timeout: float | None = None) -> RunnerCrashed | None:
        """Wait for a crash in a thread; None when the time is over first."""
        self._crashed.wait(timeout)
        return self._crash

    def settle(self, limit: int = 200, *, within: float = 0.0) -> int:
        """Work off all that is due in this thread, and all timers that end within some seconds.

        Nothing is waited for: the time until a timer ends is skipped.

        Returns:
            The number of syncs.

        Raises:
            NotSettled: It takes more syncs than the limit.
            RunnerCrashed: It crashed, now or before.
        """
        horizon = self.time.now() + within
        process = self._running()
        syncs = 0
        with self._crashing():
            while (item := process.next(horizon)) is not None:
                process.process(item)
                syncs += bool(item.name)
                if syncs > limit:
                    raise NotSettled(f"more than {limit} syncs, the last of {item}")
        self.time.skip_to(horizon)
        return syncs

    def resync(self) -> None:
        """Make all parents due, as the timers of the informers do."""
        for spec in self._specs:
            self._running().resync(spec.key)

    def sync(self, kind: Kind, namespace: str | None, name: str) -> None:
        """Sync one parent now, in this thread, for each controller of its kind.

        Raises:
            SyncError: It failed.
            TooManyRequests: The hook asks for time.
            RunnerCrashed: It crashed, now or before.
        """
        process = self._running()
        process.take_events()
        for spec in self._specs:
            if kind in spec.parents:
                item = Item(spec.key, f"{kind.kind}.{kind.api_version}", namespace or "", name)
                with self._crashing():
                    error = process.attempt(item)
                if error is not None:
                    raise error

    def _guarded(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RunnerCrashed), self._crashing():
            work()

    @contextlib.contextmanager
    def _crashing(self) -> Iterator[None]:
        """Let a crash end all work."""
        try:
            yield
        except RunnerCrashed as error:
            self._crash = error
            self._crashed.set()
            if self._process is not None:
                self._process.close()
                self._process = None
            raise

    def _running(self) -> Process:
        if self._crash is not None:
            raise self._crash
        if self._process is None:
            self._process = Process(self._specs, self._parts())
        return self._process

    def _parts(self) -> Parts:
        return Parts(
            cluster=self._cluster,
            cache=Cache(self._cluster),
            queue=WorkQueue(self.time),
            time=self.time,
            webhooks=self._webhooks,
            strategy=self._strategy,
            statistics=self.statistics,
            faults=self.faults,
        )

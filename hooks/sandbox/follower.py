"""Do something after each change of some kinds, in a thread of its own.

Idea: changes only say that there is work; what it is, the work looks up. So changes that come
while it works are one more round, not a queue.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Change, Cluster

_STOP_SECONDS = 40.0


class Follower:
    """A thread that works whenever something changed."""

    def __init__(
        self, cluster: Cluster, kinds: Collection[Kind], work: Callable[[], object]
    ) -> None:
        self._cluster = cluster
        self._kinds = {kind.kind for kind in kinds}
        self._work = work
        self._due = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Work now, and after each change."""
        self._unsubscribe = self._cluster.subscribe(self._told)
        self._due.set()
        self._thread.start()

    def stop(self) -> None:
        """Finish the round that is under way, and start no other."""
        self._unsubscribe()
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _follow(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._stopping:
                return
            self._work()

    def _told(self, _change: Change, obj: Manifest, /) -> None:
        if obj["kind"] in self._kinds:
            self._due.set()

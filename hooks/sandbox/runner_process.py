"""All that one process of the runner keeps in memory: informers, queue, controllers.

Idea: events of the cluster are put aside where they are told, and taken in by one thread, which
wakes parents. Whoever takes an item from the queue syncs it and decides when it is due again.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING

from hooks.sandbox.kinds import ApiError
from hooks.sandbox.runner_composite import Composite
from hooks.sandbox.runner_decorator import Decorator
from hooks.sandbox.runner_state import Item, SyncError, TooManyRequests
from hooks.sandbox.runner_watch import woken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Change
    from hooks.sandbox.runner_config import ControllerSpec, ControllerType
    from hooks.sandbox.runner_sync import Controller, Parts

_Event = tuple["Change", "Manifest"]
_TYPES: Mapping[ControllerType, type[Controller]] = {
    "CompositeController": Composite,
    "DecoratorController": Decorator,
}


class Process:
    """A started Metacontroller; every parent is due."""

    def __init__(self, specs: Iterable[ControllerSpec], parts: Parts) -> None:
        self._parts = parts
        self._controllers = {spec.key: _TYPES[spec.type](spec, parts) for spec in specs}
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        self._unsubscribe = parts.cluster.subscribe(self._put_aside)
        for controller in self._controllers.values():
            for kind in (*controller.spec.parents, *controller.spec.children):
                parts.cache.watch(kind)
            self.resync(controller.spec.key)

    def close(self) -> None:
        """Let the threads end."""
        self._unsubscribe()
        self._events.put(None)
        self._parts.queue.close()

    def follow(self) -> None:
        """Take events in until it is closed."""
        while (event := self._events.get()) is not None:
            self._take(*event)

    def work(self) -> None:
        """Work the queue off until it is closed."""
        while (item := self._parts.queue.wait()) is not None:
            self.process(item)

    def process(self, item: Item) -> None:
        """Do what the queue asks for."""
        if item.name:
            self.attempt(item)
        else:
            self.resync(item.controller)
            self._parts.queue.done(item)

    def take_events(self) -> None:
        """Take in what has happened so far."""
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if event is not None:
                self._take(*event)

    def next(self, horizon: float) -> Item | None:
        """Return what is due, skipping time up to the horizon; None when nothing is."""
        while True:
            self.take_events()
            if (item := self._parts.queue.take()) is not None:
                return item
            due = self._parts.queue.next_due
            if due is None or due > horizon:
                return None
            self._parts.time.skip_to(due)

    def attempt(self, item: Item) -> SyncError | TooManyRequests | None:
        """Sync a parent; return why it failed, after seeing to it that it is tried again."""
        work = self._parts.queue
        try:
            self._controllers[item.controller].sync(item)
        except TooManyRequests as error:
            work.add_after(item, error.after)
            return error
        except (SyncError, ApiError) as error:
            return self._failed(item, error)
        finally:
            work.done(item)
        work.forget(item)
        return None

    def resync(self, key: str) -> None:
        """Make all parents of a controller due, now and after its period."""
        controller = self._controllers[key]
        for parent in controller.parents():
            self._wake(controller, parent)
        self._parts.queue.add_after(Item(key), controller.spec.resync_period)

    def _put_aside(self, change: Change, obj: Manifest, /) -> None:
        self._events.put((change, obj))

    def _take(self, change: Change, obj: Manifest) -> None:
        noted = self._parts.cache.note(change, obj)
        if noted is None:
            return
        kind, old = noted
        for controller in self._controllers.values():
            for parent in woken(controller, kind, change, old, obj):
                self._wake(controller, parent)

    def _wake(self, controller: Controller, parent: Manifest) -> None:
        if controller.cares(parent):
            self._parts.queue.add(controller.item(parent))

    def _failed(self, item: Item, error: SyncError | ApiError) -> SyncError:
        self._parts.statistics.count(item, "error")
        parent = self._controllers[item.controller].parent(item)
        if parent is not None:
            self._parts.cluster.record_event(parent, "SyncError", f"Sync error: {error}")
        self._parts.queue.add_failed(item)
        return error if isinstance(error, SyncError) else SyncError(str(error))

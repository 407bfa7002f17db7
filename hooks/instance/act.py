"""Perform one write of an Instance."""

from __future__ import annotations

from typing import assert_never

from hooks.effects.ports import Admin
from hooks.instance.actions import Action, MarkUnmanaged, MigrateRegistry, RecordSweep


def act(action: Action, admin: Admin) -> None:
    """Perform one write, or raise EffectError."""
    match action:
        case MigrateRegistry():
            admin.migrate()
        case MarkUnmanaged(uid):
            admin.mark(uid, state="unmanaged", was=frozenset({"planned", "managed"}))
        case RecordSweep():
            admin.record_sweep()
        case _:
            assert_never(action)

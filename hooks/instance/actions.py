"""The writes an Instance may need, as data: one action is one write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MigrateRegistry:
    """Create the registry, or add what this version needs."""


@dataclass(frozen=True, slots=True)
class MarkUnmanaged:
    """Record that a Tenant vanished and its database stays."""

    uid: str


@dataclass(frozen=True, slots=True)
class RecordSweep:
    """Record that all rows were looked at."""


Action = MigrateRegistry | MarkUnmanaged | RecordSweep

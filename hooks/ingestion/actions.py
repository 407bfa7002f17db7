"""The writes that a DruidIngestion may need, as data: one action is one write."""

from __future__ import annotations

from dataclasses import dataclass

from hooks.ingestion.policies import Policy


@dataclass(frozen=True, slots=True)
class Submit:
    """Send the specification; status.history has this id already."""

    id: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """Post the specification that a supervisor had before an update that Druid refused."""

    id: str


@dataclass(frozen=True, slots=True)
class ShutDown:
    """Ask a task to end."""

    id: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask a supervisor to end."""

    id: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Suspend a supervisor."""

    id: str


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume a supervisor."""

    id: str


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """Write or remove compaction or rules."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class LetGo:
    """Let the object go although Druid may still run these; told, and no write."""

    ids: tuple[str, ...]


Removal = ShutDown | Terminate | WritePolicy
Action = Submit | PutBack | Suspend | Resume | Removal

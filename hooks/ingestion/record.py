"""What status.history remembers of each submission; the first one is in work.

This status is memory, and not only a report: a submission is written here before it is made, and
its end stays here when Druid has forgotten it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from hooks.core.manifests import Manifest
from hooks.effects.ports.druid import Rows

MAX_HISTORY = 10

State = Literal[
    "Submitting",  # written down; nobody knows whether Druid has it
    "Running",  # Druid took it
    "Succeeded",
    "Failed",
    "Lost",  # Druid had it, and does not know it any more
    "Stopping",  # we asked Druid to end it
    "Stopped",  # and saw that it ended
    "Rejected",  # Druid refused its content
    "Superseded",  # never reached Druid, and is not wanted any more
    "Replaced",  # the same supervisor runs a later one
]
LIVE: frozenset[State] = frozenset({"Submitting", "Running", "Stopping"})
ENDED: frozenset[State] = frozenset({"Succeeded", "Failed", "Lost"})
RAN: frozenset[State] = ENDED | {"Running", "Stopping", "Stopped", "Replaced"}
"""Druid took it at some time."""


@dataclass(frozen=True, slots=True)
class Record:
    """One submission.

    Attributes:
        id: of the task or supervisor, in Druid's words once it answered.
        attempt: which run of this content, from 1.
        spec_hash: of the content; empty when another controller submitted something else.
        type, cluster, datasource: where it went.
        submitted_at: when it was written down; ended_at: when its end was seen; stopping_at: when
            Druid was asked to end it. RFC 3339, empty for not yet.
        error: Druid's words, masked and cut.
        rows: counts of the report.
        requested_id: the supervisor id that was asked for, when Druid used another.
        adopted: somebody else submitted it, and it was taken over.
        rejected_with: hash of what it was refused with; while that is so, it is not sent again.
        copy_hash: hash of Druid's own copy right after the submission, as far as the user wrote it.
        suspended: the last suspension that was asked for and seen; None for tasks.
    """

    id: str
    attempt: int
    spec_hash: str
    state: State
    type: str
    cluster: str
    datasource: str = ""
    submitted_at: str = ""
    ended_at: str = ""
    stopping_at: str = ""
    error: str = ""
    rows: Rows | None = None
    requested_id: str = ""
    adopted: bool = False
    rejected_with: str = ""
    copy_hash: str = ""
    suspended: bool | None = None

    @property
    def live(self) -> bool:
        """Say whether it may be running in Druid."""
        return self.state in LIVE

    def to_status(self) -> Manifest:
        """Write it as an entry of status.history; what is empty is left out."""
        entry: Manifest = {
            "id": self.id,
            "attempt": self.attempt,
            "specHash": self.spec_hash,
            "state": self.state,
            "type": self.type,
            "druidCluster": self.cluster,
        }
        optional: Manifest = {key: getattr(self, name) for key, name in _TEXTS.items()}
        entry |= {key: text for key, text in optional.items() if text}
        if self.rows is not None:
            entry["rows"] = rows_to_status(self.rows)
        if self.adopted:
            entry["adopted"] = True
        if self.suspended is not None:
            entry["suspended"] = self.suspended
        return entry


_TEXTS = {
    "datasource": "datasource",
    "submittedAt": "submitted_at",
    "endedAt": "ended_at",
    "stoppingAt": "stopping_at",
    "error": "error",
    "requestedId": "requested_id",
    "rejectedWith": "rejected_with",
    "copyHash": "copy_hash",
}
_ROWS = {
    "processed": "processed",
    "withError": "with_error",
    "unparseable": "unparseable",
    "thrownAway": "thrown_away",
}


def rows_to_status(rows: Rows) -> Manifest:
    """Write row counts."""
    return {key: getattr(rows, name) for key, name in _ROWS.items()}


def read(status: Manifest) -> tuple[Record, ...]:
    """Read status.history; entries that nobody of ours wrote are left out."""
    entries = status.get("history")
    found = (_record(entry) for entry in entries or () if isinstance(entry, dict))
    return tuple(record for record in found if record is not None)


def _record(entry: Manifest) -> Record | None:
    state = entry.get("state")
    if state not in get_args(State) or not entry.get("id"):
        return None
    texts: dict[str, Any] = {name: str(entry.get(key) or "") for key, name in _TEXTS.items()}
    rows, suspended = entry.get("rows"), entry.get("suspended")
    return Record(
        id=str(entry["id"]),
        attempt=int(entry.get("attempt") or 0),
        spec_hash=str(entry.get("specHash") or ""),
        state=cast("State", state),
        type=str(entry.get("type") or ""),
        cluster=str(entry.get("druidCluster") or ""),
        rows=_rows(rows) if isinstance(rows, dict) else None,
        adopted=entry.get("adopted") is True,
        suspended=suspended if isinstance(suspended, bool) else None,
        **texts,
    )


def _rows(entry: Manifest) -> Rows:
    return Rows(**{name: int(entry.get(key) or 0) for key, name in _ROWS.items()})


def write(history: Iterable[Record]) -> list[Manifest]:
    """Write status.history, as many as are kept."""
    return [record.to_status() for record in _kept(history)]


def _kept(history: Iterable[Record]) -> list[Record]:
    """Leave out the oldest, but what never ran first, and what may be running last.

    Ten edits that Druid refuses must not make it forgotten what runs. What was adopted stays too:
    an annotation that is still there must not adopt it again for other content.
    """
    kept = list(history)
    while len(kept) > MAX_HISTORY:
        never_ran = [record for record in kept[1:] if record.state not in RAN]
        over = [record for record in kept[1:] if not (record.live or record.adopted)]
        kept.remove((never_ran or over or kept)[-1])
    return kept


def with_change(history: Sequence[Record], old: Record, new: Record) -> tuple[Record, ...]:
    """Return the history with one record changed."""
    return tuple(new if record is old else record for record in history)


def last_attempt(history: Iterable[Record], spec_hash: str) -> int:
    """Return the number of the last run of a content that may have reached Druid; 0 for none."""
    attempts = (
        record.attempt
        for record in history
        if record.spec_hash == spec_hash and record.state != "Superseded"
    )
    return max(attempts, default=0)

"""The status words of druid-operator's own controller: what happened last, and what Druid said.

They move when something was submitted, refused or shut down, and stay otherwise. `reason` is
Druid's answer and `message` the word, which is the wrong way round; tools of users read it so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from hooks.core.manifests import Manifest
from hooks.ingestion.facts import Facts
from hooks.ingestion.masking import Masker
from hooks.ingestion.past import CURRENT_SPEC
from hooks.ingestion.policies import MAX_TEXT
from hooks.ingestion.record import RAN, Record
from hooks.ingestion.world import World

MAX_SPEC_BYTES = 256 * 1024
"""A specification is in the object twice; etcd takes about 1.5 MiB of it."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one submission in this request."""

    record: Record
    kind: str
    """accepted, refused or stopped"""


def event(before: Sequence[Record], after: Sequence[Record]) -> Event | None:
    """Return what matters most of what happened between two histories."""
    found = [happened for record in after if (happened := _happened(before, record)) is not None]
    order = ("accepted", "refused", "stopped")
    return min(found, key=lambda happened: order.index(happened.kind), default=None)


def _happened(before: Sequence[Record], record: Record) -> Event | None:
    old = next((old for old in before if _same(old, record)), None)
    was = old.state if old else "Submitting"
    if record.state in ("Stopping", "Stopped"):
        return None if was in ("Stopping", "Stopped") else Event(record, "stopped")
    if record.state in RAN and was not in RAN:
        return Event(record, "accepted")
    again = old is None or old.state != "Rejected" or old.rejected_with != record.rejected_with
    return Event(record, "refused") if record.state == "Rejected" and again else None


def _same(old: Record, record: Record) -> bool:
    return old.id in (record.id, record.requested_id) and (
        (old.attempt, old.spec_hash) == (record.attempt, record.spec_hash)
    )


def fields(facts: Facts, previous: Manifest, world: World) -> Manifest:
    """Return the original fields of the status, the two required ones in any case."""
    kept: Manifest = {
        "taskId": str(previous.get("taskId") or ""),
        CURRENT_SPEC: str(previous.get(CURRENT_SPEC) or ""),
    }
    what = event(facts.past.history, facts.history)
    verb = "Update" if kept["taskId"] else "Create"
    if what is None:
        return kept | (_words(verb, world.unsaid, ok=False) if world.unsaid else {})
    record, masker = what.record, Masker.of(facts.spec.ingestion.document)
    match what.kind:
        case "accepted":
            kept = {"taskId": record.id, CURRENT_SPEC: _shown(facts, masker)}
            return kept | _words(verb, _said(record, world, masker), ok=True)
        case "refused":
            return kept | _words(verb, record.error, ok=False)
        case _:
            return kept | _words("ShutDown", f"ended: {record.id}", ok=True)


def _words(verb: str, reason: str, *, ok: bool) -> Manifest:
    word = f"DruidIngestionController{verb}{'Success' if ok else 'Fail'}"
    return {"type": word, "message": word, "status": "True" if ok else "False", "reason": reason}


def _said(record: Record, world: World, masker: Masker) -> str:
    answer = world.said.get(record.id) or world.said.get(record.requested_id)
    if answer is None or not answer.accepted:
        return f"found in Druid: {record.id}"
    return masker.text(answer.text, limit=MAX_TEXT)


def _shown(facts: Facts, masker: Masker) -> str:
    ingestion = facts.spec.ingestion
    text = masker.document(ingestion.document, ingestion.written)
    encoded = text.encode()
    if len(encoded) <= MAX_SPEC_BYTES:
        return text
    digest = hashlib.sha256(encoded).hexdigest()
    return f"sha256:{digest} ({len(encoded)} bytes, too large to be kept here)"


def ended(before: Sequence[Record], after: Sequence[Record]) -> Manifest:
    """Return the words of a deletion; none while nothing was asked to end."""
    what = event(before, after)
    if what is None or what.kind != "stopped":
        return {}
    return _words("ShutDown", f"ended: {what.record.id}", ok=True)

"""What the request's status says was so before; the only memory that there is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from hooks.core import manifests
from hooks.core.conditions import READY
from hooks.core.manifests import Manifest
from hooks.ingestion import document, record
from hooks.ingestion.document import Document, Unreadable
from hooks.ingestion.identity import as_floats
from hooks.ingestion.model import STREAMING, Spec
from hooks.ingestion.parsing import datasource_of
from hooks.ingestion.policies import Applied
from hooks.ingestion.record import Record

CURRENT_SPEC = "currentIngestionSpec.json"

LATE_SECONDS = 120.0
"""How long after it a submission without an answer may still arrive: Druid takes one supervisor
at a time, and ends one only after its tasks."""


@dataclass(frozen=True, slots=True)
class Past:
    """What was written last.

    Attributes:
        history: of our submissions, and the one of the controller that was here before us.
        recorded: there is a history, and be it empty; otherwise it may have been lost.
        applied: compaction and rules that Druid has from us.
        steady: the last look at this generation found everything as asked.
    """

    history: tuple[Record, ...] = ()
    recorded: bool = True
    applied: Applied = field(default_factory=Applied)
    steady: bool = False


def of(parent: Manifest, spec: Spec) -> Past:
    """Read the status."""
    status = parent.get("status") or {}
    ready = manifests.condition(parent, READY)
    current = ready.get("observedGeneration") == spec.generation
    history, applied = record.read(status), Applied.of(status.get("applied"))
    if "history" not in status and not spec.taken_by_other:
        history = legacy(status, spec)
        applied = Applied.legacy(status, spec.ingestion.datasource)
    return Past(
        history=history,
        recorded="history" in status,
        applied=applied,
        steady=current and ready.get("status") == "True",
    )


def legacy(status: Manifest, spec: Spec) -> tuple[Record, ...]:
    """Take over what the controller inside druid-operator submitted.

    It kept the specification as a reader of 64-bit floats wrote it, so it is compared as such.
    """
    id_ = status.get("taskId")
    if not isinstance(id_, str) or not id_:
        return ()
    stored = _stored(status)
    ingestion = spec.ingestion
    same = stored is not None and as_floats(stored) == as_floats(ingestion.document)
    adopted = Record(
        id=id_,
        attempt=1 if same else 0,
        spec_hash=ingestion.hash if same else "",
        state="Running",
        type=ingestion.type,
        cluster=spec.connection.cluster,
        datasource=datasource_of(stored) if stored else "",
        submitted_at=str(status.get("lastUpdateTime") or ""),
        adopted=True,
    )
    return (replace(adopted, suspended=False),) if ingestion.type in STREAMING else (adopted,)


def _stored(status: Manifest) -> Document | None:
    text = status.get(CURRENT_SPEC)
    try:
        return document.read(text) if isinstance(text, str) and text else None
    except Unreadable:
        return None


def seconds_since(text: str, now: datetime) -> float:
    """Return the age of a time in the status; very old when it is none."""
    moment = manifests.timestamp(text)
    return (now - moment).total_seconds() if moment else float("inf")

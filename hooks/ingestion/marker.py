"""The mark that our submissions carry, so that Druid's own copy says whose it is.

It is one member of the top-level `context`, which tasks inherit and ignore: the UID of the
DruidIngestion and the hash of its specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hooks.ingestion.document import Document

KEY = "druid.apache.org/ingestion"


@dataclass(frozen=True, slots=True)
class Marker:
    """Whose a submission is, and of which content."""

    uid: str
    spec_hash: str

    def put(self, document: Document) -> Document:
        """Return the document with this mark in its context; the order of members stays."""
        context = document.get("context") or {}
        return {**document, "context": {**context, KEY: f"{self.uid}/{self.spec_hash}"}}


def found(context: object) -> Marker | None:
    """Read the mark of a context; None when there is none."""
    text = context.get(KEY) if isinstance(context, Mapping) else None
    if not isinstance(text, str):
        return None
    uid, _, spec_hash = text.partition("/")
    return Marker(uid, spec_hash)


def of_supervisor(copy: Mapping[str, object]) -> Marker | None:
    """Read the mark of a supervisor's specification."""
    return found(copy.get("context"))


def of_task(payload: Mapping[str, object]) -> Marker | None:
    """Read the mark of a task's payload; SQL keeps the context under another name."""
    return found(payload.get("context")) or found(payload.get("sqlQueryContext"))

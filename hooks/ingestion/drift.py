"""Is Druid's copy of a supervisor still what we submitted?

Druid fills in defaults and spells values its own way (PT30M becomes PT1800S), so copies are
compared with copies: the parts that the user wrote, as Druid showed them right after our
submission. Limits: a member that somebody adds, and the user did not write, is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping

from hooks.ingestion import marker
from hooks.ingestion.document import Document
from hooks.ingestion.identity import canonical, digest
from hooks.ingestion.record import Record

_OURS = frozenset({"suspended", "context"})
"""Judged by themselves."""


def copy_hash(copy: Mapping[str, object], document: Document) -> str:
    """Return the hash of Druid's copy, as far as the user wrote it."""
    written = {key: value for key, value in document.items() if key not in _OURS}
    return digest(canonical(_projected(copy, written, autoscaled=_autoscaled(document))))


def _autoscaled(document: Document) -> bool:
    spec = document.get("spec")
    for holder in (spec, document):
        io_config = holder.get("ioConfig") if isinstance(holder, dict) else None
        scaler = io_config.get("autoScalerConfig") if isinstance(io_config, dict) else None
        if isinstance(scaler, dict) and scaler.get("enableTaskAutoScaler") is True:
            return True
    return False


def _projected(copy: object, written: object, *, autoscaled: bool) -> object:
    if isinstance(written, Mapping) and isinstance(copy, Mapping):
        return {
            key: _projected(copy.get(key), value, autoscaled=autoscaled)
            for key, value in written.items()
            if not (autoscaled and key == "taskCount")
        }
    if isinstance(written, list) and isinstance(copy, list) and len(written) == len(copy):
        pairs = zip(copy, written, strict=True)
        return [_projected(one, other, autoscaled=autoscaled) for one, other in pairs]
    if isinstance(written, str) and isinstance(copy, Mapping) and written in copy.values():
        return written  # a dimension by its name, which Druid writes as an object
    return copy


def found(copy: Mapping[str, object], entry: Record, document: Document) -> str:
    """Say what somebody changed in a supervisor of ours; empty for nothing."""
    mark = marker.of_supervisor(copy)
    if mark is None and not entry.adopted:
        return "it was replaced by a specification that is not ours"
    if mark is not None and mark.spec_hash != entry.spec_hash:
        return "it runs another specification of ours"
    if entry.copy_hash and copy_hash(copy, document) != entry.copy_hash:
        return "its specification was edited"
    return ""

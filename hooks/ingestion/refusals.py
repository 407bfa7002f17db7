"""Why did Druid not take a specification, and what is to be done about it?"""

from __future__ import annotations

import re

from hooks.core.decision import Stuck
from hooks.ingestion import hadoop, planning
from hooks.ingestion.facts import Facts
from hooks.ingestion.reasons import (
    STREAM_CHANGE_NOT_ALLOWED,
    SUBMISSION_REJECTED,
    SUPERVISOR_LOST,
)
from hooks.ingestion.record import Record

_STREAM_CHANGE = re.compile(
    r"Update of the (input source stream|[\w ]*type).*not supported|Cannot (update|change) .*type",
    re.IGNORECASE | re.DOTALL,
)


def refusal(entry: Record, facts: Facts) -> Stuck:
    """Explain a refused submission; it is not sent again until something changes."""
    removed = hadoop.refusal(entry.error) if facts.spec.ingestion.type == "index-hadoop" else None
    if removed:
        reason, advice = removed
        return Stuck(reason, f"{advice}. Druid: {entry.error}")
    older = facts.before
    now = _what_runs(older, facts) if older is not None else ""
    if older is not None and (older.state == "Lost" or facts.missing):
        return Stuck(SUPERVISOR_LOST, f"{now}. Druid refused the update: {entry.error}")
    if facts.spec.ingestion.streaming and _STREAM_CHANGE.search(entry.error):
        return Stuck(
            STREAM_CHANGE_NOT_ALLOWED,
            f"Druid keeps the stream and the type of a supervisor{now}. To change them, undo this"
            " edit, suspend the supervisor, reset it in Druid, delete this DruidIngestion and"
            f" create it with the new stream. Druid: {entry.error}",
        )
    return Stuck(
        SUBMISSION_REJECTED,
        f"Druid refused it{now}; it is sent again when spec, the Router's address or the Secret"
        f" changes. Druid: {entry.error}",
    )


def _what_runs(older: Record, facts: Facts) -> str:
    if older.state == "Lost" or facts.missing:
        lost = planning.destroyed(older, facts.history)
        why = ", and could not be put back" if lost else ": somebody terminated it"
        return f"supervisor {older.id} is gone{why}"
    if older.id in facts.put_back:
        return (
            f"; supervisor {older.id} was gone after that, and its earlier specification put back"
        )
    return f"; supervisor {older.id} runs with the specification before it"

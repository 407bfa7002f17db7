"""What every look at Druid needs: whose it is, through which cluster, and what is known already."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hooks.core.conditions import stamp
from hooks.effects.ports.druid import Answer, Cluster
from hooks.ingestion.document import Document
from hooks.ingestion.masking import Masker
from hooks.ingestion.policies import MAX_TEXT
from hooks.ingestion.record import Record
from hooks.ingestion.world import World

_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class View:
    """One look's surroundings.

    Attributes:
        uid: of the DruidIngestion.
        document: its specification, for what must not be shown of it; None when it is unusable.
        fingerprint: what a refusal depends on beside the specification.
    """

    uid: str
    cluster: Cluster
    world: World = field(repr=False)
    document: Document | None = field(default=None, repr=False)
    fingerprint: str = ""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def now(self) -> str:
        """Return the time of this request as a status has it."""
        return stamp(self.world.now)

    def answer(self, entry: Record) -> Answer | None:
        """Return what Druid said to this submission in this request."""
        return self.world.said.get(entry.id) or self.world.said.get(entry.requested_id)

    def shown(self, text: str) -> str:
        """Return Druid's words as a status may have them."""
        return Masker.of(self.document, more=self.secrets).text(text, limit=MAX_TEXT)


def refused(answer: Answer | None) -> bool:
    """Say whether Druid refused the content; an id that it has already is no such reason."""
    if answer is None or answer.accepted or answer.exists:
        return False
    return answer.code not in _SUCCESS


def rejected(entry: Record, answer: Answer, view: View) -> Record:
    """Return the record of a refused submission."""
    return replace(
        entry,
        state="Rejected",
        ended_at=view.now,
        error=view.shown(answer.text),
        rejected_with=view.fingerprint,
    )


def named(entry: Record, answer: Answer | None) -> Record:
    """Return the record under the id that Druid answered, which older ones choose themselves."""
    if answer is None or answer.id is None or answer.id in (entry.id, ""):
        return entry
    return replace(entry, id=answer.id, requested_id=entry.id)

"""What is so in Druid, read live: the only input of a DruidIngestion's decisions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from hooks.core.errors import EffectError
from hooks.effects.ports.druid import Supervisor, Task
from hooks.ingestion import planning
from hooks.ingestion.access import Access
from hooks.ingestion.model import Spec
from hooks.ingestion.past import Past
from hooks.ingestion.policies import Applied, Policy
from hooks.ingestion.reasons import Fault
from hooks.ingestion.record import Record, with_change


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that deciding needs.

    Attributes:
        history: the submissions, as they are now known.
        access: None: nobody had to be asked.
        unread: what Druid did not say; everything after it was not asked.
        task, supervisor: of the current submission, when they were read.
        fresh: history[0] is new in this request, so it is written down first and sent later.
        stranger: why an id cannot be used; empty when it can.
        nothing_to_adopt: the id of an annotation that Druid does not know.
        drift: what somebody else changed.
        missing: the current supervisor is not there.
        refused: Druid refused to undo what somebody else changed, in this request.
        asked: what Druid was asked to end in this request.
        put_back: supervisors that got their earlier specification back in this request.
        policy: the next write of compaction or rules.
    """

    spec: Spec
    past: Past
    now: datetime
    history: tuple[Record, ...] = ()
    applied: Applied = field(default_factory=Applied)
    access: Access | Fault | EffectError | None = None
    unread: EffectError | None = None
    task: Task | None = None
    supervisor: Supervisor | None = None
    fresh: bool = False
    stranger: str = ""
    nothing_to_adopt: str = ""
    drift: str = ""
    missing: bool = False
    refused: bool = False
    asked: frozenset[str] = frozenset()
    put_back: frozenset[str] = frozenset()
    policy: Policy | None = None

    @property
    def current(self) -> Record | None:
        """Return the submission of what is wanted."""
        return planning.current(self.history, self.spec)

    @property
    def obsolete(self) -> tuple[Record, ...]:
        """Return what must end first."""
        return planning.obsolete(self.history, self.spec)

    @property
    def before(self) -> Record | None:
        """Return what ran as the same supervisor before the current submission."""
        entry = self.current
        return planning.before(self.history, entry, self.spec) if entry else None

    @property
    def holds_back(self) -> bool:
        """Say whether a batch must not be submitted now."""
        return self.spec.suspend and not self.spec.ingestion.streaming

    @property
    def retry_in(self) -> float | None:
        """Return the seconds until a failed run is repeated; None when it is not."""
        if self.holds_back:
            return None
        return planning.retry_in(self.history, self.spec, self.now)

    def changed(self, old: Record, new: Record) -> Facts:
        """Return these facts with one record changed."""
        return replace(self, history=with_change(self.history, old, new))


def immutable_changed(facts: Facts) -> str:
    """Return the field that may not change any more and did; empty for none."""
    spec = facts.spec
    for record in facts.history:
        if record.state in ("Rejected", "Superseded"):
            continue
        if record.cluster not in ("", spec.connection.cluster):
            return "spec.druidCluster"
        if record.type not in ("", spec.ingestion.type):
            return "spec.ingestion.type"
    return ""

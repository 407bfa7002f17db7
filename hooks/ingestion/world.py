"""One call's way to the outside, and what was learnt on it that no later look shows.

An answer to a submission is heard once: it is kept here, so that the look after it can tell a
refusal from silence. Nothing here outlives the request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from hooks.core.contract import Objects
from hooks.effects.ports import Services
from hooks.effects.ports.druid import Answer, Cluster
from hooks.ingestion import access
from hooks.ingestion.access import Access
from hooks.ingestion.model import Config, Connection
from hooks.ingestion.policies import Policy
from hooks.ingestion.reasons import Fault


@dataclass(slots=True)
class World:
    """Services of a request, and what Druid said in it.

    Attributes:
        said: answers to submissions, by the id that was submitted.
        unsaid: why a submission got no answer; empty when it did, or none was made.
        unknown: the submission of this request got no answer at all: it may arrive late.
        asked: ids that Druid was asked to end.
        put_back: supervisors of which an earlier specification was posted again.
        policies: answers to writes of compaction and rules; None where there is no answer.
    """

    services: Services
    config: Config
    related: Objects = field(repr=False)
    said: dict[str, Answer] = field(default_factory=dict)
    unsaid: str = ""
    unknown: bool = False
    asked: set[str] = field(default_factory=set)
    put_back: set[str] = field(default_factory=set)
    policies: dict[Policy, Answer | None] = field(default_factory=dict)
    _access: Access | Fault | None = field(default=None, repr=False)

    @property
    def now(self) -> datetime:
        """Return the time of this request."""
        return self.services.now

    def access(self, connection: Connection) -> Access | Fault:
        """Find the way to the cluster; once a call.

        Raises:
            EffectError: Kubernetes did not answer.
        """
        if self._access is None:
            kubernetes = self.services.kubernetes
            self._access = access.find(connection, self.related, kubernetes, self.config)
        return self._access

    def cluster(self, way: Access) -> Cluster:
        """Return the cluster; nothing is asked yet."""
        return self.services.druid.cluster(way.router, way.login)

"""What has been written anywhere: PostgreSQL, OpenBao, the cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from bench.stage import Stage

_WRITES = frozenset({"create", "update", "patch", "delete"})


@dataclass(frozen=True, slots=True)
class Traces:
    """Counters that only a write moves.

    Attributes:
        transactions: the next transaction id; PostgreSQL gives one to each that writes.
        kv_writes: writing requests in OpenBao's audit log.
        resource_version: of the cluster.
    """

    transactions: int
    kv_writes: int
    resource_version: int

    @classmethod
    def of(cls, stage: Stage) -> Traces:
        """Read the counters now."""
        world = stage.world
        rows = world.postgres.sql("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return cls(
            transactions=int(str(rows[0][0])),
            kv_writes=_kv_writes(world.openbao.audit_file),
            resource_version=int(world.cluster.resource_version),
        )

    def since(self, before: Traces) -> int:
        """Return how many writes there were in between."""
        return (
            self.transactions
            - before.transactions
            + self.kv_writes
            - before.kv_writes
            + self.resource_version
            - before.resource_version
        )


def _kv_writes(audit: Path) -> int:
    with audit.open() as lines:
        entries = map(json.loads, lines)
        return sum(
            entry["type"] == "request" and entry["request"]["operation"] in _WRITES
            for entry in entries
        )

"""The contract of batch tasks, compaction and rules on both Druids."""

from __future__ import annotations

from tests.effects.druid.contract_tasks import *  # noqa: F403  all of it

"""The contract of supervisors on a real Druid."""

from __future__ import annotations

from tests.e2e.druid.releases import STREAMING
from tests.effects.druid.contract_supervisors import *  # noqa: F403  all of it

RELEASES = (STREAMING,)

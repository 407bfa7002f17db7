"""The contract of users and permissions on a real Druid."""

from __future__ import annotations

from tests.e2e.druid.releases import SQL
from tests.effects.druid.contract_login import *  # noqa: F403  all of it

RELEASES = (SQL,)

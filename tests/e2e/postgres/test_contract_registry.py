"""The contract of the ownership registry on every version, as both kinds of admin."""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres import test_registry as contract
from tests.effects.postgres.test_registry import *  # noqa: F403  all of it

# Its schema has always the same name, so it runs once on a server.
only(Suits(kinds=CREATEROLE))(contract.test_a_hostile_schema_name_is_a_name)

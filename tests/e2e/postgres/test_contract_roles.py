"""The contract of roles on every version, as both kinds of admin."""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres import test_roles as contract
from tests.effects.postgres.test_roles import *  # noqa: F403  all of it

# Before 16 a membership has no options, and CREATEROLE is enough for every role.
for test in (
    contract.test_a_membership_without_inherit_is_seen_and_repaired,
    contract.test_a_strangers_role_cannot_be_administered,
):
    only(Suits(since=16, kinds=CREATEROLE))(test)

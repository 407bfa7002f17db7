"""The contract of databases and extensions on every version, as both kinds of admin."""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres import test_databases as contract
from tests.effects.postgres.test_databases import *  # noqa: F403  all of it

# What holds a CREATEROLE admin up does not hold a superuser up.
only(Suits(kinds=CREATEROLE))(contract.test_a_strangers_database_is_taken_and_unchanged)
only(Suits(kinds=CREATEROLE))(contract.test_a_superusers_session_keeps_it)

# Before 16 a membership has no options.
only(Suits(since=16, kinds=CREATEROLE))(contract.test_a_revoke_that_does_nothing_is_an_error)

# Before 15 a missing extension has another SQLSTATE, and a database no collation version.
only(Suits(since=15))(contract.test_an_untrusted_or_unknown_extension_is_named)
only(Suits(since=15))(contract.test_a_cluster_whose_template_has_another_collation_says_what_to_do)

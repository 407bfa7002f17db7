"""What a server does with work that was cut off, on every version; who asks does not matter.

Waiting for a silent peer is libpq's and ours, and the same for all servers.
"""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres.test_deadline import (
    test_a_database_that_was_cut_off_is_finished_under_the_lock,
    test_a_transaction_that_runs_out_of_time_leaves_nothing,
    test_no_limit_of_the_server_cuts_a_database_off,
)

__all__ = [
    "test_a_database_that_was_cut_off_is_finished_under_the_lock",
    "test_a_transaction_that_runs_out_of_time_leaves_nothing",
    "test_no_limit_of_the_server_cuts_a_database_off",
]

SUITS = Suits(kinds=CREATEROLE)

# Before 17 there is no transaction_timeout.
only(Suits(since=17, kinds=CREATEROLE))(test_no_limit_of_the_server_cuts_a_database_off)

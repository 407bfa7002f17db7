"""The contract of logging in on every version; who asks does not matter."""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits, only
from tests.effects.postgres import test_connecting as contract
from tests.effects.postgres.test_connecting import *  # noqa: F403  all of it

SUITS = Suits(kinds=CREATEROLE)

# It names the release of the wheel.
only(Suits(since=17, before=18, kinds=CREATEROLE))(
    contract.test_the_server_tells_about_itself_and_the_admin
)

# Before 14 pg_terminate_backend cannot wait.
only(Suits(since=14, kinds=CREATEROLE))(contract.test_a_session_that_the_server_ends_is_unavailable)

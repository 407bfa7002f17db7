"""The contract of certificates on every version; who asks does not matter."""

from __future__ import annotations

from tests.e2e.postgres.suits import CREATEROLE, Suits
from tests.effects.postgres.test_certificate import *  # noqa: F403  all of it, and its fixtures

SUITS = Suits(kinds=CREATEROLE)

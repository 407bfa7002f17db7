"""A pooler is noticed: behind it our locks and settings would be those of somebody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hooks.core.errors import Misconfigured
from hooks.sandbox.certificates import Authority
from tests.e2e.postgres.conftest import WorldOfVersion
from tests.e2e.postgres.pgbouncer import PgBouncer
from tests.e2e.postgres.suits import CREATEROLE, Suits
from tests.effects.postgres.conftest import ended

SUITS = Suits(since=17, before=18, kinds=CREATEROLE)

POOLER = "a connection pooler seems to be in between; the controller needs a direct connection"


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize(
    ("ignored", "noticed"),
    [
        pytest.param(
            "extra_float_digits",
            Misconfigured("PostgreSQL", f"cannot log in: {POOLER}", code="08P01"),
            id="strict",
        ),
        pytest.param("options", Misconfigured("PostgreSQL", POOLER), id="lenient"),
    ],
)
def test_a_pooler_is_noticed(
    world: WorldOfVersion, authority: Authority, mode: str, ignored: str, noticed: Misconfigured
) -> None:
    with PgBouncer(world.server, authority, mode, ignored) as pooler:
        endpoint = replace(world.endpoint, port=pooler.port)

        def administer() -> None:
            with world.bind().administer(endpoint, world.login):
                pass

        assert ended(administer) == noticed
        assert ended(lambda: world.bind().log_in(endpoint, world.login)) == noticed
        names = world.bind().certificate(endpoint)
    assert (names.covers_host, names.covers_hostaddr) == (True, True)

"""The double keeps the contract of sql."""

from tests.effects.druid.contract_sql import *  # noqa: F403  all of it

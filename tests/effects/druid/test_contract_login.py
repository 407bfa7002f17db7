"""The double keeps the contract of login."""

from tests.effects.druid.contract_login import *  # noqa: F403  all of it

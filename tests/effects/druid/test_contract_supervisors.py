"""The double keeps the contract of supervisors."""

from tests.effects.druid.contract_supervisors import *  # noqa: F403  all of it

"""The double keeps the contract of tasks."""

from tests.effects.druid.contract_tasks import *  # noqa: F403  all of it

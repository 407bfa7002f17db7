"""Suites that need more than wheels. Every test below this directory has the mark `e2e`."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.e2e)

"""A Druid and a namespace for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ingestion.world import IngestionWorld


@pytest.fixture
def world() -> Iterator[IngestionWorld]:
    with IngestionWorld() as made:
        yield made

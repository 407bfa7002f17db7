"""The adapter for PostgreSQL servers, 13 and newer."""

from __future__ import annotations

from hooks.effects.postgres.migrations import MIN_CODE, SCHEMA_VERSION
from hooks.effects.postgres.servers import PostgresServers

__all__ = ["MIN_CODE", "SCHEMA_VERSION", "PostgresServers"]

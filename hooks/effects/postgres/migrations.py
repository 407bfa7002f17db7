"""The tables of the ownership registry, as a list of steps that only ever add.

Several releases of this code run at once during an upgrade, so the tables that the newest has
made must serve the one before. `meta.min_code` is the lowest version that code must know; it
rises only in the rare release after nobody runs the old code any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from hooks.effects.postgres.connection import Connection


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; `min_code` is what code must know once it is done."""

    statements: str
    min_code: int


MIGRATIONS: Sequence[Migration] = (
    Migration(
        """
        CREATE TABLE {schema}.meta (
            singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
            schema_version integer NOT NULL,
            min_code integer NOT NULL,
            installation_id uuid NOT NULL DEFAULT gen_random_uuid(),
            swept_at timestamptz
        );
        CREATE TABLE {schema}.tenant (
            uid uuid PRIMARY KEY,
            instance_uid uuid NOT NULL,
            instance_name text NOT NULL,
            namespace text NOT NULL,
            name text NOT NULL,
            database_name text NOT NULL UNIQUE,
            role_name text NOT NULL UNIQUE,
            kv_path text NOT NULL,
            secret_name text NOT NULL,
            state text NOT NULL
                CHECK (state IN ('planned', 'managed', 'deleting', 'unmanaged')),
            database_oid oid,
            role_oid oid,
            extensions text[] NOT NULL DEFAULT '{{}}',
            approvals text[] NOT NULL DEFAULT '{{}}',
            created_at timestamptz NOT NULL DEFAULT now(),
            updated_at timestamptz NOT NULL DEFAULT now(),
            unmanaged_at timestamptz
        );
        CREATE UNLOGGED TABLE {schema}.handoff (verifier text NOT NULL);
        CREATE INDEX tenant_instance_uid ON {schema}.tenant (instance_uid);
        REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;
        REVOKE ALL ON {schema}.meta, {schema}.tenant, {schema}.handoff FROM PUBLIC;
        INSERT INTO {schema}.meta (schema_version, min_code) VALUES (1, 1);
        """,
        min_code=1,
    ),
)

SCHEMA_VERSION = len(MIGRATIONS)
"""Is REGISTRY_VERSION of the ports, by which an Instance judges; a test holds them together."""
MIN_CODE = MIGRATIONS[-1].min_code


def migrate(
    connection: Connection, schema: str, migrations: Sequence[Migration] = MIGRATIONS
) -> None:
    """Apply what is missing, each step in a transaction of its own.

    Whoever comes second waits for the lock and then finds nothing to do. Tables that are newer
    than the list stay as they are.
    """
    while _step(connection, schema, migrations):
        pass


def exists(connection: Connection, schema: str) -> bool:
    """Whether the registry's tables are there."""
    query = """
        SELECT EXISTS (
            SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = %s AND c.relname = 'meta' AND c.relkind = 'r')
    """
    return connection.rows(query, [schema]) == [(True,)]


def _step(connection: Connection, schema: str, migrations: Sequence[Migration]) -> bool:
    """Apply one step; False when there was none."""
    named = {"schema": sql.Identifier(schema)}
    with connection.atomic():
        connection.rows(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"migrate:{schema}"]
        )
        version = 0
        if exists(connection, schema):
            query = sql.SQL("SELECT schema_version FROM {schema}.meta")
            version = connection.rows(query.format(**named))[0][0]
        if version >= len(migrations):
            return False
        if version == 0:
            _create_schema(connection, schema)
        connection.rows(sql.SQL(migrations[version].statements).format(**named))
        record = sql.SQL(
            "UPDATE {schema}.meta SET schema_version = %s, min_code = greatest(min_code, %s)"
        )
        connection.rows(record.format(**named), [version + 1, migrations[version].min_code])
    return True


def _create_schema(connection: Connection, schema: str) -> None:
    """Create the schema, unless an administrator did.

    IF NOT EXISTS would ask for CREATE on the database all the same.
    """
    if not connection.rows("SELECT oid FROM pg_namespace WHERE nspname = %s", [schema]):
        connection.rows(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))

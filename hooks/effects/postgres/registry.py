"""The ownership registry's rows: who was meant to have which database and role.

Every write names the state that it expects in its WHERE clause, and raises Taken when it is not
found: whoever lost a race reads again.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from hooks.core.errors import Taken
from hooks.effects.ports import RegistryInfo, Row, RowState
from hooks.effects.postgres import migrations
from hooks.effects.postgres.connection import Connection
from hooks.effects.postgres.errors import SYSTEM, translating

_ROWS = """
    SELECT uid::text, instance_uid::text, instance_name, namespace, name, database_name,
        role_name, kv_path, secret_name, state, database_oid, role_oid, extensions, approvals
    FROM {schema}.tenant WHERE
"""

# Rights are checked before rows are looked for, so nothing is written and nothing locked.
_PROBE = """
    WITH a AS (INSERT INTO {schema}.tenant (uid) SELECT uid FROM {schema}.tenant WHERE false),
         b AS (UPDATE {schema}.tenant SET state = state WHERE false),
         c AS (DELETE FROM {schema}.tenant WHERE false),
         d AS (UPDATE {schema}.meta SET swept_at = swept_at WHERE false),
         e AS (INSERT INTO {schema}.handoff SELECT verifier FROM {schema}.handoff WHERE false),
         f AS (DELETE FROM {schema}.handoff WHERE false)
    SELECT FROM {schema}.tenant WHERE false
"""


class RegistryTables:
    """The tables in one schema, over one connection."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    @translating("cannot read the ownership registry")
    def registry(self) -> RegistryInfo | None:
        """Read the registry's version and probe it; None when there is none."""
        if not migrations.exists(self._connection, self._schema):
            return None
        rows = self._read(
            "SELECT schema_version, min_code, extract(epoch FROM now() - swept_at)::float8"
            " FROM {schema}.meta"
        )
        version, min_code, sweep_age = rows[0]
        return RegistryInfo(
            schema_version=version,
            min_code=min_code,
            sweep_age=sweep_age,
            writable=self._writable(),
        )

    @translating("cannot prepare the ownership registry")
    def migrate(self) -> None:
        """Bring the registry to this code's version, under an advisory lock."""
        migrations.migrate(self._connection, self._schema)

    @translating("cannot read the ownership registry")
    def row(self, uid: str) -> Row | None:
        """Read one tenant's row."""
        rows = self._rows("uid = %s", [uid])
        return rows[0] if rows else None

    @translating("cannot read the ownership registry")
    def claims(self, *, database: str, role: str, secret: tuple[str, str] = ("", "")) -> list[Row]:
        """Read the rows that name this database, role or Secret, whoever's they are."""
        return self._rows(
            "database_name = %s OR role_name = %s"
            " OR namespace = %s AND secret_name = %s AND state <> 'unmanaged'",
            [database, role, *secret],
        )

    @translating("cannot read the ownership registry")
    def candidates(self, instance_uid: str, *, older_than: float) -> list[Row]:
        """Read rows of an Instance, planned or managed, unchanged for so many seconds."""
        return self._rows(
            "instance_uid = %s AND state IN ('planned', 'managed')"
            " AND updated_at < now() - make_interval(secs => %s)",
            [instance_uid, older_than],
        )

    @translating("cannot record the tenant in the ownership registry")
    def insert_row(self, row: Row) -> None:
        """Record the intent. Raises Taken when the UID, database or role has a row."""
        self._write(
            """
            INSERT INTO {schema}.tenant (
                uid, instance_uid, instance_name, namespace, name, database_name, role_name,
                kv_path, secret_name, state, database_oid, role_oid, extensions)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::int8::oid, %s::int8::oid, %s)
            """,
            [
                row.uid,
                row.instance_uid,
                *_names(row),
                row.state,
                row.database_oid,
                row.role_oid,
                sorted(row.extensions),
            ],
        )

    @translating("cannot change the tenant's names in the ownership registry")
    def rewrite_row(self, row: Row) -> None:
        """Change the names of a row that is still planned and has no OID."""
        self._write(
            """
            UPDATE {schema}.tenant SET
                instance_name = %s, namespace = %s, name = %s, database_name = %s,
                role_name = %s, kv_path = %s, secret_name = %s, updated_at = now()
            WHERE uid = %s AND instance_uid = %s AND state = 'planned'
                AND database_oid IS NULL AND role_oid IS NULL
            """,
            [*_names(row), row.uid, row.instance_uid],
        )

    @translating("cannot change the tenant's state in the ownership registry")
    def mark(self, uid: str, *, state: RowState, was: frozenset[RowState]) -> None:
        """Move a row to a state. Raises Taken when it is in none of `was`."""
        self._write(
            """
            UPDATE {schema}.tenant SET
                state = %s, updated_at = now(),
                unmanaged_at = CASE WHEN %s = 'unmanaged' THEN coalesce(unmanaged_at, now()) END
            WHERE uid = %s AND state = ANY(%s)
            """,
            [state, state, uid, sorted(was)],
        )

    @translating("cannot remove the tenant from the ownership registry")
    def delete_row(self, uid: str) -> None:
        """Forget a row in state deleting; no row is success."""
        statement = "DELETE FROM {schema}.tenant WHERE uid = %s AND state = 'deleting'"
        if not self._change(statement, [uid]) and self._rows("uid = %s", [uid]):
            raise Taken(SYSTEM, "the tenant's row in the registry is not being deleted")

    @translating("cannot record the extensions in the ownership registry")
    def record_extensions(self, uid: str, extensions: frozenset[str]) -> None:
        """Record the extensions that were seen, as the append-only baseline."""
        self._write(
            """
            UPDATE {schema}.tenant SET
                extensions = ARRAY(SELECT DISTINCT unnest(extensions || %s::text[]) ORDER BY 1),
                updated_at = now()
            WHERE uid = %s
            """,
            [sorted(extensions), uid],
        )

    @translating("cannot record the approval in the ownership registry")
    def record_approval(self, uid: str, approval: str) -> None:
        """Record that what was approved is done, so that it is done once."""
        self._write(
            """
            UPDATE {schema}.tenant SET approvals = approvals || %s::text, updated_at = now()
            WHERE uid = %s AND NOT %s = ANY(approvals)
            """,
            [approval, uid, approval],
        )

    @translating("cannot hand the database over in the ownership registry")
    def hand_over(self, old: str, new: str) -> None:
        """Give the unmanaged row of a Tenant that is gone to one of the same name."""
        self._write(
            """
            UPDATE {schema}.tenant SET
                uid = %s, state = 'managed', unmanaged_at = NULL, updated_at = now(),
                approvals = approvals || %s::text
            WHERE uid = %s AND state = 'unmanaged'
            """,
            [new, f"hand-over:{old}", old],
        )

    @translating("cannot record the new identities in the ownership registry")
    def rebind(self, row: Row) -> None:
        """Record another Instance UID and other OIDs, as an administrator has proved them."""
        self._write(
            """
            UPDATE {schema}.tenant SET
                instance_uid = %s, database_oid = %s::int8::oid, role_oid = %s::int8::oid,
                updated_at = now()
            WHERE uid = %s AND state = 'managed'
            """,
            [row.instance_uid, row.database_oid, row.role_oid, row.uid],
        )

    @translating("cannot record the sweep in the ownership registry")
    def record_sweep(self) -> None:
        """Record that a sweep ended now."""
        self._change("UPDATE {schema}.meta SET swept_at = now()", [])

    def _writable(self) -> bool:
        try:
            self._read(_PROBE)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
            return False
        return True

    def _rows(self, condition: str, values: Sequence[object]) -> list[Row]:
        rows = self._read(_ROWS + condition, values)
        return [Row(*columns[:12], *map(frozenset, columns[12:])) for columns in rows]

    def _read(self, query: str, values: Sequence[object] = ()) -> list[TupleRow]:
        return self._connection.rows(self._compose(query), values)

    def _change(self, statement: str, values: Sequence[object]) -> int:
        return self._connection.changed(self._compose(statement), values)

    def _write(self, statement: str, values: Sequence[object]) -> None:
        """Change exactly one row."""
        if not self._change(statement, values):
            raise Taken(SYSTEM, "the tenant's row in the registry is gone or in another state")

    def _compose(self, statement: str) -> sql.Composed:
        return sql.SQL(statement).format(schema=sql.Identifier(self._schema))


def _names(row: Row) -> list[str]:
    return [
        row.instance_name,
        row.namespace,
        row.name,
        row.database,
        row.role,
        row.kv_path,
        row.secret_name,
    ]

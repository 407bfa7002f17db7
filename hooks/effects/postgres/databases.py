"""Databases and extensions: read, made, closed to strangers and dropped."""

from __future__ import annotations

from psycopg import sql

from hooks.core.errors import Denied, Taken
from hooks.effects.ports import Available, Database
from hooks.effects.postgres.connection import Connection
from hooks.effects.postgres.errors import SYSTEM, of_drop, translating
from hooks.effects.postgres.roles import Roles

# The server says so and succeeds, having done nothing.
_NO_EFFECT = {"01006", "01007"}


class Databases(Roles):
    """The server's databases, and their OIDs in the registry."""

    def __init__(self, connection: Connection, schema: str, keepers: frozenset[str]) -> None:
        super().__init__(connection, schema)
        self._keepers = sorted(keepers)

    @translating("cannot read the database")
    def database(self, name: str) -> Database | None:
        """Read a database."""
        rows = self._connection.rows(
            """
            SELECT d.oid, d.datdba, d.datallowconn, d.datconnlimit, d.datistemplate,
                ARRAY(SELECT a.privilege_type
                    FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
                    WHERE a.grantee = 0),
                ARRAY(SELECT r.rolname::text FROM pg_roles r
                    WHERE r.rolname = ANY(%s)
                    AND NOT has_database_privilege(r.oid, d.oid, 'CONNECT'))
            FROM pg_database d WHERE d.datname = %s
            """,
            [self._keepers, name],
        )
        if not rows:
            return None
        return Database(*(*rows[0][:5], *map(frozenset, rows[0][5:])))

    @translating("cannot read the names of the recorded OIDs")
    def names_of(self, *, role_oid: int, database_oid: int) -> tuple[str | None, str | None]:
        """Read which role and database have these OIDs; None for each that is gone."""
        rows = self._connection.rows(
            """
            SELECT (SELECT rolname::text FROM pg_roles WHERE oid = %s::int8::oid),
                (SELECT datname::text FROM pg_database WHERE oid = %s::int8::oid)
            """,
            [role_oid, database_oid],
        )
        role, database = rows[0]
        return role, database

    @translating("cannot read the extensions that the server has")
    def available(self, extensions: frozenset[str]) -> list[Available]:
        """Read which of these extensions the server can install, and which are trusted."""
        rows = self._connection.rows(
            """
            SELECT e.name::text, v.trusted
            FROM pg_available_extensions e
            JOIN pg_available_extension_versions v
                ON v.name = e.name AND v.version = e.default_version
            WHERE e.name = ANY(%s) ORDER BY e.name
            """,
            [sorted(extensions)],
        )
        return [Available(*columns) for columns in rows]

    @translating("cannot create the database")
    def create_database(self, name: str, *, owner: str) -> None:
        """Run CREATE DATABASE from template0, which nobody uses and nobody has added to."""
        self._connection.run_to_the_end(
            sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0").format(
                sql.Identifier(name), sql.Identifier(owner)
            )
        )

    @translating("cannot take the rights on the database away from PUBLIC")
    def secure_database(self, uid: str, name: str) -> None:
        """Take PUBLIC's rights away and record the database's OID in the row."""

        def secure() -> None:
            self._lock("database", name)
            self._connection.warnings.clear()
            self._on_database("REVOKE ALL ON DATABASE {database} FROM PUBLIC", name)
            for keeper in self._keepers:
                if self._role_oid(keeper) is not None:
                    self._on_database(
                        "GRANT CONNECT ON DATABASE {database} TO {role}",
                        name,
                        role=sql.Identifier(keeper),
                    )
            if _NO_EFFECT & set(self._connection.warnings):
                raise Denied(SYSTEM, "the admin role does not inherit the rights of the owner")
            self._on_database(
                "COMMENT ON DATABASE {database} IS {comment}",
                name,
                comment=sql.Literal("made by database-hooks"),
            )
            self._write(
                """
                UPDATE {schema}.tenant t SET
                    updated_at = CASE WHEN database_oid IS NULL THEN now() ELSE updated_at END,
                    database_oid = d.oid
                FROM pg_database d
                WHERE t.uid = %s AND t.database_name = %s AND d.datname = t.database_name
                    AND d.datdba = t.role_oid AND coalesce(t.database_oid, d.oid) = d.oid
                """,
                [uid, name],
            )

        self._retry(secure)

    @translating("cannot drop the database", of_drop)
    def drop_database(self, name: str, *, oid: int) -> None:
        """Drop the database, ending its sessions, if it still has this OID; gone is success."""
        if self._is_template(name, oid):
            self._on_database("ALTER DATABASE {database} IS_TEMPLATE false", name)
        # DROP DATABASE goes by name; the window after this look cannot be closed.
        if self._is_template(name, oid) is not None:
            self._connection.run_to_the_end(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )

    def _is_template(self, name: str, oid: int) -> bool | None:
        """Look whether it is the recorded one, and a template; None when it is gone."""
        rows = self._connection.rows(
            "SELECT oid, datistemplate FROM pg_database WHERE datname = %s", [name]
        )
        if not rows:
            return None
        found, is_template = rows[0]
        if found != oid:
            raise Taken(SYSTEM, "a database of this name exists that is not the recorded one")
        return bool(is_template)

    def _on_database(self, statement: str, name: str, **parts: sql.Composable) -> None:
        composed = sql.SQL(statement).format(database=sql.Identifier(name), **parts)
        self._connection.rows(composed)

"""The admin session: registry, catalog and lock over one connection."""

from __future__ import annotations

from hooks.effects.ports import ServerInfo
from hooks.effects.postgres.databases import Databases
from hooks.effects.postgres.errors import translating


class AdminSession(Databases):
    """One administrative session in endpoint.database, kept for the whole request."""

    @translating("cannot take the tenant's lock")
    def try_lock(self, key: str) -> bool:
        """Take the session advisory lock of this UID; False when another session has it."""
        return self._connection.rows(
            "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [key]
        ) == [(True,)]

    @translating("cannot look at the server")
    def server(self) -> ServerInfo:
        """Read what the server says of itself and of us."""
        rows = self._connection.rows(
            """
            SELECT split_part(current_setting('server_version'), ' ', 1),
                current_setting('server_version_num')::int,
                pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
                r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolinherit,
                coalesce(
                    (SELECT pg_has_role(n.nspowner, 'USAGE')
                        OR has_schema_privilege(n.oid, 'USAGE')
                        AND has_schema_privilege(n.oid, 'CREATE')
                    FROM pg_namespace n WHERE n.nspname = %s),
                    has_database_privilege(current_database(), 'CREATE'))
            FROM pg_roles r WHERE r.rolname = current_user
            """,
            [self._schema],
        )
        return ServerInfo(*rows[0])

"""The admin session: registry, catalog and lock over one connection."""

from __future__ import annotations

from hooks.core.errors import Blocked
from hooks.effects.ports import ServerInfo
from hooks.effects.postgres.databases import Databases
from hooks.effects.postgres.errors import SYSTEM, translating

# Whoever may connect to endpoint.database can take any advisory lock there. A lock that a
# prepared transaction holds has no session; one whose session is gone was freed while we looked,
# since the two views are not read at one moment.
_STRANGER = """
    SELECT true FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND (l.classid::bigint << 32) | l.objid::bigint = hashtextextended(%s, 0)
        AND (l.pid IS NULL OR a.pid IS NOT NULL)
        AND a.usename IS DISTINCT FROM session_user
        AND NOT coalesce((SELECT rolsuper FROM pg_roles WHERE oid = a.usesysid), false)
"""


class AdminSession(Databases):
    """One administrative session in endpoint.database, kept for the whole request."""

    @translating("cannot take the tenant's lock")
    def try_lock(self, key: str) -> bool:
        """Take the session advisory lock of this UID; False when another session has it."""
        taken = self._connection.rows("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [key])
        if taken == [(True,)]:
            return True
        if self._connection.rows(_STRANGER, [key]):
            raise Blocked(
                SYSTEM,
                "a session of another role holds this Tenant's lock: end it, and let only"
                " administrators connect to the Instance's database",
            )
        return False

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
                    has_database_privilege(current_database(), 'CREATE')),
                coalesce((SELECT nspname::text FROM pg_namespace WHERE nspname = %s), '')
            FROM pg_roles r WHERE r.rolname = current_user
            """,
            [self._schema, self._schema],
        )
        return ServerInfo(*rows[0])

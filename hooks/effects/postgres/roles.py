"""Login roles: read, made, changed and dropped.

PostgreSQL answers two concurrent changes of one role with an internal error, so ours go under one
advisory lock for each role; a change by somebody else is met by trying again.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql

from hooks.core.errors import Taken
from hooks.effects.ports import Login, Role
from hooks.effects.postgres.errors import SYSTEM, translating
from hooks.effects.postgres.registry import RegistryTables

_ATTEMPTS = 5
_V16 = 160000


class Roles(RegistryTables):
    """The server's roles, and their OIDs in the registry."""

    @translating("cannot read the role")
    def role(self, name: str) -> Role | None:
        """Read a role."""
        # Membership with SET exists since 16; before, every member may SET ROLE. pg_has_role reads
        # all memberships of the admin, one for each tenant, so our own grant is looked for first.
        since16 = self._since(_V16)
        direct = "m.inherit_option AND m.set_option" if since16 else "a.rolinherit"
        rows = self._connection.rows(
            sql.SQL(
                """
                SELECT r.oid, r.rolcanlogin, coalesce(r.rolvaliduntil <= now(), false),
                    r.rolconnlimit, r.rolsuper OR r.rolcreatedb OR r.rolcreaterole
                        OR r.rolreplication OR r.rolbypassrls,
                    CASE WHEN EXISTS (
                        SELECT FROM pg_auth_members m JOIN pg_roles a ON a.oid = m.member
                        WHERE m.roleid = r.oid AND a.rolname = current_user AND {direct})
                    THEN true
                    ELSE pg_has_role(r.oid, 'USAGE') AND pg_has_role(r.oid, %s) END
                FROM pg_roles r WHERE r.rolname = %s
                """
            ).format(direct=sql.SQL(direct)),
            ["SET" if since16 else "MEMBER", name],
        )
        return Role(*rows[0]) if rows else None

    @translating("cannot create the role")
    def create_role(self, uid: str, login: Login) -> None:
        """Create the login role and record its OID in the row, in one transaction."""
        verifier = self._verifier(login)

        def create() -> None:
            self._lock("role", login.username)
            self._with_verifier(
                "CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
                " PASSWORD %L",
                login.username,
                verifier,
            )
            self._grant_to_admin(login.username)
            # A hint for people; proof of ownership is the registry's row alone.
            self._alter(
                "COMMENT ON ROLE {role} IS {comment}",
                login.username,
                comment=sql.Literal("made by database-hooks"),
            )
            self._write(
                """
                UPDATE {schema}.tenant SET
                    state = 'managed', updated_at = now(),
                    role_oid = (SELECT oid FROM pg_roles WHERE rolname = role_name)
                WHERE uid = %s AND role_name = %s AND role_oid IS NULL
                    AND state IN ('planned', 'managed')
                """,
                [uid, login.username],
            )

        self._retry(create)

    @translating("cannot give the admin role its rights on the tenant's role")
    def administer_role(self, name: str) -> None:
        """Make the admin a member of the role with INHERIT and SET."""

        def grant() -> None:
            self._lock("role", name)
            self._grant_to_admin(name)

        self._retry(grant)

    @translating("cannot set the role's password")
    def set_password(self, login: Login) -> None:
        """Give the role this password, as a SCRAM verifier."""
        verifier = self._verifier(login)

        def alter() -> None:
            self._lock("role", login.username)
            self._with_verifier("ALTER ROLE %I PASSWORD %L", login.username, verifier)

        self._retry(alter)

    @translating("cannot forbid the role to log in")
    def forbid_login(self, name: str) -> None:
        """Set NOLOGIN; no role is success."""

        def alter() -> None:
            self._lock("role", name)
            if self._role_oid(name) is not None:
                self._alter("ALTER ROLE {role} NOLOGIN", name)

        self._retry(alter)

    @translating("cannot drop the role")
    def drop_role(self, name: str, *, oid: int) -> None:
        """Drop the role if it still has this OID; gone is success."""

        def drop() -> None:
            self._lock("role", name)
            found = self._role_oid(name)
            if found is None:
                return
            if found != oid:
                raise Taken(SYSTEM, "a role of this name exists that is not the recorded one")
            self._alter("DROP ROLE IF EXISTS {role}", name)

        self._retry(drop)

    def _retry(self, change: Callable[[], None]) -> None:
        """Run the change in a transaction, again when somebody else changed the same row."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._in_transaction(change)
            except psycopg.errors.InternalError_:
                continue
        return self._in_transaction(change)

    def _in_transaction(self, change: Callable[[], None]) -> None:
        with self._connection.atomic():
            change()

    def _lock(self, kind: str, name: str) -> None:
        """Wait for the lock of this name until the transaction ends."""
        self._connection.rows(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{kind}:{name}"]
        )

    def _role_oid(self, name: str) -> int | None:
        rows = self._connection.rows("SELECT oid FROM pg_roles WHERE rolname = %s", [name])
        return rows[0][0] if rows else None

    def _grant_to_admin(self, name: str) -> None:
        # Since 16 a plain GRANT leaves INHERIT FALSE as it is.
        options = " WITH INHERIT TRUE, SET TRUE" if self._since(_V16) else ""
        self._alter(f"GRANT {{role}} TO CURRENT_USER{options}", name)

    def _alter(self, statement: str, role: str, **parts: sql.Composable) -> None:
        composed = sql.SQL(statement).format(role=sql.Identifier(role), **parts)
        self._connection.rows(composed)

    def _verifier(self, login: Login) -> str:
        """Let libpq make the verifier, so that the password never reaches the server."""
        verifier = self._connection.pgconn.encrypt_password(
            login.password.encode(), login.username.encode(), b"scram-sha-256"
        )
        return verifier.decode()

    def _with_verifier(self, statement: str, role: str, verifier: str) -> None:
        """Run a statement with a verifier that no log of the server shows.

        Statements and their parameters are logged where log_statement says so; what COPY brings
        and what a block executes is not. An error is raised anew, without the inner statement.
        """
        handoff = sql.Identifier(self._schema, "handoff")
        self._connection.send(handoff, verifier)
        block = sql.SQL(
            "BEGIN EXECUTE format({statement}, {role}, (SELECT verifier FROM {handoff}));"
            " EXCEPTION WHEN OTHERS THEN"
            " RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = 'the statement failed'; END"
        ).format(statement=sql.Literal(statement), role=sql.Literal(role), handoff=handoff)
        body = sql.Literal(block.as_string(self._connection))
        self._connection.rows(sql.SQL("DO {}").format(body))
        self._connection.rows(sql.SQL("DELETE FROM {}").format(handoff))

    def _since(self, version: int) -> bool:
        return self._connection.pgconn.server_version >= version

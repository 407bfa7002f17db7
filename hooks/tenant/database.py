"""Is the database the one we created, closed to others, with its extensions?"""

from __future__ import annotations

from hooks.core.decision import Act, Met, Stuck, Verdict, Wait
from hooks.core.errors import EffectError
from hooks.effects.ports import Database, Row
from hooks.tenant.actions import (
    CreateDatabase,
    CreateExtension,
    Provision,
    RecordExtensions,
    SecureDatabase,
)
from hooks.tenant.facts import Facts
from hooks.tenant.reasons import CONFLICT, PROVISIONING_FAILED, RECONCILING


def ready(facts: Facts) -> Verdict[Provision]:
    """The database is the one we created, only its owner gets in, and extensions are there."""
    row, database = facts.the_row, facts.the_server.database
    if database is None:
        if row.database_oid is not None:
            return Stuck(
                CONFLICT,
                f"database {row.database!r} was dropped by somebody: it is not created again"
                " empty; restore it, or delete this Tenant",
            )
        return Act(
            CreateDatabase(row.database, row.role),
            PROVISIONING_FAILED,
            f"creating database {row.database!r}",
        )
    foreign = database.owner_oid != row.role_oid or (
        row.database_oid is not None and database.oid != row.database_oid
    )
    if foreign:
        return Stuck(
            CONFLICT,
            f"database {row.database!r} is not the one that was created for this Tenant, or has"
            " another owner",
        )
    return _database_state(database, row) or _inside(facts, row)


def _database_state(database: Database, row: Row) -> Verdict[Provision] | None:
    name = row.database
    if database.connection_limit == -2:  # noqa: PLR2004  PostgreSQL's mark of an interrupted DROP
        return Stuck(CONFLICT, f"database {name!r} is invalid after an interrupted DROP DATABASE")
    if row.database_oid is None or database.public_privileges or database.keepers_missing:
        return Act(
            SecureDatabase(row.uid, name),
            PROVISIONING_FAILED,
            f"PUBLIC still has rights on database {name!r}: the REVOKE had no effect",
        )
    return _database_fault(database, name)


def _database_fault(database: Database, name: str) -> Stuck | None:
    faults = (
        (not database.allows_connections, "ALLOW_CONNECTIONS false", "undo"),
        (database.connection_limit == 0, "CONNECTION LIMIT 0", "raise"),
        (database.is_template, "IS_TEMPLATE true, so others may copy it", "undo"),
    )
    for found, what, remedy in faults:
        if found:
            return Stuck(
                PROVISIONING_FAILED,
                f"database {name!r} has {what}: {remedy} it with ALTER DATABASE if unwanted",
            )
    return None


def _inside(facts: Facts, row: Row) -> Verdict[Provision]:
    login, wanted = facts.login, facts.spec.extensions
    if isinstance(login, EffectError):
        return Wait.on(login, reason=PROVISIONING_FAILED, subject=f"database {row.database!r}")
    if login is None:
        return Wait(RECONCILING, f"database {row.database!r} was not looked into")
    missing = sorted(wanted - login.extensions)
    if missing:
        trusted = _trusted(facts, missing[0])
        return Act(
            CreateExtension(row.database, missing[0], trusted),
            PROVISIONING_FAILED,
            f"installing extension {missing[0]}",
        )
    if wanted - row.extensions:
        return Act(
            RecordExtensions(row.uid, row.extensions | wanted),
            PROVISIONING_FAILED,
            "recording the installed extensions",
        )
    return Met()


def _trusted(facts: Facts, name: str) -> bool:
    offered = () if isinstance(facts.available, EffectError) else facts.available
    return any(extension.name == name and extension.trusted for extension in offered)

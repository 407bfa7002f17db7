"""The ownership registry: its tables, and rows that are only changed from an expected state."""

from __future__ import annotations

import secrets
import uuid
from contextlib import ExitStack
from dataclasses import replace

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, EffectError, Taken
from hooks.effects.ports import REGISTRY_VERSION, Admin, Login, RegistryInfo, Row, RowState
from hooks.effects.postgres import MIN_CODE, SCHEMA_VERSION
from hooks.effects.postgres.connection import Connection
from hooks.effects.postgres.migrations import MIGRATIONS, Migration, migrate
from tests.effects.postgres.conftest import World, ended, known, planned, race

FRESH = RegistryInfo(
    schema_version=SCHEMA_VERSION, min_code=MIN_CODE, sweep_age=None, writable=True
)

LOST = Taken("PostgreSQL", "the tenant's row in the registry is gone or in another state")


def other() -> str:
    return f"other_{secrets.token_hex(4)}"


def test_an_instance_judges_by_the_version_that_the_migrations_make() -> None:
    assert REGISTRY_VERSION == SCHEMA_VERSION
    assert FRESH.usable


def test_there_is_no_registry_until_it_is_made(world: World, sessions: ExitStack) -> None:
    admin = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    assert admin.registry() is None
    admin.migrate()
    assert admin.registry() == FRESH
    admin.migrate()
    assert admin.registry() == FRESH


def test_a_schema_without_tables_is_no_registry_and_is_filled(
    world: World, sessions: ExitStack
) -> None:
    world.sql("CREATE SCHEMA {} AUTHORIZATION {}", world.schema, world.login.username)
    world.sql("REVOKE CREATE ON DATABASE postgres FROM {}", world.login.username)
    try:
        admin = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
        assert admin.registry() is None
        assert admin.server().registry_creatable is True
        admin.migrate()
    finally:
        world.sql("GRANT CREATE ON DATABASE postgres TO {}", world.login.username)
    assert admin.registry() == FRESH


def test_many_that_migrate_at_once_end_well(world: World, sessions: ExitStack) -> None:
    admins = [
        sessions.enter_context(world.bind().administer(world.endpoint, world.login))
        for _ in range(4)
    ]
    assert race(*(admin.migrate for admin in admins)) == [None] * 4
    assert admins[0].registry() == FRESH
    assert world.sql("SELECT count(*) FROM {}.meta", world.schema) == [1]


def test_newer_tables_serve_us_while_their_min_code_lets_us(world: World, admin: Admin) -> None:
    world.sql("UPDATE {}.meta SET schema_version = 7", world.schema)
    world.sql("ALTER TABLE {}.tenant ADD COLUMN invented_later text", world.schema)
    assert admin.registry() == replace(FRESH, schema_version=7)
    admin.migrate()
    row = planned(other())
    admin.insert_row(row)
    assert admin.row(row.uid) == row
    assert admin.registry() == replace(FRESH, schema_version=7)


def test_a_min_code_above_ours_is_reported_and_nothing_changed(world: World, admin: Admin) -> None:
    world.sql("UPDATE {}.meta SET schema_version = 9, min_code = 8", world.schema)
    admin.migrate()
    assert admin.registry() == replace(FRESH, schema_version=9, min_code=8)


def test_a_step_that_fails_leaves_the_version_before_it(world: World, admin: Admin) -> None:
    steps = [
        *MIGRATIONS,
        Migration("ALTER TABLE {schema}.tenant ADD COLUMN more text", min_code=1),
        Migration("ALTER TABLE {schema}.tenant ADD COLUMN most text; SELECT 1/0", min_code=3),
    ]
    with _connection(world) as connection:
        with pytest.raises(Exception, match="22012"):
            migrate(connection, world.schema, steps)
        assert admin.registry() == replace(FRESH, schema_version=2)
        steps[-1] = Migration("ALTER TABLE {schema}.tenant ADD COLUMN most text", min_code=3)
        migrate(connection, world.schema, steps)
    assert admin.registry() == replace(FRESH, schema_version=3, min_code=3)


def _connection(world: World) -> Connection:
    return Connection.open(
        world.endpoint,
        world.login,
        Deadline(),
        ca_file=world.server.ca_file,
        require_auth="scram-sha-256",
    )


def test_a_registry_that_may_only_be_read_is_not_writable(world: World, admin: Admin) -> None:
    row = planned(other())
    admin.insert_row(row)
    reader = Login(f"reader_{secrets.token_hex(4)}", "password")
    world.sql(f"CREATE ROLE {{}} LOGIN PASSWORD '{reader.password}'", reader.username)
    world.sql("GRANT USAGE ON SCHEMA {} TO {}", world.schema, reader.username)
    world.sql("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}", world.schema, reader.username)
    with world.bind().administer(world.endpoint, reader) as session:
        assert session.registry() == replace(FRESH, writable=False)
        assert session.row(row.uid) == row
        assert ended(lambda: session.delete_row(row.uid)) == Denied(
            "PostgreSQL",
            "cannot remove the tenant from the ownership registry:"
            " the role lacks the right to do so",
            code="42501",
        )


def test_strangers_see_no_rows(world: World, admin: Admin) -> None:
    admin.insert_row(planned(other()))
    stranger = Login(f"stranger_{secrets.token_hex(4)}", "password")
    world.sql(f"CREATE ROLE {{}} LOGIN PASSWORD '{stranger.password}'", stranger.username)
    with world.bind().administer(world.endpoint, stranger) as session:
        assert isinstance(ended(session.registry), Denied)


def test_a_row_is_read_as_it_was_written(admin: Admin) -> None:
    row = replace(
        planned("a" * 63, "select"),
        state="managed",
        database_oid=3_000_000_000,
        role_oid=4_294_967_295,
        extensions=frozenset({"uuid-ossp", "hstore"}),
    )
    admin.insert_row(row)
    assert admin.row(row.uid) == row
    assert admin.row(str(uuid.uuid4())) is None


def test_claims_are_the_rows_with_that_database_or_that_role(admin: Admin) -> None:
    by_database, by_role, neither = planned("one", "first"), planned("two"), planned("three")
    for row in (by_database, by_role, neither):
        admin.insert_row(row)
    assert sorted(admin.claims(database="one", role="two"), key=lambda row: row.database) == [
        by_database,
        by_role,
    ]
    assert admin.claims(database="four", role="four") == []


@pytest.mark.parametrize(
    "rival",
    [
        pytest.param({"database": "two", "role": "two"}, id="uid"),
        pytest.param({"uid": str(uuid.uuid4()), "role": "two"}, id="database"),
        pytest.param({"uid": str(uuid.uuid4()), "database": "two"}, id="role"),
    ],
)
@pytest.mark.parametrize("state", ["planned", "unmanaged"])
def test_what_has_a_row_in_any_state_is_taken(
    admin: Admin, rival: dict[str, str], state: RowState
) -> None:
    row = replace(planned("one"), state=state)
    admin.insert_row(row)
    changed = replace(row, **rival)  # type: ignore[arg-type]  # mypy does not know the keys
    assert ended(lambda: admin.insert_row(changed)) == Taken(
        "PostgreSQL",
        "cannot record the tenant in the ownership registry: somebody else has the name",
        code="23505",
    )
    assert admin.row(row.uid) == row


def test_two_tenants_that_want_one_name_have_one_winner(
    world: World, admin: Admin, sessions: ExitStack
) -> None:
    second = sessions.enter_context(world.bind().administer(world.endpoint, world.login))
    one, two = planned("same"), planned("same")
    outcomes = race(lambda: admin.insert_row(one), lambda: second.insert_row(two))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "Taken"]
    assert len(admin.claims(database="same", role="same")) == 1


def test_a_planned_row_may_be_given_other_names(admin: Admin) -> None:
    row = planned("one")
    admin.insert_row(row)
    renamed = replace(
        row, database="two", role="three", kv_path="postgres/shop/two", secret_name="two"
    )
    admin.rewrite_row(renamed)
    admin.rewrite_row(renamed)
    assert admin.row(row.uid) == renamed


@pytest.mark.parametrize(
    "change", [{"state": "managed"}, {"role_oid": 7}, {"database_oid": 7}], ids=str
)
def test_a_row_with_something_behind_it_keeps_its_names(
    admin: Admin, change: dict[str, object]
) -> None:
    row = replace(planned("one"), **change)  # type: ignore[arg-type]  # mypy does not know the keys
    admin.insert_row(row)
    assert ended(lambda: admin.rewrite_row(replace(row, database="two"))) == LOST
    assert admin.row(row.uid) == row


def test_names_that_somebody_has_cannot_be_rewritten_to(admin: Admin) -> None:
    row, rival = planned("one"), planned("two")
    admin.insert_row(row)
    admin.insert_row(rival)
    assert isinstance(ended(lambda: admin.rewrite_row(replace(row, database="two"))), Taken)
    assert admin.row(row.uid) == row


def test_a_row_moves_only_from_an_expected_state(admin: Admin) -> None:
    row = planned("one")
    admin.insert_row(row)
    admin.mark(row.uid, state="managed", was=frozenset({"planned", "managed"}))
    admin.mark(row.uid, state="managed", was=frozenset({"planned", "managed"}))
    late = ended(lambda: admin.mark(row.uid, state="deleting", was=frozenset({"planned"})))
    assert late == LOST
    assert admin.row(row.uid) == replace(row, state="managed")


def test_only_a_row_that_is_being_deleted_is_forgotten(admin: Admin) -> None:
    row = planned("one")
    admin.insert_row(row)
    assert ended(lambda: admin.delete_row(row.uid)) == Taken(
        "PostgreSQL", "the tenant's row in the registry is not being deleted"
    )
    admin.mark(row.uid, state="deleting", was=frozenset({"planned"}))
    admin.delete_row(row.uid)
    admin.delete_row(row.uid)
    assert admin.row(row.uid) is None


def test_extensions_are_added_and_never_taken_away(admin: Admin) -> None:
    row = planned("one")
    admin.insert_row(row)
    admin.record_extensions(row.uid, frozenset({"hstore", "plpgsql"}))
    admin.record_extensions(row.uid, frozenset({"uuid-ossp"}))
    admin.record_extensions(row.uid, frozenset())
    assert admin.row(row.uid) == replace(
        row, extensions=frozenset({"hstore", "plpgsql", "uuid-ossp"})
    )


def test_candidates_are_old_rows_of_one_instance_in_two_states(world: World, admin: Admin) -> None:
    instance = str(uuid.uuid4())
    states: list[RowState] = ["planned", "managed", "deleting", "unmanaged"]
    rows = [
        replace(planned(state), uid=str(uuid.UUID(int=number)), instance_uid=instance, state=state)
        for number, state in enumerate(states)
    ]
    for row in [*rows, planned("of_another_instance")]:
        admin.insert_row(row)
    assert admin.candidates(instance, older_than=600) == []
    world.sql("UPDATE {}.tenant SET updated_at = now() - interval '11 minutes'", world.schema)
    assert admin.candidates(instance, older_than=600) == rows[:2]
    admin.mark(rows[0].uid, state="managed", was=frozenset({"planned"}))
    assert admin.candidates(instance, older_than=600) == rows[1:2]


def test_a_secret_is_claimed_by_namespace_and_name_until_the_tenant_is_retained(
    admin: Admin, row: Row
) -> None:
    admin.insert_row(row)
    nobodys = {"database": other(), "role": other()}
    theirs = (row.namespace, row.secret_name)
    assert admin.claims(**nobodys, secret=theirs) == [row]
    assert admin.claims(**nobodys, secret=("another", row.secret_name)) == []
    admin.mark(row.uid, state="unmanaged", was=frozenset({"planned"}))
    assert admin.claims(**nobodys, secret=theirs) == []


def test_a_sweep_is_recorded(world: World, admin: Admin) -> None:
    admin.record_sweep()
    world.sql("UPDATE {}.meta SET swept_at = swept_at - interval '1 hour'", world.schema)
    age = known(known(admin.registry()).sweep_age)
    assert 3600 <= age < 3700


def test_a_hostile_schema_name_is_a_name(world: World, sessions: ExitStack) -> None:
    hostile = replace(world, schema='a"b; drop {c}')
    admin = sessions.enter_context(hostile.bind().administer(world.endpoint, world.login))
    admin.migrate()
    row = planned("one")
    admin.insert_row(row)
    assert admin.row(row.uid) == row


def test_texts_of_failures_hold_no_values(admin: Admin) -> None:
    row = replace(planned("one"), uid="not-a-uuid")
    error = ended(lambda: admin.insert_row(row))
    assert isinstance(error, EffectError)
    assert "not-a-uuid" not in f"{error!r} {error.__cause__!r}"

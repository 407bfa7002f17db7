"""The contract of users and permissions: any Druid with basic authentication keeps it."""

from __future__ import annotations

import pytest

from hooks.core.errors import EffectError
from hooks.effects.ports.druid import Forbidden, Unauthorized
from hooks.effects.ports.server import Login
from tests.effects.druid.contract import (
    ADMIN,
    INSIDE,
    NOBODY,
    READER,
    WRITER,
    World,
    name,
    native,
    noop,
    sql,
)
from tests.effects.druid.contract_tasks import ROWS, ended

REFUSED = Unauthorized("Druid", "user name or password are not accepted", code="401")
WANTED = Unauthorized("Druid", "it wants a user name and a password", code="401")
CANNOT_READ = Forbidden("Druid", "the user lacks a permission: DATASOURCE READ", code="403")
CANNOT_WRITE = Forbidden("Druid", "the user lacks a permission: DATASOURCE WRITE", code="403")


def failure(druid: World, login: Login | None, task_id: str) -> EffectError:
    with pytest.raises(EffectError) as raised:
        druid.cluster(login).task(task_id)
    return raised.value


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        pytest.param(None, WANTED, id="none"),
        pytest.param(Login(ADMIN.username, "wrong"), REFUSED, id="wrong-password"),
        pytest.param(Login(ADMIN.username, ""), REFUSED, id="empty-password"),
        pytest.param(Login("ghost", "any"), REFUSED, id="unknown-user"),
    ],
)
def test_who_does_not_prove_who_he_is_gets_nothing(
    druid: World, login: Login | None, expected: EffectError
) -> None:
    assert failure(druid, login, name()) == expected
    with pytest.raises(Unauthorized) as raised:
        druid.cluster(login).submit("task", noop(name()))
    assert raised.value == expected


def test_whoever_may_write_and_not_read_cannot_follow(druid: World) -> None:
    task_id, cluster = name(), druid.cluster(WRITER)
    answer = cluster.submit("task", native(name(), *ROWS, task_id=task_id), id=task_id)
    assert answer.id == task_id
    assert failure(druid, WRITER, task_id) == CANNOT_READ
    cluster.shut_down(task_id)
    ended(druid, task_id)


def test_whoever_may_read_and_not_write_can_only_follow(druid: World) -> None:
    task_id, body = name(), native(name(), *ROWS)
    admin, reader = druid.cluster(), druid.cluster(READER)
    mine = native(name(), *ROWS, task_id=task_id)
    assert admin.submit("task", mine, id=task_id).id == task_id
    found = reader.task(task_id)
    assert found is not None
    assert found.id == task_id
    with pytest.raises(Forbidden) as raised:
        reader.submit("task", body)
    assert raised.value == CANNOT_WRITE
    with pytest.raises(Forbidden) as raised:
        reader.shut_down(task_id)
    assert raised.value == CANNOT_WRITE
    ended(druid, task_id)


def test_a_task_that_is_not_there_is_not_there_for_anybody(druid: World) -> None:
    assert druid.cluster(NOBODY).task(name()) is None


def test_compaction_wants_a_permission_of_its_own(druid: World) -> None:
    with pytest.raises(Forbidden) as raised:
        druid.cluster(INSIDE).set_compaction({"dataSource": name()})
    expected = Forbidden("Druid", "the user lacks a permission: CONFIG WRITE", code="403")
    assert raised.value == expected


def test_extern_wants_a_permission_of_its_own(druid: World) -> None:
    query_id = name()
    with pytest.raises(Forbidden) as raised:
        druid.cluster(INSIDE).submit("sql", sql(name(), query_id), id=f"query-{query_id}")
    assert raised.value == Forbidden(
        "Druid",
        "the user lacks a permission: DATASOURCE WRITE, and EXTERNAL READ for EXTERN",
        code="403",
    )
    assert druid.cluster().task(f"query-{query_id}") is None

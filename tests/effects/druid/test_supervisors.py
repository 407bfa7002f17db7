"""What real Druids showed of supervisors, as the hooks are told it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hooks.core.errors import EffectError
from hooks.effects.ports.druid import Cluster, DruidUnavailable, Forbidden, NoLeader, Supervisor
from tests.effects.druid.recordings import Recording, Replay, recording

TIMEOUT = (
    "org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic metadata"
)
NO_CREDENTIALS = (
    "com.amazonaws.SdkClientException: "
    "Unable to load AWS credentials from any provider in the chain"
)
FAKE = {"type": "fake", "topic": "a", "suspended": False, "fail": None, "slowMs": 0}


def asked(name: str, question: Callable[[Cluster], object]) -> object:
    with Replay(recording(name)) as replay:
        try:
            return question(replay.cluster)
        except EffectError as error:
            return error


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "33/k-status",
            Supervisor(
                id="checkout_clicks",
                state="RUNNING",
                detailed_state="RUNNING",
                healthy=True,
                datasource="checkout_clicks",
                stream="shop.checkout.v3",
            ),
            id="running",
        ),
        pytest.param(
            "33/k2-suspended-status",
            Supervisor(
                id="clicks2",
                state="SUSPENDED",
                detailed_state="SUSPENDED",
                healthy=True,
                suspended=True,
                datasource="clicks2",
                stream="shop.checkout.v3",
            ),
            id="suspended",
        ),
        pytest.param(
            "33/u3-status",
            Supervisor(
                id="unreach3",
                state="UNHEALTHY_SUPERVISOR",
                detailed_state="UNABLE_TO_CONNECT_TO_STREAM",
                healthy=False,
                datasource="unreach3",
                stream="shop.checkout.v3",
                errors=(TIMEOUT, TIMEOUT, TIMEOUT),
            ),
            id="its-brokers-are-gone",
        ),
        pytest.param(
            "20/kin-status",
            Supervisor(
                id="depot_telemetry",
                state="RUNNING",
                detailed_state="CONNECTING_TO_STREAM",
                healthy=True,
                datasource="depot_telemetry",
                stream="depot-telemetry",
                errors=(NO_CREDENTIALS, NO_CREDENTIALS),
            ),
            id="kinesis-without-credentials",
        ),
        pytest.param(
            "37/ac-status",
            Supervisor("autocompact__bike_dock_events", "", datasource="bike_dock_events"),
            id="a-schedule-has-no-health",
        ),
    ],
)
def test_a_supervisor_is_what_its_status_says(name: str, expected: Supervisor) -> None:
    assert asked(name, lambda cluster: cluster.supervisor(expected.id)) == expected


def test_a_suspended_one_may_be_unhealthy() -> None:
    found = asked("33/s08-status", lambda cluster: cluster.supervisor("checkout_clicks"))
    assert isinstance(found, Supervisor)
    assert (found.suspended, found.healthy, found.state) == (True, False, "UNHEALTHY_SUPERVISOR")


def test_the_newest_error_comes_first() -> None:
    path = "/druid/indexer/v1/supervisor/s/status"
    body = (
        '{"id":"s","payload":{"recentErrors":[{"message":"old"},{"message":"new\\n\\tat a.B(C)"}]}}'
    )
    with Replay(Recording("GET", path, 200, {}, body)) as replay:
        assert replay.cluster.supervisor("s") == Supervisor("s", "", errors=("new", "old"))


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("37/unknown-sup-status", lambda cluster: cluster.supervisor("nope")),
        ("37/unknown-sup", lambda cluster: cluster.supervisor_spec("nope")),
        ("37/noopsup-status", lambda cluster: cluster.supervisor("n1")),
        ("33/k2-status-after", lambda cluster: cluster.supervisor("clicks2")),
        ("33/k2-get-after", lambda cluster: cluster.supervisor_spec("clicks2")),
        ("37/f5-get-after", lambda cluster: cluster.supervisor_spec("f5")),
        ("33/k2-terminate", lambda cluster: cluster.terminate("clicks2")),
        ("33/k2-terminate-again", lambda cluster: cluster.terminate("clicks2")),
        ("33/k2-suspend-again", lambda cluster: cluster.suspend("clicks2")),
        ("33/k2-resume-again", lambda cluster: cluster.resume("clicks2")),
        ("37/ac-suspend2", lambda cluster: cluster.suspend("autocompact__bike_dock_events")),
        ("37/ac-suspend", lambda cluster: cluster.suspend("autocompact__bike_dock_events")),
        ("37/f-unicode-term", lambda cluster: cluster.terminate("été 東京")),
    ],
)
def test_it_is_not_there_or_it_is_done(name: str, question: Callable[[Cluster], object]) -> None:
    assert asked(name, question) is None


def test_one_that_is_gone_cannot_be_suspended() -> None:
    gone = DruidUnavailable("Druid", "the supervisor is gone: look again", code="404")
    assert asked("37/unknown-sup-suspend", lambda cluster: cluster.suspend("nope")) == gone


def test_druids_copy_of_a_specification() -> None:
    found = asked("37/f-unicode-get", lambda cluster: cluster.supervisor_spec("été 東京"))
    assert found == {**FAKE, "id": "été 東京"}


@pytest.mark.parametrize(
    ("name", "supervisor_id", "expected"),
    [
        ("37/f5-hist", "f5", ({**FAKE, "id": "f5"},)),
        ("37/noopsup-history", "n1", ()),
        ("37/unknown-sup-history", "nope", ()),
    ],
)
def test_past_specifications_without_tombstones(
    name: str, supervisor_id: str, expected: tuple[object, ...]
) -> None:
    assert asked(name, lambda cluster: cluster.past_specs(supervisor_id)) == expected


@pytest.mark.parametrize(
    ("name", "question", "right"),
    [
        ("sup-get-nobody", lambda cluster, one: cluster.supervisor_spec(one), "DATASOURCE READ"),
        ("sup-suspend-nobody", lambda cluster, one: cluster.suspend(one), "DATASOURCE WRITE"),
        ("sup-term-nobody", lambda cluster, one: cluster.terminate(one), "DATASOURCE WRITE"),
    ],
)
def test_a_missing_permission_is_named(
    name: str, question: Callable[[Cluster, str], object], right: str
) -> None:
    expected = Forbidden("Druid", f"the user lacks a permission: {right}", code="403")
    one = "autocompact__bike_dock_events"
    assert asked(f"37auth/{name}", lambda cluster: question(cluster, one)) == expected


def test_the_version() -> None:
    assert asked("37/status", lambda cluster: cluster.version()) == "37.0.0"


def test_rules_of_a_datasource_that_has_none() -> None:
    assert asked("37/rules-unknown-ds", lambda cluster: cluster.rules("nope")) == []


def test_rules_without_a_permission() -> None:
    expected = Forbidden("Druid", "the user lacks a permission: DATASOURCE WRITE", code="403")
    found = asked("37auth/rules-nobody", lambda cluster: cluster.set_rules("bike_dock_events", []))
    assert found == expected


def test_compaction_without_a_permission() -> None:
    expected = Forbidden("Druid", "the user lacks a permission: CONFIG READ", code="403")
    found = asked("37auth/compaction-nobody", lambda cluster: cluster.compaction("any"))
    assert found == expected


def test_no_coordinator_leads() -> None:
    path = "/druid/coordinator/v1/rules/any"
    body = recording("37/down-coord").body
    down = Recording("GET", path, 503, {}, body)
    with Replay(down) as replay, pytest.raises(NoLeader):
        replay.cluster.rules("any")

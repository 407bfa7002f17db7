"""Kafka supervisors through the hooks, on a real Druid and a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.druid import specs
from tests.e2e.druid.kafka import KafkaBroker
from tests.e2e.druid.releases import STREAMING
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.specs import DAY, ROWS, Document
from tests.e2e.druid.waiting import until
from tests.e2e.druid.world import IngestionWorld

RELEASES = (STREAMING,)

SUPERVISORS = "/druid/indexer/v1/supervisor"
NO_BROKER = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def cleared(server: DruidServer) -> Iterator[None]:
    """Leave no supervisor: the next test would share the Indexer with its tasks."""
    yield
    for id_ in server.call("GET", SUPERVISORS):
        server.call("POST", f"{SUPERVISORS}/{id_}/terminate")


@pytest.fixture
def idle(datasource: str) -> Document:
    """A supervisor that is sent suspended, so that it needs no broker."""
    return specs.stream(datasource, "nothing", NO_BROKER) | {"suspended": True}


def copy(server: DruidServer, id_: str) -> Document:
    """Return a supervisor as Druid has it."""
    found = server.call("GET", f"{SUPERVISORS}/{id_}")
    assert isinstance(found, dict)
    return found


def versions(server: DruidServer, id_: str) -> int:
    """Count how often a supervisor was submitted."""
    return len(server.call("GET", f"{SUPERVISORS}/{id_}/history"))


def test_a_supervisors_life(
    ingestions: IngestionWorld, server: DruidServer, kafka: KafkaBroker, datasource: str
) -> None:
    document = specs.stream(datasource, datasource, kafka.address)
    kafka.produce(datasource, ROWS)
    ingestions.make("kafka", document)
    status = ingestions.until("SupervisorRunning")
    assert (status["taskId"], status["supervisor"]["healthy"]) == (datasource, True)
    until(lambda: server.rows(datasource) == 3)

    ingestions.edit(suspend=True)
    ingestions.sync()
    status = ingestions.until("Suspended")
    assert (ingestions.ready(), status["state"]) == (("True", "Suspended"), "Suspended")
    assert copy(server, datasource)["suspended"] is True
    kafka.produce(datasource, [{"at": f"{DAY}T20:00:00Z", "dock": "D-099", "free": 7}])

    ingestions.edit(suspend=False)
    ingestions.sync()
    ingestions.until("SupervisorRunning")
    until(lambda: server.rows(datasource) == 4)

    document["spec"]["ioConfig"]["taskDuration"] = "PT30M"
    ingestions.edit(document)
    ingestions.sync()
    status = ingestions.until("SupervisorRunning")
    assert status["type"] == "DruidIngestionControllerUpdateSuccess"
    assert copy(server, datasource)["spec"]["ioConfig"]["taskDuration"] == "PT1800S"

    ingestions.delete()
    ingestions.until_gone()
    assert server.call("GET", SUPERVISORS) == []


def test_a_broker_that_nobody_reaches_is_reported(
    ingestions: IngestionWorld, datasource: str
) -> None:
    ingestions.make("kafka", specs.stream(datasource, "nothing", NO_BROKER))
    status = ingestions.until("SupervisorUnhealthy")
    assert ingestions.ready() == ("False", "SupervisorUnhealthy")
    seen = status["supervisor"]
    assert (seen["state"], seen["detailedState"]) == (
        "UNHEALTHY_SUPERVISOR",
        "UNABLE_TO_CONNECT_TO_STREAM",
    )
    assert any("Timeout" in error for error in seen["errors"])


def test_an_update_while_it_is_suspended_leaves_it_suspended(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    del idle["suspended"]
    ingestions.make("kafka", idle, suspend=True)
    ingestions.until("Suspended")
    idle["spec"]["ioConfig"]["taskDuration"] = "PT30M"
    ingestions.edit(idle)
    ingestions.sync()
    ingestions.until("Suspended")
    seen = copy(server, datasource)
    assert (seen["suspended"], seen["spec"]["ioConfig"]["taskDuration"]) == (True, "PT1800S")


def test_an_idle_sync_writes_nothing(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle)
    ingestions.until("Suspended")
    ingestions.sync()
    status = ingestions.status()
    for _ in range(11):
        ingestions.wait(60)
        ingestions.sync()
        assert ingestions.status() == status
    assert versions(server, datasource) == 1


def test_another_datasource_ends_the_old_supervisor(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle)
    ingestions.until("Suspended")
    idle["spec"]["dataSchema"]["dataSource"] = f"{datasource}_2"
    ingestions.edit(idle)
    ingestions.sync()
    ingestions.until("Suspended")
    assert server.call("GET", SUPERVISORS) == [f"{datasource}_2"]


def test_before_34_an_id_of_its_own_is_ignored_and_the_answers_counts(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle | {"id": f"{datasource}.eu"})
    assert ingestions.until("Suspended")["taskId"] == datasource
    ingestions.delete()
    ingestions.until_gone()
    assert server.call("GET", SUPERVISORS) == []


@pytest.mark.parametrize("own_id", ["", ".eu"])
def test_a_supervisor_of_another_object_is_left_alone(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document, own_id: str
) -> None:
    ingestions.make("kafka", idle, name="first")
    ingestions.until("Suspended", name="first")
    ingestions.make("kafka", idle | {"id": f"{datasource}{own_id}"}, name="second")
    ingestions.until("IdConflict", name="second")
    ingestions.delete("second")
    ingestions.wait(120)  # for a submission that may still be on its way
    ingestions.until_gone("second")
    assert versions(server, datasource) == 1
    ingestions.sync("first")
    assert ingestions.ready("first") == ("True", "Suspended")


def test_a_lost_status_is_read_back_and_the_supervisor_is_not_sent_again(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle)
    ingestions.until("Suspended")
    ingestions.lose_status()
    assert ingestions.until("Suspended")["taskId"] == datasource
    assert versions(server, datasource) == 1


def resume(server: DruidServer, id_: str) -> None:
    server.call("POST", f"{SUPERVISORS}/{id_}/resume")


def terminate(server: DruidServer, id_: str) -> None:
    server.call("POST", f"{SUPERVISORS}/{id_}/terminate")


def edit(server: DruidServer, id_: str) -> None:
    changed = copy(server, id_)
    changed["spec"]["ioConfig"]["taskDuration"] = "PT2H"
    server.call("POST", SUPERVISORS, changed)


@pytest.mark.parametrize(
    ("meddle", "reason"),
    [(resume, "Drifted"), (terminate, "SupervisorLost"), (edit, "Drifted")],
)
@pytest.mark.parametrize("drift", ["Report", "Restore"])
def test_what_somebody_changes_in_the_console_is_reported_or_restored(
    ingestions: IngestionWorld,
    server: DruidServer,
    idle: Document,
    meddle: Callable[[DruidServer, str], None],
    reason: str,
    drift: str,
) -> None:
    datasource = idle["spec"]["dataSchema"]["dataSource"]
    ingestions.make("kafka", idle, drift=drift)
    ingestions.until("Suspended")
    before = copy(server, datasource)
    meddle(server, datasource)
    for _ in range(11):
        ingestions.wait(60)
        ingestions.sync()
    if drift == "Report":
        assert ingestions.ready() == ("False", reason)
        return
    assert ingestions.ready() == ("True", "Suspended")
    assert copy(server, datasource) == before


def test_what_druid_refuses_changes_nothing(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle)
    ingestions.until("Suspended")
    before = copy(server, datasource)
    idle["spec"]["ioConfig"]["taskCount"] = "many"
    ingestions.edit(idle)
    ingestions.sync()
    ingestions.until("SubmissionRejected")
    assert "not a valid `int` value" in ingestions.message()
    assert copy(server, datasource) == before


def test_an_update_that_makes_druid_lose_the_supervisor_is_taken_back(
    ingestions: IngestionWorld, server: DruidServer, datasource: str, idle: Document
) -> None:
    ingestions.make("kafka", idle)
    ingestions.until("Suspended")
    before = copy(server, datasource)
    del idle["spec"]["ioConfig"]["topic"]
    idle["spec"]["ioConfig"]["topicPattern"] = "["
    ingestions.edit(idle)
    ingestions.sync()
    ingestions.until("SubmissionRejected")
    assert "its earlier specification put back" in ingestions.message()
    assert "PatternSyntaxException" in ingestions.message()
    assert copy(server, datasource) == before

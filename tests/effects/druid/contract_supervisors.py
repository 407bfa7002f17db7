"""The contract of supervisors: any Druid from 33 on with Kafka ingestion keeps it.

No broker is needed: Druid takes a supervisor whose brokers it cannot reach.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hooks.core.errors import Unavailable
from hooks.effects.ports.druid import Cluster, Supervisor
from tests.effects.druid.contract import World, kafka, name


def patiently(change: Callable[[], None]) -> None:
    """Tell Druid to stop something, which may take longer than one call may."""
    with contextlib.suppress(Unavailable):
        change()


def seen(cluster: Cluster, supervisor_id: str) -> Supervisor:
    found = cluster.supervisor(supervisor_id)
    assert found is not None
    return found


def gone(druid: World, supervisor_id: str) -> None:
    """End a supervisor and wait until it is not there."""
    cluster = druid.cluster()
    patiently(lambda: cluster.terminate(supervisor_id))
    druid.until(lambda: cluster.supervisor(supervisor_id) is None)


def test_a_supervisor_has_the_name_of_its_datasource(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.submit("supervisor", kafka(datasource)).id == datasource
    found = seen(cluster, datasource)
    assert (found.id, found.datasource, found.stream) == (datasource, datasource, "contract")
    assert (found.suspended, found.healthy) == (False, True)
    gone(druid, datasource)


def test_druids_copy_holds_what_was_sent_and_more(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    marker = {"owner": "a-uid"}
    assert cluster.submit("supervisor", kafka(datasource, context=marker, suspended=True)).accepted
    spec = cluster.supervisor_spec(datasource)
    assert spec is not None
    assert (spec["type"], spec["context"], spec["suspended"]) == ("kafka", marker, True)
    io = spec["spec"]["ioConfig"]
    assert (io["topic"], io["taskCount"], io["replicas"]) == ("contract", 1, 1)
    assert io["taskDuration"] == "PT1800S"
    assert spec["dataSchema"] == spec["spec"]["dataSchema"]
    assert spec["dataSchema"]["dimensionsSpec"]["dimensions"][0]["name"] == "dock"
    gone(druid, datasource)


def test_it_is_suspended_and_resumed_as_often_as_one_likes(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.submit("supervisor", kafka(datasource, suspended=True)).accepted
    assert seen(cluster, datasource).suspended
    cluster.suspend(datasource)
    cluster.resume(datasource)
    assert not seen(cluster, datasource).suspended
    cluster.resume(datasource)
    patiently(lambda: cluster.suspend(datasource))
    druid.until(lambda: seen(cluster, datasource).suspended)
    gone(druid, datasource)


def test_sending_it_without_suspended_resumes_it(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.submit("supervisor", kafka(datasource, suspended=True)).accepted
    assert cluster.submit("supervisor", kafka(datasource)).accepted
    assert not seen(cluster, datasource).suspended
    gone(druid, datasource)


def test_only_a_change_makes_a_new_version(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    first, second = (kafka(datasource, task_count=n, suspended=True) for n in (1, 2))
    for body in (first, first, second):
        assert cluster.submit("supervisor", body).id == datasource
    counts = [spec["spec"]["ioConfig"]["taskCount"] for spec in cluster.past_specs(datasource)]
    assert counts == [2, 1]
    gone(druid, datasource)
    counts = [spec["spec"]["ioConfig"]["taskCount"] for spec in cluster.past_specs(datasource)]
    assert counts == [2, 1]


def test_what_ended_is_not_there(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.submit("supervisor", kafka(datasource, suspended=True)).accepted
    gone(druid, datasource)
    cluster.terminate(datasource)
    assert cluster.supervisor_spec(datasource) is None


def test_what_never_was_has_no_past(druid: World) -> None:
    cluster, datasource = druid.cluster(), name()
    assert cluster.supervisor(datasource) is None
    assert cluster.supervisor_spec(datasource) is None
    assert cluster.past_specs(datasource) == ()
    cluster.terminate(datasource)


def test_a_supervisor_is_refused_for_its_content(druid: World) -> None:
    cluster = druid.cluster()
    unknown = cluster.submit("supervisor", b'{"type": "no_such_type"}')
    assert (unknown.code, unknown.accepted) == (400, False)
    broken = cluster.submit("supervisor", b'{"type": ')
    assert (broken.code, broken.accepted) == (500, False)
    homeless = kafka(name()).replace(b'"bootstrap.servers"', b'"client.id"')
    answer = cluster.submit("supervisor", homeless)
    assert (answer.code, answer.accepted) == (400, False)
    assert "bootstrap.servers" in answer.text

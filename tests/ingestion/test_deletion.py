"""Deletions: what is ours ends, what is not is left alone, and nobody waits for ever."""

from __future__ import annotations

import pytest

from hooks.core.errors import Unavailable
from hooks.ingestion.actions import LetGo
from hooks.ingestion.model import OTHER_FINALIZER
from hooks.sandbox.druid import Conduct, Fault, User
from tests.ingestion.world import (
    BATCH,
    KAFKA,
    NAMESPACE,
    SQL,
    A,
    B,
    IngestionWorld,
    edited,
    text_of,
)

CLICKS = "checkout_clicks"
PASSWORD = "a-long-password"


def running(world: IngestionWorld, text: str = BATCH, type_: str = "native-batch") -> None:
    world.make(text, type_)
    world.settle()


@pytest.mark.parametrize(("type_", "text"), [("native-batch", BATCH), ("sql", SQL)])
def test_a_running_task_is_shut_down_and_seen_ended(
    world: IngestionWorld, type_: str, text: str
) -> None:
    world.druid.conduct.lingering = True
    running(world, text, type_)
    world.delete()
    for _ in range(3):
        world.sync()
        world.wait(5)
    assert world.status()["state"] == "Stopping"
    assert world.condition() == ("Unknown", "Stopping")
    assert world.status()["type"] == "DruidIngestionControllerShutDownSuccess"
    shut_down = [one for one in world.druid.seen if one.endswith("/shutdown")]
    assert len(shut_down) == 1
    world.druid.tasks.end(world.task())
    assert world.sync().finalized


def test_a_supervisor_is_terminated_and_seen_gone(world: IngestionWorld) -> None:
    running(world, KAFKA, "kafka")
    world.delete()
    assert world.sync().finalized
    assert dict(world.druid.supervisors) == {}


def test_an_ended_task_needs_no_question(world: IngestionWorld) -> None:
    running(world)
    world.druid.tasks.succeed(world.task())
    world.settle()
    world.delete()
    assert world.asked(world.sync) == []
    assert "load" not in world.parents


def test_a_task_that_druid_forgot_holds_nothing(world: IngestionWorld) -> None:
    running(world)
    world.druid.tasks.forget(world.task())
    world.delete()
    assert world.sync().finalized


def test_a_task_that_druid_forgets_while_it_is_waited_for_is_gone(world: IngestionWorld) -> None:
    world.druid.conduct.lingering = True
    running(world)
    world.delete()
    world.sync()
    assert world.condition() == ("Unknown", "Stopping")
    world.druid.tasks.forget(world.task())
    assert world.sync().finalized


def test_what_was_never_submitted_is_not_asked_about(world: IngestionWorld) -> None:
    world.make(BATCH, suspend=True)
    world.settle()
    world.delete()
    assert world.asked(world.sync) == []
    assert "load" not in world.parents


def test_a_submission_that_may_still_arrive_is_waited_for(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.delete()
    asked = world.asked(world.sync)
    assert {one.partition(" ")[0] for one in asked} == {"GET"}
    assert world.condition() == ("Unknown", "Stopping")
    world.wait(121)
    assert world.sync().finalized
    assert world.runs == []


def test_a_submission_that_arrived_without_an_answer_is_shut_down(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.druid.faults.append(Fault("POST", "/task", acted=True))
    world.sync()
    assert world.running == world.runs
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert world.running == []


@pytest.mark.parametrize(("type_", "text"), [("native-batch", BATCH), ("kafka", KAFKA)])
def test_a_lost_status_does_not_leave_anything_running(
    world: IngestionWorld, type_: str, text: str
) -> None:
    running(world, text, type_)
    del world.parents["load"]["status"]
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert world.running == []
    assert dict(world.druid.supervisors) == {}


@pytest.mark.parametrize("trouble", ["suspended", "down", "no router"])
def test_a_lost_status_is_not_taken_for_an_empty_one(world: IngestionWorld, trouble: str) -> None:
    running(world)
    del world.parents["load"]["status"]
    routers = world.routers
    match trouble:
        case "suspended":
            world.edit(suspend=True)
        case "down":
            world.druid.faults.append(Fault(times=999))
        case _:
            world.routers = []
    world.settle()
    world.routers = routers
    world.druid.faults.clear()
    world.delete()
    world.settle()
    assert "load" not in world.parents
    assert world.running == []


def test_a_broken_specification_deletes_too(world: IngestionWorld) -> None:
    running(world, KAFKA, "kafka")
    world.edit("{ not json")
    world.settle()
    assert world.condition() == ("False", "InvalidSpec")
    assert world.status()["taskId"] == CLICKS
    world.delete()
    assert world.sync().finalized
    assert dict(world.druid.supervisors) == {}


def test_orphan_leaves_druid_as_it_is(world: IngestionWorld) -> None:
    running(world, KAFKA, "kafka")
    world.edit(deletionPolicy="Orphan")
    world.delete()
    assert world.asked(world.sync) == []
    assert list(world.druid.supervisors) == [CLICKS]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault("GET", times=99, status=503), "NoLeader"),
        (Fault("GET", times=99, status=401), "Unauthorized"),
        (Fault("GET", times=99), "DruidUnavailable"),
    ],
    ids=["no leader", "wrong password", "no answer"],
)
def test_a_druid_that_does_not_answer_keeps_the_object_and_says_how_to_let_go(
    world: IngestionWorld, fault: Fault, reason: str
) -> None:
    running(world)
    world.druid.faults.append(fault)
    world.delete()
    world.wait(7200)
    response = world.sync()
    assert not response.finalized
    assert world.condition() == ("False", reason)
    assert 'druid.apache.org/let-go: "true"' in world.message()
    world.annotate("let-go", "true")
    assert world.sync().finalized
    assert world.effects[-1] == (LetGo((world.task(),)), "ok")


def test_a_missing_permission_to_end_it_says_how_to_let_go() -> None:
    with IngestionWorld(Conduct(users={"loader": User(PASSWORD)})) as world:
        world.make(KAFKA, "kafka", auth=world.log_in("loader", PASSWORD))
        world.settle()
        world.druid.conduct.users["loader"] = User(PASSWORD, write="nothing")
        world.delete()
        world.settle()
        assert world.condition() == ("False", "Forbidden")
        assert 'druid.apache.org/let-go: "true"' in world.message()


def test_kubernetes_down_says_how_to_let_go(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka", auth=world.log_in("admin", PASSWORD))
    world.settle()
    world.kubernetes.down = Unavailable("Kubernetes", "it does not answer")
    world.delete()
    world.settle()
    assert world.condition() == ("False", "DependencyUnavailable")
    assert 'druid.apache.org/let-go: "true"' in world.message()


def test_what_another_cluster_may_have_is_not_asked_of_this_one(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.druid.faults.append(Fault("POST", "/task", acted=True))
    world.sync()
    assert world.status()["taskId"] == ""
    world.edit(druidCluster="other")
    world.routers = [world.router("other", "other")]
    world.delete()
    world.wait(130)
    world.sync()
    assert world.condition() == ("False", "RouterNotFound")
    assert "druid_cr=tiny" in world.message()
    world.edit(druidCluster="tiny")
    world.routers = [world.router()]
    world.settle()
    assert "load" not in world.parents
    assert world.running == []


def test_a_router_that_is_gone_is_waited_for_ten_minutes(world: IngestionWorld) -> None:
    running(world)
    world.routers = []
    world.delete()
    world.sync()
    assert world.condition() == ("False", "RouterNotFound")
    world.wait(601)
    assert world.sync().finalized
    assert world.effects[-1] == (LetGo((world.task(),)), "ok")


def test_a_secret_that_went_with_its_namespace_holds_nothing(world: IngestionWorld) -> None:
    world.make(BATCH, auth=world.log_in("admin", "a-long-password"))
    world.settle()
    world.kubernetes.secrets.clear()
    meta = {"name": NAMESPACE, "deletionTimestamp": "2026-03-01T12:00:00Z"}
    world.kubernetes.objects["namespaces", NAMESPACE] = {"metadata": meta}
    world.delete()
    assert world.sync().finalized
    assert world.effects[-1] == (LetGo((world.task(),)), "ok")


def test_a_strangers_task_of_the_same_id_is_left_alone(world: IngestionWorld) -> None:
    text = text_of(9)
    world.make(text, name="first")
    world.settle("first")
    world.make(edited(text, "spec", "tuningConfig", value=None), name="second")
    world.settle("second")
    assert world.condition("Ready", "second") == ("False", "IdConflict")
    world.delete("second")
    world.wait(121)
    world.settle("second")
    assert "second" not in world.parents
    assert world.running == ["nightly-meter-load_2026-05-05"]


def test_both_submissions_of_an_update_end(world: IngestionWorld) -> None:
    world.druid.conduct.lingering = True
    running(world, A)
    old = world.task()
    world.edit(B)
    world.sync()
    world.delete()
    world.sync()
    assert "load" in world.parents
    world.druid.tasks.end(old)
    world.settle()
    assert "load" not in world.parents
    assert world.running == []


def test_an_object_of_the_other_controller_is_let_go_and_its_task_runs_on(
    world: IngestionWorld,
) -> None:
    running(world, KAFKA, "kafka")
    parent = world.parents["load"]
    parent["status"] = {"taskId": CLICKS, "currentIngestionSpec.json": KAFKA}
    parent["metadata"]["finalizers"].append(OTHER_FINALIZER)
    world.delete()
    assert world.asked(world.sync) == []
    assert list(world.druid.supervisors) == [CLICKS]


def test_nothing_is_submitted_while_deleting(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.delete()
    for _ in range(3):
        world.sync()
        world.wait(60)
        if "load" not in world.parents:
            break
    assert "load" not in world.parents
    assert world.runs == []

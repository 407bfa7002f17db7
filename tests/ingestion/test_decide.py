"""Facts in, decision out: the gates, and their order."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hooks.core.decision import Act, Decision, Met, Stuck, Wait
from hooks.core.errors import OutOfTime
from hooks.effects.ports.druid import DruidUnavailable, Router, Supervisor
from hooks.ingestion.access import Access
from hooks.ingestion.actions import (
    Action,
    PutBack,
    Resume,
    ShutDown,
    Submit,
    Suspend,
    Terminate,
    WritePolicy,
)
from hooks.ingestion.decide import CONDITION, PRESENT, present
from hooks.ingestion.facts import Facts
from hooks.ingestion.past import Past
from hooks.ingestion.policies import Applied, Policy
from hooks.ingestion.reasons import Fault
from hooks.ingestion.record import Record
from tests.ingestion.test_parsing import spec
from tests.ingestion.world import BATCH, KAFKA

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = "2026-03-01T11:00:00Z"
CLICKS = "checkout_clicks"

BATCH_SPEC = spec("native-batch", BATCH)
STREAM_SPEC = spec("kafka", KAFKA)


def record(state: Any = "Running", **changes: Any) -> Record:  # noqa: ANN401
    made = Record(
        id="task-1",
        attempt=1,
        spec_hash=BATCH_SPEC.ingestion.hash,
        state=state,
        type="native-batch",
        cluster="tiny",
        datasource="bike_dock_events",
        submitted_at=EARLIER,
    )
    return replace(made, **changes)


def stream(state: Any = "Running", **changes: Any) -> Record:  # noqa: ANN401
    base = record(
        state,
        id=CLICKS,
        spec_hash=STREAM_SPEC.ingestion.hash,
        type="kafka",
        datasource=CLICKS,
        suspended=False,
    )
    return replace(base, **changes)


ACCESS = Access(Router("http://router"))
HEALTHY = Supervisor(CLICKS, "RUNNING", "RUNNING", healthy=True)
DOWN = DruidUnavailable("Druid", "it does not answer")
SUCCEEDED = Facts(BATCH_SPEC, Past(), NOW, (record("Succeeded"),))
STEADY = Facts(STREAM_SPEC, Past(), NOW, (stream(),), access=ACCESS, supervisor=HEALTHY)
RUNNING = replace(SUCCEEDED, history=(record(),), access=ACCESS)


def batch(*history: Record, **changes: Any) -> Facts:  # noqa: ANN401
    return replace(SUCCEEDED, history=history, access=ACCESS, **changes)


def streams(*history: Record, **changes: Any) -> Facts:  # noqa: ANN401
    return replace(STEADY, history=history, **changes)


OLD = record(id="task-0", spec_hash="other")
OLD_STREAM = stream(id="another", datasource="another", spec_hash="other")
BEFORE = stream(spec_hash="other")
DESTROYED = replace(BEFORE, state="Lost", ended_at=EARLIER)
DELETED = Policy("rules", "bike_dock_events", "")


@pytest.mark.parametrize("facts", [SUCCEEDED, STEADY], ids=["batch", "stream"])
def test_what_is_as_asked_needs_nothing(facts: Facts) -> None:
    assert present(facts) == Decision("", "", Met())


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        pytest.param(batch(record("Submitting")), Submit("task-1"), id="submit"),
        pytest.param(batch(OLD), ShutDown("task-0"), id="end the task of before"),
        pytest.param(
            batch(replace(OLD, state="Stopping", stopping_at=EARLIER)),
            ShutDown("task-0"),
            id="ask once more after a while",
        ),
        pytest.param(streams(OLD_STREAM), Terminate("another"), id="end the supervisor of before"),
        pytest.param(
            streams(stream("Rejected", ended_at=EARLIER), DESTROYED, missing=True),
            PutBack(CLICKS),
            id="put back what an update destroyed",
        ),
        pytest.param(
            streams(stream("Rejected"), BEFORE, spec=replace(STREAM_SPEC, suspend=True)),
            Suspend(CLICKS),
            id="suspend what runs on after an update was refused",
        ),
        pytest.param(
            replace(STEADY, spec=replace(STREAM_SPEC, suspend=True)), Suspend(CLICKS), id="suspend"
        ),
        pytest.param(
            streams(stream(suspended=True), supervisor=replace(HEALTHY, suspended=True)),
            Resume(CLICKS),
            id="resume",
        ),
        pytest.param(
            streams(stream("Lost"), missing=True, spec=replace(STREAM_SPEC, restore_drift=True)),
            Submit(CLICKS),
            id="make a terminated one again",
        ),
        pytest.param(
            replace(STEADY, drift="edited", spec=replace(STREAM_SPEC, restore_drift=True)),
            Submit(CLICKS),
            id="undo an edit",
        ),
        pytest.param(
            replace(
                STEADY,
                supervisor=replace(HEALTHY, suspended=True),
                spec=replace(STREAM_SPEC, restore_drift=True),
            ),
            Resume(CLICKS),
            id="undo a suspension",
        ),
        pytest.param(
            replace(RUNNING, policy=DELETED),
            WritePolicy(DELETED),
            id="write a policy while it runs",
        ),
    ],
)
def test_what_is_done(facts: Facts, action: Action) -> None:
    assert present(facts).action == action


REFUSED = Applied(datasource="d", refused="rules/x", error="rules: no")


@pytest.mark.parametrize(
    ("facts", "condition", "kind", "reason"),
    [
        pytest.param(
            replace(SUCCEEDED, spec=replace(BATCH_SPEC, taken_by_other=True)),
            "Accepted",
            Stuck,
            "OtherController",
            id="another controller",
        ),
        pytest.param(
            batch(record(cluster="another")), "Accepted", Stuck, "ImmutableField", id="cluster"
        ),
        pytest.param(batch(record(type="sql")), "Accepted", Stuck, "ImmutableField", id="type"),
        pytest.param(
            replace(RUNNING, access=Fault("RouterNotFound", "none")),
            "Accepted",
            Wait,
            "RouterNotFound",
            id="no router",
        ),
        pytest.param(
            replace(RUNNING, access=OutOfTime("Kubernetes", "late")),
            "Accepted",
            Wait,
            "Reconciling",
            id="out of time",
        ),
        pytest.param(
            batch(stranger="somebody's"), "Submitted", Stuck, "IdConflict", id="a stranger"
        ),
        pytest.param(
            batch(nothing_to_adopt="x"), "Submitted", Stuck, "TaskLost", id="nothing to adopt"
        ),
        pytest.param(
            batch(spec=replace(BATCH_SPEC, suspend=True)),
            "Submitted",
            Wait,
            "Suspended",
            id="suspended before a submission",
        ),
        pytest.param(
            batch(OLD, spec=replace(BATCH_SPEC, suspend=True)),
            "Submitted",
            Wait,
            "Suspended",
            id="suspended, and the one of before runs on",
        ),
        pytest.param(
            batch(record("Submitting"), spec=replace(BATCH_SPEC, suspend=True)),
            "Submitted",
            Wait,
            "Suspended",
            id="suspended after it was written down",
        ),
        pytest.param(
            batch(OLD, asked=frozenset({"task-0"})),
            "Submitted",
            Wait,
            "Stopping",
            id="asked to end in this request",
        ),
        pytest.param(
            batch(replace(OLD, state="Stopping", stopping_at="2026-03-01T11:59:00Z")),
            "Submitted",
            Wait,
            "Stopping",
            id="asked to end a minute ago",
        ),
        pytest.param(
            batch(replace(OLD, state="Submitting", submitted_at="2026-03-01T11:59:00Z")),
            "Submitted",
            Wait,
            "Stopping",
            id="it may still arrive",
        ),
        pytest.param(
            batch(OLD, unread=DOWN), "Submitted", Wait, "DruidUnavailable", id="before, unread"
        ),
        pytest.param(batch(unread=DOWN), "Submitted", Wait, "DruidUnavailable", id="ids unread"),
        pytest.param(
            batch(record("Submitting"), fresh=True),
            "Submitted",
            Wait,
            "Submitting",
            id="written down only now",
        ),
        pytest.param(
            batch(record("Rejected", error="no")),
            "Submitted",
            Stuck,
            "SubmissionRejected",
            id="refused",
        ),
        pytest.param(
            streams(stream("Rejected", error="no"), BEFORE),
            "Submitted",
            Stuck,
            "SubmissionRejected",
            id="refused, and the one of before runs",
        ),
        pytest.param(
            streams(
                stream(
                    "Rejected",
                    error="Update of the input source stream from [a] to [b] is not supported for"
                    " a running supervisor.",
                ),
                BEFORE,
            ),
            "Submitted",
            Stuck,
            "StreamChangeNotAllowed",
            id="another stream",
        ),
        pytest.param(
            streams(
                stream("Rejected", ended_at=EARLIER),
                DESTROYED,
                missing=True,
                put_back=frozenset({CLICKS}),
            ),
            "Submitted",
            Stuck,
            "SupervisorLost",
            id="refused, and the one of before cannot be put back",
        ),
        pytest.param(
            streams(stream("Rejected", ended_at="2026-03-01T10:00:00Z"), DESTROYED, missing=True),
            "Submitted",
            Stuck,
            "SupervisorLost",
            id="refused, and somebody terminated the one of before later",
        ),
        pytest.param(RUNNING, "Ready", Wait, "TaskRunning", id="running"),
        pytest.param(
            replace(RUNNING, unread=DOWN), "Ready", Wait, "DruidUnavailable", id="running, unread"
        ),
        pytest.param(batch(record("Failed", error="x")), "Ready", Stuck, "TaskFailed", id="failed"),
        pytest.param(
            batch(
                record("Failed", error="x", ended_at=EARLIER),
                spec=replace(BATCH_SPEC, max_retries=1),
            ),
            "Ready",
            Wait,
            "TaskFailed",
            id="failed, and run again",
        ),
        pytest.param(batch(record("Lost")), "Ready", Stuck, "TaskLost", id="lost"),
        pytest.param(
            batch(
                record("Failed", error="The Apache Hadoop ingestion task was removed in Druid 37.0")
            ),
            "Ready",
            Stuck,
            "HadoopRemoved",
            id="Hadoop removed",
        ),
        pytest.param(
            batch(record("Failed", error="set druid.indexer.task.allowHadoopTaskExecution=true")),
            "Ready",
            Stuck,
            "HadoopDisabled",
            id="Hadoop disabled",
        ),
        pytest.param(
            streams(stream("Lost"), missing=True), "Ready", Stuck, "SupervisorLost", id="terminated"
        ),
        pytest.param(replace(STEADY, drift="edited"), "Ready", Stuck, "Drifted", id="edited"),
        pytest.param(
            replace(
                STEADY,
                drift="edited, and Druid refuses",
                refused=True,
                spec=replace(STREAM_SPEC, restore_drift=True),
            ),
            "Ready",
            Stuck,
            "Drifted",
            id="edited, and Druid refuses to change it back",
        ),
        pytest.param(
            replace(STEADY, supervisor=replace(HEALTHY, suspended=True)),
            "Ready",
            Stuck,
            "Drifted",
            id="suspended by somebody",
        ),
        pytest.param(
            replace(STEADY, supervisor=replace(HEALTHY, healthy=False, state="UNHEALTHY_TASKS")),
            "Ready",
            Wait,
            "SupervisorUnhealthy",
            id="unhealthy",
        ),
        pytest.param(
            replace(STEADY, unread=DOWN), "Ready", Wait, "DruidUnavailable", id="stream, unread"
        ),
        pytest.param(
            replace(SUCCEEDED, applied=REFUSED), "Ready", Stuck, "RulesRejected", id="rules refused"
        ),
    ],
)
def test_what_is_waited_for(
    facts: Facts, condition: str, kind: type[Wait | Stuck], reason: str
) -> None:
    decision = present(facts)
    assert isinstance(decision.verdict, kind)
    assert (CONDITION[decision.gate], decision.verdict.reason) == (condition, reason)


@pytest.mark.parametrize(
    "supervisor",
    [
        replace(HEALTHY, healthy=None),
        replace(HEALTHY, state="PENDING", detailed_state="PENDING"),
        replace(HEALTHY, state="IDLE", detailed_state="IDLE"),
    ],
)
def test_a_supervisor_that_is_not_said_to_be_unhealthy_is_well(supervisor: Supervisor) -> None:
    assert isinstance(present(replace(STEADY, supervisor=supervisor)).verdict, Met)


def test_the_gates_are_in_this_order() -> None:
    assert [(CONDITION[gate.name], gate.name) for gate in PRESENT] == [
        ("Accepted", "NotTaken"),
        ("Accepted", "Unchanged"),
        ("Accepted", "Reachable"),
        ("Submitted", "IdFree"),
        ("Submitted", "EarlierStopped"),
        ("Submitted", "Planned"),
        ("Submitted", "Submitted"),
        ("Ready", "PoliciesWritten"),
        ("Ready", "RunningWell"),
        ("Ready", "PoliciesTaken"),
    ]


def test_an_action_names_no_secret() -> None:
    verdict = present(batch(record("Submitting"))).verdict
    assert verdict == Act(Submit("task-1"), "", "submitting task-1")

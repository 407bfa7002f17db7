"""What is decided about a cluster, from what was observed of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from hooks.core.decision import Act, Met, Stuck, Wait
from hooks.core.errors import Unavailable
from hooks.effects.ports.pods import ConfigMap, NotFound
from hooks.initsql.decide import Attempt, applied, judge
from hooks.initsql.facts import Facts
from hooks.initsql.instances import ObservedInstances
from hooks.initsql.jobs import Job
from hooks.initsql.model import Wish, parse
from hooks.initsql.outcome import Outcome
from tests.builders import NOW
from tests.initsql.builders import SQL, cluster, pod

WISH = parse(cluster(), "composite")
assert isinstance(WISH, Wish)
DIGEST = WISH.digest(SQL)

FACTS = Facts(
    wish=WISH,
    config_map=ConfigMap({"init.sql": SQL}),
    instances=ObservedInstances.of([pod()]),
    jobs=(),
    idle="",
    now=NOW,
)
"""Nothing hinders the first attempt."""

FAILED = Job(
    name="hippo-init-sql-1",
    digest=DIGEST,
    attempt=1,
    source="seed",
    origin="field",
    state="failed",
    finished=NOW - timedelta(seconds=4),
    outcome=Outcome("failed", "the statement that ends on line 1 failed: syntax_error", "42601", 1),
)
MESSAGE = "the statement that ends on line 1 failed: syntax_error (SQLSTATE 42601)"
UNFINISHED = replace(FAILED, state="unfinished", finished=None, outcome=None)
STARTING = "a Job is made to run the SQL, and has no Pod yet"


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        pytest.param({}, Act(Attempt(DIGEST, 1), "Reconciling", STARTING), id="first-attempt"),
        pytest.param(
            {"jobs": (UNFINISHED,)}, Wait("Reconciling", "a Job runs the SQL"), id="running"
        ),
        pytest.param(
            {"jobs": (replace(UNFINISHED, waits=True),)},
            Wait("Reconciling", STARTING),
            id="no-pod-as-with-a-full-quota",
        ),
        pytest.param(
            {"jobs": (replace(UNFINISHED, digest="other"),), "idle": "x", "config_map": None},
            Wait("Reconciling", "a Job runs the SQL"),
            id="running-whatever-is-asked-for-now",
        ),
        pytest.param(
            {"jobs": (replace(UNFINISHED, trouble="ImagePullBackOff"),)},
            Wait("JobPending", "the Pod of the Job cannot start: ImagePullBackOff"),
            id="image",
        ),
        pytest.param({"idle": "it is shut down"}, Wait("Reconciling", "it is shut down")),
        pytest.param(
            {"config_map": NotFound("Kubernetes", 'configmaps "seed" not found', code="404")},
            Wait("ConfigMapMissing", 'configmaps "seed" not found'),
            id="no-config-map",
        ),
        pytest.param(
            {"config_map": Unavailable("Kubernetes", "no connection")},
            Wait("DependencyUnavailable", "Kubernetes: no connection", unread=True),
            id="api-down",
        ),
        pytest.param(
            {"config_map": ConfigMap({"other": SQL})},
            Stuck(
                "KeyMissing",
                "ConfigMap did not contain expected key: init.sql (it has other)",
            ),
            id="no-key",
        ),
        pytest.param(
            {"config_map": ConfigMap({"init.sql": "-- nothing"})},
            Stuck("UnsuitableSQL", "the SQL is not run: it holds no statement"),
            id="no-statement",
        ),
        pytest.param(
            {"instances": ObservedInstances.of([pod("replica")])},
            Wait("Reconciling", "no running instance takes writes"),
            id="no-primary",
        ),
        pytest.param(
            {"instances": ObservedInstances.of([pod("replica")]), "jobs": (FAILED,)},
            Wait("SQLFailed", f"{MESSAGE}; no running instance takes writes"),
            id="no-primary-after-a-failure",
        ),
        pytest.param(
            {"jobs": (FAILED,)}, Wait("SQLFailed", MESSAGE, recheck=6.0), id="too-early-again"
        ),
        pytest.param(
            {"jobs": (replace(FAILED, finished=NOW - timedelta(seconds=10)),)},
            Act(Attempt(DIGEST, 2), "Reconciling", STARTING),
            id="second-attempt",
        ),
        pytest.param(
            {"jobs": (replace(FAILED, attempt=40, finished=NOW),)},
            Wait("SQLFailed", MESSAGE, recheck=300.0),
            id="never-longer-than-5-minutes",
        ),
        pytest.param(
            {"jobs": (replace(FAILED, digest="other", attempt=9, finished=NOW),)},
            Act(Attempt(DIGEST, 1), "Reconciling", STARTING),
            id="changed-sql-at-once",
        ),
        pytest.param(
            {"jobs": (FAILED,), "wish": replace(WISH, max_attempts=1)},
            Stuck("AttemptsExhausted", f"{MESSAGE}; no further attempt is allowed"),
            id="no-attempt-left",
        ),
        pytest.param(
            {
                "jobs": (replace(FAILED, digest="other"),),
                "wish": replace(WISH, max_attempts=1),
            },
            Act(Attempt(DIGEST, 1), "Reconciling", STARTING),
            id="changed-sql-has-its-own-attempts",
        ),
        pytest.param(
            {"jobs": (replace(FAILED, outcome=Outcome("again", "no primary")),)},
            Wait("NotExecuted", "no primary", recheck=6.0),
            id="nothing-was-executed",
        ),
        pytest.param(
            {"jobs": (replace(FAILED, outcome=Outcome("unknown", "lost", "57P01")),)},
            Wait(
                "OutcomeUnknown",
                "lost (SQLSTATE 57P01): all of the SQL may have been applied; it is run again",
                recheck=6.0,
            ),
            id="unknown",
        ),
        pytest.param(
            {"jobs": (replace(FAILED, outcome=None, why="DeadlineExceeded"),)},
            Wait(
                "JobFailed",
                "the Job failed: DeadlineExceeded; the SQL may have been applied",
                recheck=6.0,
            ),
            id="deadline",
        ),
        pytest.param({"jobs": (replace(FAILED, state="complete"),)}, Met(), id="complete"),
        pytest.param({"wish": replace(WISH, applied="seed"), "config_map": None}, Met()),
        pytest.param(
            {"wish": replace(WISH, managed=True)},
            Wait(
                "DeferredToOperator",
                "the operator of this cluster runs spec.databaseInitSQL itself",
            ),
            id="operator",
        ),
    ],
)
def test_the_first_thing_that_hinders_is_what_is_told(
    changes: dict[str, object], verdict: object
) -> None:
    assert judge(replace(FACTS, **changes)).verdict == verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "record"),
    [
        pytest.param({}, None, id="nothing-ran"),
        pytest.param({"jobs": (FAILED, UNFINISHED)}, None, id="nothing-succeeded"),
        pytest.param(
            {"jobs": (replace(FAILED, state="complete", source="older", digest="x"),)},
            "older",
            id="the-one-that-ran-not-the-one-that-is-asked-for",
        ),
        pytest.param({"wish": replace(WISH, applied="")}, "", id="applied-by-another"),
    ],
)
def test_the_record_names_what_was_applied(changes: dict[str, object], record: str | None) -> None:
    assert applied(replace(FACTS, **changes)) == record  # type: ignore[arg-type]

"""What is read of Jobs and their Pods."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hooks.core.manifests import Manifest
from hooks.initsql.jobs import Job, observed
from hooks.initsql.outcome import Outcome
from tests.builders import merged
from tests.initsql.builders import cluster, config_map, ended, job_pod, pod, request
from tests.initsql.calls import composite, job

JOB = job(composite(request(cluster(), pod(), config_map())))
NAME = JOB["metadata"]["name"]
DIGEST = JOB["metadata"]["annotations"]["database.ddupan.top/init-sql-digest"]
END = datetime(2026, 3, 1, 10, tzinfo=UTC)
OUTCOME = Outcome("failed", "x", "42P01", 7)


def seen(**changes: object) -> Job:
    known = {"name": NAME, "digest": DIGEST, "attempt": 1, "source": "seed", "origin": "field"}
    return Job(**({"state": "unfinished"} | known | changes))


@pytest.mark.parametrize(
    ("manifest", "its_pod", "expected"),
    [
        pytest.param(JOB, None, seen(waits=True), id="new"),
        pytest.param(ended(JOB, "Suspended"), None, seen(waits=True), id="another-condition"),
        pytest.param(
            ended(JOB, "Complete"),
            None,
            seen(waits=True, state="complete", finished=END),
            id="complete",
        ),
        pytest.param(
            ended(JOB, "Failed", reason="DeadlineExceeded"),
            None,
            seen(waits=True, state="failed", finished=END, why="DeadlineExceeded"),
            id="failed",
        ),
        pytest.param(
            ended(JOB, "Failed", reason="BackoffLimitExceeded"),
            job_pod(JOB, "terminated", message=OUTCOME.write()),
            seen(state="failed", finished=END, why="BackoffLimitExceeded", outcome=OUTCOME),
            id="failed-with-words",
        ),
        pytest.param(JOB, job_pod(JOB, "waiting", reason="PodInitializing"), seen(), id="starting"),
        pytest.param(
            JOB,
            job_pod(JOB, "waiting", reason="ErrImagePull"),
            seen(trouble="ImagePullBackOff"),
            id="no-image",
        ),
        pytest.param(
            JOB,
            merged(job_pod(JOB, "waiting", reason="ErrImagePull"), {"status": None}),
            seen(),
            id="a-pod-without-status",
        ),
        pytest.param(
            JOB,
            pod(metadata={"labels": {"batch.kubernetes.io/job-name": NAME}}),
            seen(waits=True),
            id="a-pod-of-somebody-else",
        ),
        pytest.param(
            merged(JOB, {"metadata": {"annotations": None}}),
            None,
            seen(waits=True, digest="", source="", origin=""),
            id="no-annotations",
        ),
        pytest.param(
            merged(
                JOB,
                {"metadata": {"annotations": {"database.ddupan.top/init-sql-attempt": "9" * 5000}}},
            ),
            None,
            seen(waits=True),
            id="no-number-of-an-attempt",
        ),
        pytest.param(
            ended(JOB, "Failed", reason="BackoffLimitExceeded"),
            merged(
                job_pod(JOB, "terminated"),
                {
                    "status": {
                        "containerStatuses": [
                            {"name": "proxy", "state": {"terminated": {"message": OUTCOME.write()}}}
                        ]
                    }
                },
            ),
            seen(state="failed", finished=END, why="BackoffLimitExceeded"),
            id="another-container",
        ),
    ],
)
def test_a_job_is_read_with_what_its_pod_says(
    manifest: Manifest, its_pod: Manifest | None, expected: Job
) -> None:
    related = (its_pod,) if its_pod else ()
    assert observed(request(cluster(), *related, children=(manifest,))) == (expected,)

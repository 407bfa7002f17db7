"""The Jobs of a cluster as they were observed: which attempt each is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from hooks.core import manifests
from hooks.core.contract import Request
from hooks.core.manifests import Manifest
from hooks.initsql import outcome
from hooks.initsql.model import number
from hooks.initsql.outcome import Outcome

UID = "database.ddupan.top/init-sql-uid"
"""Label of the Jobs and their Pods: the cluster's UID. Selecting by it finds both."""
DIGEST = "database.ddupan.top/init-sql-digest"
ATTEMPT = "database.ddupan.top/init-sql-attempt"
SOURCE = "database.ddupan.top/init-sql-configmap"
ORIGIN = "database.ddupan.top/init-sql-origin"
"""Annotations of a Job: what it runs, which attempt it is, from where, and for what."""

CONTAINER = "init-sql"
"""The container of a Job's Pod; others may have been put beside it."""

_JOB_NAME = "batch.kubernetes.io/job-name"

# The kubelet goes to and fro between two words for one trouble; a status must not.
_CANNOT_START = {
    "ErrImagePull": "ImagePullBackOff",
    "ImagePullBackOff": "ImagePullBackOff",
    "InvalidImageName": "InvalidImageName",
    "ErrImageNeverPull": "ErrImageNeverPull",
    "CreateContainerConfigError": "CreateContainerConfigError",
    "CreateContainerError": "CreateContainerError",
}


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt.

    What its container said counts before how the Job ended: one that another container kept alive
    to its time limit has failed, and its SQL is applied.

    Attributes:
        source: the ConfigMap whose SQL it runs.
        origin: where the cluster asked for it.
        finished: when it ended, None when that is not known.
        why: the Job controller's reason of a failure.
        outcome: what its Pod said at its end.
        waits: it has no Pod, as one that has just been made, or whose Pod is refused.
        trouble: why its Pod does not start.
    """

    name: str
    digest: str
    attempt: int
    source: str
    origin: str
    state: Literal["unfinished", "complete", "failed"]
    finished: datetime | None = None
    why: str = ""
    outcome: Outcome | None = field(default=None)
    waits: bool = False
    trouble: str = ""


def observed(request: Request) -> tuple[Job, ...]:
    """Return the Jobs that are not being deleted, by attempt."""
    pods = {
        (manifests.metadata(pod).get("labels") or {}).get(_JOB_NAME): pod
        for pod in request.related.get("Pod.v1", {}).values()
        if UID in (manifests.metadata(pod).get("labels") or {})
    }
    jobs = [
        _job(manifest, pods.get(manifests.name(manifest)))
        for manifest in request.children.get("Job.batch/v1", {}).values()
        if not manifests.deleting(manifest)
    ]
    return tuple(sorted(jobs, key=lambda job: (job.attempt, job.name)))


def _job(manifest: Manifest, its_pod: Manifest | None) -> Job:
    pod = its_pod or {}
    notes = manifests.annotations(manifest)
    failed = manifests.condition(manifest, "Failed")
    ended = manifests.condition(manifest, "Complete")
    complete = ended.get("status") == "True"
    if not complete:
        ended = failed
    over = ended.get("status") == "True"
    said = outcome.read(_container(pod, "terminated").get("message"))
    proven = complete or (said is not None and said.result == "applied")
    return Job(
        name=manifests.name(manifest),
        digest=notes.get(DIGEST, ""),
        attempt=number(notes.get(ATTEMPT, "")) or 1,
        source=notes.get(SOURCE, ""),
        origin=notes.get(ORIGIN, ""),
        state="complete" if proven else "failed" if over else "unfinished",
        finished=manifests.timestamp(ended.get("lastTransitionTime")) if over else None,
        why=str(failed.get("reason") or ""),
        outcome=said,
        waits=its_pod is None,
        trouble=_CANNOT_START.get(str(_container(pod, "waiting").get("reason")), ""),
    )


def _container(pod: Manifest, state: str) -> Manifest:
    """Return that state of the Pod's container, empty when it is in another."""
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        if entry.get("name") == CONTAINER:
            found: Manifest = (entry.get("state") or {}).get(state) or {}
            return found
    return {}

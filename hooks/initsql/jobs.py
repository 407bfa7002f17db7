"""The Jobs of a cluster as they were observed: which attempt each is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from hooks.core import manifests
from hooks.core.contract import Request
from hooks.core.manifests import Manifest
from hooks.initsql import outcome
from hooks.initsql.outcome import Outcome

UID = "database.ddupan.top/init-sql-uid"
"""Label of the Jobs and their Pods: the cluster's UID. Selecting by it finds both."""
DIGEST = "database.ddupan.top/init-sql-digest"
ATTEMPT = "database.ddupan.top/init-sql-attempt"
SOURCE = "database.ddupan.top/init-sql-configmap"
ORIGIN = "database.ddupan.top/init-sql-origin"
"""Annotations of a Job: what it runs, which attempt it is, from where, and for what."""

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

    Attributes:
        source: the ConfigMap whose SQL it runs.
        origin: where the cluster asked for it.
        finished: when it ended, None when that is not known.
        why: the Job controller's reason of a failure.
        outcome: what its Pod said at its end.
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
    trouble: str = ""


def observed(request: Request) -> tuple[Job, ...]:
    """Return the Jobs that are not being deleted, by attempt."""
    pods = {
        (manifests.metadata(pod).get("labels") or {}).get(_JOB_NAME): pod
        for pod in request.related.get("Pod.v1", {}).values()
        if UID in (manifests.metadata(pod).get("labels") or {})
    }
    jobs = [
        _job(manifest, pods.get(manifests.name(manifest)) or {})
        for manifest in request.children.get("Job.batch/v1", {}).values()
        if not manifests.deleting(manifest)
    ]
    return tuple(sorted(jobs, key=lambda job: (job.attempt, job.name)))


def _job(manifest: Manifest, pod: Manifest) -> Job:
    notes = manifests.annotations(manifest)
    attempt = notes.get(ATTEMPT, "")
    complete = manifests.condition(manifest, "Complete")
    failed = manifests.condition(manifest, "Failed")
    ended = complete if complete.get("status") == "True" else failed
    over = ended.get("status") == "True"
    return Job(
        name=manifests.name(manifest),
        digest=notes.get(DIGEST, ""),
        attempt=int(attempt) if attempt.isascii() and attempt.isdecimal() else 1,
        source=notes.get(SOURCE, ""),
        origin=notes.get(ORIGIN, ""),
        state="unfinished" if not over else "complete" if ended is complete else "failed",
        finished=manifests.timestamp(ended.get("lastTransitionTime")) if over else None,
        why=str(failed.get("reason") or ""),
        outcome=outcome.read(_container(pod, "terminated").get("message")),
        trouble=_CANNOT_START.get(str(_container(pod, "waiting").get("reason")), ""),
    )


def _container(pod: Manifest, state: str) -> Manifest:
    """Return that state of the Pod's one container, empty when it is in another."""
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        found: Manifest = (entry.get("state") or {}).get(state) or {}
        return found
    return {}

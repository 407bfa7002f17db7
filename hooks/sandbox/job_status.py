"""What the Job controller and the kubelet write into the status of a Job and of its Pod.

Idea: pure functions; a Job's conditions come in the pairs that Kubernetes has written since 1.31.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.core import manifests

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

BACKOFF_LIMIT = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")
_COMPLETE = ("CompletionsReached", "Reached expected number of succeeded pods")


def waits(job: Manifest) -> bool:
    """Say whether a Job is to run: it is neither at its end, nor going away, nor suspended."""
    types = ("Complete", "Failed")
    ended = any(manifests.condition(job, type_).get("status") == "True" for type_ in types)
    return not (ended or manifests.deleting(job) or job["spec"].get("suspend"))


def job_running(started: str) -> Manifest:
    """Return the status of a Job with one Pod."""
    return {"active": 1, "ready": 1, "startTime": started, "uncountedTerminatedPods": {}}


def job_complete(status: Manifest, now: str) -> Manifest:
    """Return the status of a Job whose Pod succeeded."""
    return _ended(status) | {
        "succeeded": 1,
        "completionTime": now,
        "conditions": _conditions(("SuccessCriteriaMet", "Complete"), _COMPLETE, now),
    }


def job_failed(status: Manifest, failed: int, why: tuple[str, str], now: str) -> Manifest:
    """Return the status of a Job that is given up."""
    return _ended(status) | {
        "failed": failed,
        "conditions": _conditions(("FailureTarget", "Failed"), why, now),
    }


def _ended(status: Manifest) -> Manifest:
    kept = {key: value for key, value in status.items() if key not in ("active", "ready")}
    return {**kept, "ready": 0}


def _conditions(types: tuple[str, str], why: tuple[str, str], now: str) -> list[Manifest]:
    reason, message = why
    common = {"status": "True", "reason": reason, "message": message}
    return [
        {"type": type_, **common, "lastProbeTime": now, "lastTransitionTime": now}
        for type_ in types
    ]


def pod_running(pod: Manifest, started: str) -> Manifest:
    """Return the status of a Pod whose container runs."""
    state = {"running": {"startedAt": started}}
    return {
        "phase": "Running",
        "startTime": started,
        "containerStatuses": [_container(pod, state, ready=True)],
    }


def pod_ended(pod: Manifest, status: Manifest, *, code: int, message: str, now: str) -> Manifest:
    """Return the status of a Pod whose container has ended and is not started again."""
    started = status["startTime"]
    terminated = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": started,
        "finishedAt": now,
    }
    terminated |= {"message": message} if message else {}
    return {
        "phase": "Failed" if code else "Succeeded",
        "startTime": started,
        "containerStatuses": [_container(pod, {"terminated": terminated}, ready=False)],
    }


def _container(pod: Manifest, state: Manifest, *, ready: bool) -> Manifest:
    spec = pod["spec"]["containers"][0]
    return {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
    }

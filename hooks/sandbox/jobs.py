"""A double of the Job controller and the kubelet: a Job's Pod is a process of this machine.

Idea: an unfinished Job gets a Pod, its process runs with the token of the Job's ServiceAccount, and
what becomes of it is written into both. A Job that is deleted, or runs beyond its deadline, has its
process killed. Either a thread follows the Jobs, or a test settles them step by step.

Limits: one Pod at a time; no resumption, time to live, scheduling or grace periods; a Pod that
failed is followed by the next one at once.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox import job_pod, job_status
from hooks.sandbox.edits import edit_status
from hooks.sandbox.follower import Follower
from hooks.sandbox.kinds import JOB, POD, SERVICE_ACCOUNT, ApiError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.api_server import ApiServer
    from hooks.sandbox.job_pod import PodProcess
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Change, Cluster

_STOP_SECONDS = 10.0


@dataclass(slots=True)
class _Run:
    """A Job at work."""

    job: Manifest
    thread: threading.Thread | None = None
    pod_uid: str = ""
    container: PodProcess | None = None
    ended: bool = False

    def kill(self) -> None:
        if self.container is not None:
            self.container.process.kill()


class Jobs:
    """The Jobs of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        api: ApiServer,
        directory: Path,
        clock: Callable[[], datetime],
    ) -> None:
        """Use an existing directory for the files of Pods; `api` is how they reach the cluster."""
        self._cluster = cluster
        self._api = api
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._runs: dict[str, _Run] = {}
        self._stopping = False
        self._follower = Follower(cluster, (JOB, SERVICE_ACCOUNT), self.begin)
        self._unsubscribe = cluster.subscribe(self._told)

    def start(self) -> None:
        """Follow the Jobs in a thread until `stop`."""
        self._follower.start()

    def stop(self) -> None:
        """Kill what runs, and follow nothing any more."""
        self._stopping = True
        self._follower.stop()
        self._unsubscribe()
        for run in self._running():
            run.kill()
            if run.thread is not None:
                run.thread.join(_STOP_SECONDS)

    def begin(self) -> int:
        """Start a process for each Job that waits for one; return how many."""
        started = 0
        for job in self._cluster.list(JOB):
            uid = manifests.uid(job)
            if not job_status.waits(job) or not self._has_account(job):
                continue
            with self._lock:
                if uid in self._runs or self._stopping:
                    continue
                run = self._runs[uid] = _Run(job)
            run.thread = threading.Thread(target=self._run, args=(run,), daemon=True)
            run.thread.start()
            started += 1
        return started

    def settle(self) -> int:
        """Run all Jobs that wait to their end; return how many that were."""
        started = self.begin()
        for run in self._running():
            if run.thread is not None:
                run.thread.join()
        return started

    def logs(self) -> str:
        """Return everything that Pods have printed so far."""
        files = sorted(self._directory.glob("*/log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def _told(self, change: Change, obj: Manifest, /) -> None:
        """Kill what runs for a Job or a Pod that is gone."""
        if change == "DELETED":
            uid = manifests.uid(obj)
            for run in self._running():
                if uid in (manifests.uid(run.job), run.pod_uid):
                    run.kill()

    def _running(self) -> list[_Run]:
        with self._lock:
            return [run for run in self._runs.values() if not run.ended]

    def _has_account(self, job: Manifest) -> bool:
        """Say whether the ServiceAccount exists; without it a Pod is refused, again and again."""
        account = job_pod.account_of(job)
        found = self._cluster.get(SERVICE_ACCOUNT, manifests.namespace(job), account)
        if found is None and account != "default":
            text = f'Error creating: pods is forbidden: serviceaccount "{account}" not found'
            if not any(event["message"] == text for event in self._cluster.events):
                self._cluster.record_event(job, "FailedCreate", text)
            return False
        return True

    def _run(self, run: _Run) -> None:
        try:
            self._work(run)
        except ApiError:
            # Its namespace ends, and takes no Pods any more.
            run.kill()
        finally:
            run.ended = True

    def _work(self, run: _Run) -> None:
        """Run Pods until one succeeds or the Job is given up."""
        spec, failed, why = run.job["spec"], 0, None
        seconds = spec.get("activeDeadlineSeconds")
        deadline = None if seconds is None else time.monotonic() + seconds
        started = self._now()
        self._report(JOB, run.job, lambda _: job_status.job_running(started))
        while why is None:
            code = self._attempt(run, deadline)
            if code == 0:
                self._report(JOB, run.job, partial(job_status.job_complete, now=self._now()))
                return
            failed += 1
            if code is None:
                why = job_status.DEADLINE
            elif failed > spec["backoffLimit"]:
                why = job_status.BACKOFF_LIMIT
        end = partial(job_status.job_failed, failed=failed, why=why, now=self._now())
        self._report(JOB, run.job, end)

    def _attempt(self, run: _Run, deadline: float | None) -> int | None:
        """Run one Pod and return its exit code; None when the Job's time is over."""
        pod = self._cluster.create(job_pod.pod_of(run.job))
        run.pod_uid, started = manifests.uid(pod), self._now()
        account = job_pod.account_of(run.job)
        run.container = container = job_pod.start(pod, account, self._api, self._directory)
        if self._cluster.get(JOB, manifests.namespace(pod), manifests.name(run.job)) is None:
            run.kill()
        self._report(POD, pod, lambda _: job_status.pod_running(pod, started))
        left = None if deadline is None else deadline - time.monotonic()
        code = container.process.wait(left)
        self._api.revoke_token(container.token)
        if code is None:
            run.kill()
            with contextlib.suppress(ApiError):
                self._cluster.delete(POD, manifests.namespace(pod), manifests.name(pod))
            return None
        now, message = self._now(), container.message
        end = partial(job_status.pod_ended, pod, code=code, message=message, now=now)
        self._report(POD, pod, end)
        return code

    def _report(self, kind: Kind, obj: Manifest, status: Callable[[Manifest], Manifest]) -> None:
        def change(live: Manifest) -> None:
            new = status(dict(live))
            live.clear()
            live.update(new)

        edit_status(self._cluster, kind, obj, change)

    def _now(self) -> str:
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""A Job's Pod is a real process with the rights of its ServiceAccount, and ends as Pods end."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hooks.core import manifests
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.cluster import CONFIG_MAP, NAMESPACE, ApiError, MemoryCluster
from hooks.sandbox.jobs import Jobs
from hooks.sandbox.kinds import JOB, POD, ROLE, ROLE_BINDING
from tests.sandbox.widgets import BORN, NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority
    from hooks.sandbox.port import Change

RBAC = "rbac.authorization.k8s.io"
READ = """
import sys, kubernetes
kubernetes.config.load_kube_config()
core = kubernetes.client.CoreV1Api()
for name in sys.argv[1:]:
    try:
        print(core.read_namespaced_config_map(name, "default").data["text"])
    except kubernetes.client.ApiException as error:
        print(error.status)
"""


@dataclass
class World:
    """A cluster with the ServiceAccount runner, which has no rights."""

    cluster: MemoryCluster
    api: ApiServer
    jobs: Jobs
    changes: threading.Condition = field(default_factory=threading.Condition)

    def run(self, code: str, *args: str, **spec: Any) -> tuple[Manifest, Manifest]:  # noqa: ANN401 - manifests are untyped
        """Run a Job to its end; return its status and that of its Pod."""
        self.cluster.create(job(code, *args, **spec))
        self.jobs.settle()
        return self.get(JOB, "work")["status"], self.pod()["status"]

    def get(self, kind: Any, name: str) -> Manifest:  # noqa: ANN401 - as above
        found = self.cluster.get(kind, "default", name)
        assert found is not None
        return found

    def pod(self) -> Manifest:
        (found,) = self.cluster.list(POD)
        return found

    def wait_for_pod(self, phase: str) -> None:
        """Wait until a Pod is in a phase; told by the cluster, not by a clock."""

        def there() -> bool:
            pods = self.cluster.list(POD)
            return any((pod.get("status") or {}).get("phase") == phase for pod in pods)

        def told(_change: Change, _obj: Manifest, /) -> None:
            with self.changes:
                self.changes.notify_all()

        unsubscribe = self.cluster.subscribe(told)
        with self.changes:
            assert self.changes.wait_for(there, timeout=30)
        unsubscribe()


@pytest.fixture
def world(authority: Authority, tmp_path: Path) -> Iterator[World]:
    cluster = MemoryCluster([], lambda: NOW)
    cluster.create(named("v1", "ServiceAccount", "runner"))
    certificate = authority.issue("kubernetes", ips=["127.0.0.1"])
    with ApiServer(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={}
    ) as server:
        jobs = Jobs(cluster, server, tmp_path, lambda: NOW)
        yield World(cluster, server, jobs)
        jobs.stop()


def named(api_version: str, kind: str, name: str, **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def job(code: str, *args: str, account: str = "runner", **spec: Any) -> Manifest:  # noqa: ANN401 - as above
    container = {
        "name": "main",
        "image": "registry.example.com/hooks:1",
        "command": ["python", "-c", code],
        "args": list(args),
        "env": [
            {"name": "COLOR", "value": "blue"},
            {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
    }
    template = {
        "metadata": {"labels": {"app": "work"}},
        "spec": {
            "serviceAccountName": account,
            "restartPolicy": "Never",
            "containers": [container],
        },
    }
    return named("batch/v1", "Job", "work", spec={"backoffLimit": 0, "template": template} | spec)


def conditions(reason: str, message: str, *types: str) -> list[Manifest]:
    times = {"lastProbeTime": BORN, "lastTransitionTime": BORN}
    common = {"status": "True", "reason": reason, "message": message} | times
    return [{"type": type_} | common for type_ in types]


def container_status(**terminated: Any) -> Manifest:  # noqa: ANN401 - as above
    state = {"terminated": {"startedAt": BORN, "finishedAt": BORN} | terminated}
    return {
        "name": "main",
        "image": "registry.example.com/hooks:1",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": state,
    }


def test_a_job_that_ends_well_is_complete(world: World) -> None:
    told = "import os; print(os.environ['COLOR'], os.environ['WHERE'])"

    assert world.run(told) == (
        {
            "startTime": BORN,
            "completionTime": BORN,
            "succeeded": 1,
            "ready": 0,
            "uncountedTerminatedPods": {},
            "conditions": conditions(
                "CompletionsReached",
                "Reached expected number of succeeded pods",
                "SuccessCriteriaMet",
                "Complete",
            ),
        },
        {
            "phase": "Succeeded",
            "startTime": BORN,
            "containerStatuses": [container_status(exitCode=0, reason="Completed")],
        },
    )
    assert world.jobs.logs() == "blue default\n"


def test_a_job_that_fails_says_what_its_program_left_as_a_message(world: World) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('42P01'); sys.exit(3)"

    assert world.run(code, "/dev/termination-log") == (
        {
            "startTime": BORN,
            "failed": 1,
            "ready": 0,
            "uncountedTerminatedPods": {},
            "conditions": conditions(
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
                "FailureTarget",
                "Failed",
            ),
        },
        {
            "phase": "Failed",
            "startTime": BORN,
            "containerStatuses": [container_status(exitCode=3, reason="Error", message="42P01")],
        },
    )


def test_a_failed_pod_is_followed_by_another_up_to_the_limit(world: World) -> None:
    world.cluster.create(job("raise SystemExit(1)", backoffLimit=2))

    world.jobs.settle()

    assert world.get(JOB, "work")["status"]["failed"] == 3
    assert [pod["status"]["phase"] for pod in world.cluster.list(POD)] == ["Failed"] * 3


def test_a_job_beyond_its_deadline_loses_its_process_and_its_pod(world: World) -> None:
    world.cluster.create(job("import time; time.sleep(60)", activeDeadlineSeconds=1))

    world.jobs.settle()

    assert world.get(JOB, "work")["status"]["conditions"] == conditions(
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
        "FailureTarget",
        "Failed",
    )
    assert world.cluster.list(POD) == []


def test_the_process_of_a_deleted_job_is_killed(world: World, tmp_path: Path) -> None:
    lifeline = tmp_path / "lifeline"
    os.mkfifo(lifeline)
    world.cluster.create(job("import sys, time; open(sys.argv[1]); time.sleep(60)", str(lifeline)))
    world.jobs.start()
    with lifeline.open("w"):
        world.wait_for_pod("Running")

    world.cluster.delete(JOB, "default", "work")
    world.jobs.settle()

    assert (world.cluster.list(JOB), world.cluster.list(POD)) == ([], [])


def test_a_pod_belongs_to_its_job_and_is_found_by_the_usual_labels(world: World) -> None:
    world.run("")

    created, pod = world.get(JOB, "work"), world.pod()
    uid = manifests.uid(created)
    labels = {
        "app": "work",
        "job-name": "work",
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": "work",
        "batch.kubernetes.io/controller-uid": uid,
    }
    assert (pod["metadata"]["labels"], manifests.controller_uid(pod)) == (labels, uid)
    assert created["spec"]["selector"] == {
        "matchLabels": {"batch.kubernetes.io/controller-uid": uid}
    }


def test_a_job_runs_once(world: World) -> None:
    world.run("")

    assert (world.jobs.settle(), len(world.cluster.list(POD))) == (0, 1)


def test_the_template_of_a_job_is_immutable(world: World) -> None:
    created = world.cluster.create(job(""))
    created["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"

    with pytest.raises(ApiError, match=r"spec\.template: .*: field is immutable"):
        world.cluster.replace(created)


def grant(world: World, name: str) -> None:
    """Let the ServiceAccount read one ConfigMap."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    rule |= {"resourceNames": [name]}
    world.cluster.create(named(ROLE.api_version, "Role", "read", rules=[rule]))
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "read"}
    subject = {"kind": "ServiceAccount", "name": "runner", "namespace": "default"}
    binding = named(ROLE_BINDING.api_version, "RoleBinding", "read", roleRef=reference)
    world.cluster.create(binding | {"subjects": [subject]})


def test_a_program_may_what_the_role_of_its_account_says(world: World) -> None:
    for name in ("mine", "other"):
        world.cluster.create(named("v1", "ConfigMap", name, data={"text": f"text of {name}"}))
    grant(world, "mine")

    world.run(READ, "mine", "other")

    assert world.jobs.logs() == "text of mine\n403\n"
    assert world.cluster.get(CONFIG_MAP, "default", "mine") is not None


def test_the_token_of_a_pod_ends_with_it(world: World) -> None:
    world.run("")

    assert world.api.tokens == {}


def test_without_its_account_a_job_waits_and_says_so(world: World) -> None:
    world.cluster.create(job("", account="late"))
    before = (world.jobs.settle(), [event["message"] for event in world.cluster.events])

    world.cluster.create(named("v1", "ServiceAccount", "late"))

    text = 'Error creating: pods is forbidden: serviceaccount "late" not found'
    assert (before, world.jobs.settle()) == ((0, [text]), 1)


def test_jobs_are_followed_as_they_come(world: World) -> None:
    world.jobs.start()

    world.cluster.create(job(""))

    world.wait_for_pod("Succeeded")


def test_with_its_namespace_a_job_ends_as_well(world: World, tmp_path: Path) -> None:
    lifeline = tmp_path / "lifeline"
    os.mkfifo(lifeline)
    world.cluster.create(job("import sys, time; open(sys.argv[1]); time.sleep(60)", str(lifeline)))
    world.jobs.start()
    with lifeline.open("w"):
        world.wait_for_pod("Running")

    world.cluster.delete(NAMESPACE, None, "default")
    world.jobs.settle()

    assert world.cluster.get(NAMESPACE, None, "default") is None

"""What a real API server makes of the CRD of DruidIngestion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.chart.conftest import Admin
from tests.manifests.manifests import CRDS, Manifest

NAMESPACE = "ingestions"
TIME = "2026-01-02T03:04:05Z"
ROWS = {"processed": 9_007_199_254_740_993, "withError": 0, "unparseable": 1, "thrownAway": 2}
STATUS = {
    "observedGeneration": 1,
    "state": "Running",
    "taskId": "clicks",
    "currentIngestionSpec.json": '{"type":"kafka"}',
    "type": "DruidIngestionControllerCreateSuccess",
    "message": "DruidIngestionControllerCreateSuccess",
    "status": "True",
    "reason": '{"id":"clicks"}',
    "lastUpdateTime": TIME,
    "compaction": {"any": {"thing": [1]}},
    "rules": [{"type": "loadForever"}],
    "applied": {"datasource": "clicks", "rules": "hash", "refused": "compaction/x", "error": "no"},
    "task": {
        "id": "clicks",
        "state": "RUNNING",
        "startTime": TIME,
        "durationSeconds": 2.5,
        "rows": ROWS,
        "error": "none",
    },
    "supervisor": {
        "id": "clicks",
        "state": "RUNNING",
        "detailedState": "CREATING_TASKS",
        "healthy": True,
        "suspended": False,
        "errors": ["one"],
    },
    "history": [
        {
            "id": "clicks",
            "attempt": 1,
            "specHash": "hash",
            "state": "Running",
            "type": "kafka",
            "druidCluster": "tiny",
            "datasource": "clicks",
            "submittedAt": TIME,
            "endedAt": TIME,
            "stoppingAt": TIME,
            "requestedId": "other",
            "rejectedWith": "hash",
            "copyHash": "hash",
            "adopted": True,
            "suspended": False,
            "rows": ROWS,
            "error": "none",
        }
    ],
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "observedGeneration": 1,
            "lastTransitionTime": TIME,
            "reason": "SupervisorRunning",
            "message": "",
        }
    ],
}


def ingestion(name: str, **spec: Any) -> str:  # noqa: ANN401  parts of a manifest
    manifest: Manifest = {
        "apiVersion": "druid.apache.org/v1alpha1",
        "kind": "DruidIngestion",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"druidCluster": "tiny", "ingestion": {"type": "kafka", "spec": "{}"}, **spec},
    }
    return json.dumps(manifest)


@pytest.fixture(scope="module")
def served(admin: Admin) -> Iterator[Admin]:
    """Serve the kind, and hold one object that Druid has."""
    admin.run("kubectl", "apply", "--server-side", "--force-conflicts", "-k", CRDS)
    admin.established()
    admin.run("kubectl", "create", "namespace", NAMESPACE)
    admin.run("kubectl", "create", "--validate=strict", "-f", "-", stdin=ingestion("clicks"))
    patch = json.dumps({"status": STATUS})
    there = ("druidingestion", "clicks", "-n", NAMESPACE, "--subresource=status")
    admin.run("kubectl", "patch", *there, "--type=merge", "-p", patch)
    yield admin
    admin.run("kubectl", "delete", "namespace", NAMESPACE)


def test_a_status_is_read_back_as_it_was_written(served: Admin) -> None:
    assert served.get("druidingestion", "clicks", "-n", NAMESPACE)["status"] == STATUS


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.druidCluster=tiny,spec.ingestion.type=kafka", ["clicks"]),
        ("status.state=Running", ["clicks"]),
        ("status.state=Failed", []),
    ],
)
def test_objects_are_found_by_their_fields(served: Admin, selector: str, found: list[str]) -> None:
    items = served.get("druidin", "-A", "--field-selector", selector)["items"]
    assert [item["metadata"]["name"] for item in items] == found


def test_kubectl_shows_what_people_ask_for(served: Admin) -> None:
    shown = served.run("kubectl", "get", "druidin", "-n", NAMESPACE).splitlines()
    heads = ["NAME", "TYPE", "TASK/SUPERVISOR", "STATE", "READY", "AGE"]
    assert shown[0].split() == heads
    assert shown[1].split()[:-1] == ["clicks", "kafka", "clicks", "Running", "True"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"druidCluster": "other"}, "spec.druidCluster"),
        ({"ingestion": {"type": "sql"}}, "spec.ingestion.type"),
    ],
)
def test_what_druid_has_keeps_its_cluster_and_type(
    served: Admin, change: Manifest, field: str
) -> None:
    there = ("druidingestion", "clicks", "-n", NAMESPACE, "--type=merge")
    code, said = served.attempt("kubectl", "patch", *there, "-p", json.dumps({"spec": change}))
    assert code == 1
    assert f"{field} is immutable once something was submitted: restore the previous value" in said


def test_the_long_name_of_the_type_is_no_change(served: Admin) -> None:
    change = json.dumps({"spec": {"ingestion": {"type": "Kafka"}}})
    there = ("druidingestion", "clicks", "-n", NAMESPACE, "--type=merge", "--dry-run=server")
    served.run("kubectl", "patch", *there, "-p", change)


def test_an_object_of_druid_operator_is_taken(served: Admin) -> None:
    old = ingestion("old", suspend=False, auth={"type": "", "secretRef": {}})
    served.run("kubectl", "create", "--validate=strict", "-f", "-", stdin=old)


def test_a_status_without_its_two_required_fields_is_refused(served: Admin) -> None:
    served.run("kubectl", "create", "-f", "-", stdin=ingestion("bare"))
    patch = json.dumps({"status": {"state": "Running"}})
    there = ("druidingestion", "bare", "-n", NAMESPACE, "--subresource=status")
    code, said = served.attempt("kubectl", "patch", *there, "--type=merge", "-p", patch)
    assert code == 1
    assert "status.taskId: Required value" in said
    assert "status.currentIngestionSpec.json: Required value" in said


def test_kubectl_explains_with_an_example(served: Admin) -> None:
    shown = served.run("kubectl", "explain", "druidingestions")
    assert (
        "    \n      apiVersion: druid.apache.org/v1alpha1\n      kind: DruidIngestion\n" in shown
    )

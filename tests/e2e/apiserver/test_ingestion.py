"""Ingestions of each type live on a real API server, with a double of Druid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hooks.core import manifests
from hooks.sandbox.druid import DruidServer
from tests.docs.pages import ROOT
from tests.e2e.apiserver.ingestions import druid, inserting, sample, submitted
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.refusals import refusals, rules

NAMESPACE = "druid"
BATCHES = ["native-batch", "sql", "index-hadoop"]
STREAMS = ["kafka", "kinesis"]
SAMPLES = sorted(
    path.stem.removeprefix("druidingestion-")
    for path in (ROOT / "samples").glob("druidingestion-*.yaml")
)
IMMUTABLE = {
    "druidCluster": (
        "spec.druidCluster is immutable once something was submitted: restore the previous value,"
        " or create another DruidIngestion"
    ),
    "ingestion.type": (
        "spec.ingestion.type is immutable once something was submitted: restore the previous value,"
        " or create another DruidIngestion"
    ),
}


@pytest.fixture(scope="module")
def server(operation: Operation) -> Iterator[DruidServer]:
    with druid(operation, NAMESPACE, seconds=0.2) as server:
        yield server


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_accepted(operation: Operation, name: str) -> None:
    path = str(ROOT / "samples" / f"druidingestion-{name}.yaml")
    said = operation.administrator.kubectl("apply", "--dry-run=server", "-f", path)
    assert said.endswith(" created (server dry run)\n")


@pytest.mark.parametrize("kind", BATCHES + STREAMS)
def test_a_sample_becomes_ready_and_goes(
    operation: Operation, server: DruidServer, kind: str
) -> None:
    who, wanted = operation.administrator, sample(kind)
    name = manifests.name(wanted)
    before = len(server.submissions)
    who.apply(wanted)
    found = operation.becomes_ready("druidin", name, NAMESPACE)
    task = found["status"]["taskId"]
    state = "Running" if kind in STREAMS else "Succeeded"
    line = who.kubectl("get", "druidin", name, "-n", NAMESPACE, "--no-headers").split()
    assert line[:-1] == [name, kind, task, state, "True"]
    assert len(server.submissions) == before + 1
    assert (task in server.supervisors) == (kind in STREAMS)
    who.kubectl("delete", "druidin", name, "-n", NAMESPACE, "--timeout=60s")
    assert task not in server.supervisors


@pytest.mark.usefixtures("server")
def test_an_idle_ingestion_is_not_written(operation: Operation) -> None:
    """A status that were pruned, or defaulted, would be written at every sync."""
    wanted = sample("native-batch")
    named = ("druidin", manifests.name(wanted), NAMESPACE)
    operation.administrator.apply(wanted)
    operation.becomes_ready(*named)

    def rest() -> object:
        for _ in range(2):
            operation.looks_again(*named)
        return operation.get(*named)["status"]

    before, asked = rest(), operation.status_writes()
    assert (rest(), operation.status_writes()) == (before, asked)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("druidCluster", {"druidCluster": "another"}),
        ("ingestion.type", {"ingestion": sample("kafka")["spec"]["ingestion"]}),
    ],
    ids=IMMUTABLE,
)
def test_what_was_submitted_is_immutable(
    operation: Operation, field: str, change: dict[str, object]
) -> None:
    wanted = inserting(NAMESPACE)
    submitted(operation, wanted)
    wanted["spec"] |= change
    assert refusals(operation, wanted) == [f"spec.{field}: Invalid value: {IMMUTABLE[field]}"]


def test_every_rule_is_seen_to_refuse() -> None:
    assert set(rules("druidingestions")) == set(IMMUTABLE.values())


def test_a_namespace_with_a_running_task_ends(operation: Operation) -> None:
    with druid(operation, "draining", seconds=None) as server:
        found = submitted(operation, inserting("draining"))
        assert server.tasks[found["status"]["taskId"]].state == "RUNNING"
        operation.administrator.kubectl("delete", "namespace", "draining", "--timeout=120s")

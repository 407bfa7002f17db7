"""The status: what stays, what moves, and what an API server keeps of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.core.conditions import stamp
from hooks.core.manifests import Manifest
from hooks.effects.ports.druid import Rows
from hooks.ingestion import record
from hooks.ingestion.record import Record
from hooks.ingestion.report import MAX_MESSAGE
from hooks.sandbox.druid import Fault
from tests.ingestion.world import BATCH, KAFKA, SQL, START, A, B, IngestionWorld, edited

CRD = Path(__file__).parents[2] / "crds" / "druidingestions.druid.apache.org.yaml"
CLICKS = "checkout_clicks"

FULL = Record(
    id="task-1",
    attempt=2,
    spec_hash="hash",
    state="Rejected",
    type="kafka",
    cluster="tiny",
    datasource="d",
    submitted_at="2026-03-01T12:00:00Z",
    ended_at="2026-03-01T12:01:00Z",
    stopping_at="2026-03-01T12:02:00Z",
    error="no",
    rows=Rows(1, 2, 3, 4),
    requested_id="asked",
    adopted=True,
    rejected_with="inputs",
    copy_hash="copy",
    suspended=False,
)


def test_a_record_survives_the_status() -> None:
    entries = json.loads(json.dumps(record.write([FULL])))
    assert record.read({"history": entries}) == (FULL,)


@pytest.mark.parametrize("entry", [None, "x", {"id": "a", "state": "Odd"}, {"state": "Running"}])
def test_an_entry_that_we_did_not_write_is_left_out(entry: object) -> None:
    assert record.read({"history": [entry]}) == ()


def test_an_outage_moves_only_what_it_must(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    steady = world.status()
    world.druid.faults.append(Fault(times=999))
    world.wait(60)
    world.sync()
    assert world.conditions() == {
        "Accepted": ("True", "Accepted"),
        "Submitted": ("True", "Submitted"),
        "Ready": ("False", "DruidUnavailable"),
        "Suspended": ("False", "NotSuspended"),
    }
    kept = {"taskId", "history", "supervisor", "type", "reason", "state"}
    assert {key: world.status()[key] for key in kept} == {key: steady[key] for key in kept}
    during = world.status()
    world.wait(600)
    world.sync()
    assert world.status() == during
    world.druid.faults.clear()
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")


def test_the_delay_grows_with_the_outage_and_ends_with_it(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.sync()
    world.druid.faults.append(Fault(times=999))
    delays = []
    for pause in (0, 5, 20, 600):
        world.wait(pause)
        delays.append(world.sync().recheck)
    assert delays == [2, 5, 25, 60]
    world.druid.faults.clear()
    world.settle()
    assert world.sync().recheck == 2
    world.wait(40)
    assert world.sync().recheck == 42
    world.druid.tasks.succeed(world.task())
    assert world.sync().recheck is None


def test_the_time_of_a_condition_moves_when_its_status_does(world: IngestionWorld) -> None:
    world.make(BATCH)
    world.settle()
    world.wait(100)
    world.druid.tasks.succeed(world.task())
    world.sync()
    times = {one["type"]: one["lastTransitionTime"] for one in world.status()["conditions"]}
    assert times["Accepted"] == stamp(START)
    assert times["Ready"] == stamp(world.now)


def test_a_bad_edit_keeps_what_runs_and_what_is_known_of_it(world: IngestionWorld) -> None:
    world.make(KAFKA, "kafka")
    world.settle()
    before = world.status()
    world.edit("{")
    assert world.asked(world.settle) == []
    after = world.status()
    kept = {"taskId", "currentIngestionSpec.json", "history", "supervisor", "type", "state"}
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    assert world.conditions()["Submitted"] == ("True", "Submitted")
    assert world.conditions()["Ready"] == ("False", "InvalidSpec")
    world.edit(KAFKA)
    world.settle()
    assert world.condition() == ("True", "SupervisorRunning")
    assert len(world.runs) == 1


def test_warnings_are_in_the_accepted_condition(world: IngestionWorld) -> None:
    world.make(edited(BATCH, "tuningConfig", value={}))
    world.settle()
    assert world.condition("Accepted") == ("True", "Accepted")
    assert "takes no notice of tuningConfig" in world.message("Accepted")


def test_a_message_is_never_longer_than_an_api_server_takes(world: IngestionWorld) -> None:
    document = json.loads(BATCH) | {f"unknown-{number}": number for number in range(5000)}
    world.make(json.dumps(document))
    world.sync()
    assert world.condition("Accepted") == ("True", "Accepted")
    assert len(world.message("Accepted")) == MAX_MESSAGE


def schema() -> Manifest:
    definition = yaml.safe_load(CRD.read_text())
    version = definition["spec"]["versions"][0]
    found: Manifest = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    return found


def pruned(value: Any, shape: Manifest, path: str = "status") -> list[str]:  # noqa: ANN401
    """Return the paths that an API server would take away."""
    if shape.get("x-kubernetes-preserve-unknown-fields"):
        return []
    if isinstance(value, list):
        return [
            found for item in value for found in pruned(item, shape.get("items", {}), f"{path}[]")
        ]
    if not isinstance(value, dict):
        return []
    members = shape.get("properties", {})
    return [
        found
        for key, item in value.items()
        for found in (
            pruned(item, members[key], f"{path}.{key}") if key in members else [f"{path}.{key}"]
        )
    ]


def test_an_api_server_keeps_every_part_of_the_status(world: IngestionWorld) -> None:
    statuses = [{"history": record.write([FULL])}]
    world.make(A, ingestion={"rules": [{"type": "loadForever"}, {"type": "nonsense"}]})
    world.settle()
    statuses.append(world.status())
    world.edit(B, ingestion={"rules": [{"type": "loadForever"}], "compaction": {"taskPriority": 1}})
    world.settle()
    world.druid.tasks.fail(world.running[0], "x")
    world.settle()
    statuses.append(world.status())
    world.make(KAFKA, "kafka", name="stream")
    world.settle("stream")
    world.druid.supervisors.lose_stream(CLICKS, "gone")
    world.settle("stream")
    statuses.append(world.status("stream"))
    world.make(SQL, "sql", name="sql")
    world.settle("sql")
    statuses.append(world.status("sql"))
    shape = schema()
    assert sorted({path for status in statuses for path in pruned(status, shape)}) == []

"""Recorded calls: what is one, and what differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from hooks import telemetry, wsgi
from hooks.app import Hook, answer
from hooks.core import contract
from hooks.core.deadline import Deadline
from hooks.recordings import BadRecording, Recording, read
from hooks.settings import Settings
from tests.app.running import ROOT

CALLS = ROOT / "tests" / "fixtures" / "calls"
RECORDED = sorted(CALLS.glob("*.json"))

GOOD = {
    "resource": "tenant",
    "hook": "customize",
    "request": {"parent": {"metadata": {"name": "orders"}}},
    "answer": {"relatedResources": []},
}


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "call.json"
    path.write_text(json.dumps(GOOD))
    assert read(path) == Recording("tenant", "customize", GOOD["request"], GOOD["answer"])  # type: ignore[arg-type]  # a literal


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"resource": 1}, "resource is missing or not a string"),
        ({"hook": "delete"}, "hook is not one of sync, finalize, customize"),
        ({"request": []}, "request is missing or not an object"),
        ({"answer": None}, "answer is missing or not an object"),
    ],
)
def test_what_is_no_recording_says_why(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    path = tmp_path / "call.json"
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(BadRecording, match=problem):
        read(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_file_without_an_object_is_no_recording(tmp_path: Path, text: str) -> None:
    path = tmp_path / "call.json"
    path.write_text(text)
    with pytest.raises(BadRecording):
        read(path)
    with pytest.raises(BadRecording, match="No such file"):
        read(tmp_path / "none.json")


def test_an_equal_answer_differs_in_nothing_whatever_its_order() -> None:
    recording = Recording("tenant", "sync", {}, {"a": 1, "b": [1, 2]})
    assert recording.differences(b'{"b": [1, 2], "a": 1}') == ""


def test_a_difference_is_shown_as_a_diff() -> None:
    recording = Recording("tenant", "sync", {}, {"finalized": False})
    assert recording.differences(b'{"finalized": true}').splitlines()[-4:] == [
        " {",
        '-  "finalized": false',
        '+  "finalized": true',
        " }",
    ]


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Give settings that lead to no server: a call that asks one is answered otherwise."""
    monkeypatch.chdir(ROOT)
    lines = (CALLS / "settings.env").read_text().splitlines()
    return Settings.from_env(dict(line.split("=", 1) for line in lines))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_call_is_answered_as_it_was(path: Path, settings: Settings) -> None:
    recording = read(path)
    controllers = wsgi.controllers(settings, telemetry.Effects(telemetry.Metrics()))
    (controller,) = (each for each in controllers if each.resource == recording.resource)
    reply = answer(
        controller,
        recording.hook,
        contract.parse(recording.body()),
        lambda: wsgi.services(settings)(Deadline(settings.request_seconds)),
    )
    assert recording.differences(reply.body) == ""


def test_there_is_a_recorded_call_of_each_hook_of_each_resource(settings: Settings) -> None:
    controllers = wsgi.controllers(settings, telemetry.Effects(telemetry.Metrics()))
    resources = {controller.resource for controller in controllers}
    hooks = {(resource, hook) for resource in resources for hook in get_args(Hook)}
    # Deleting a PostgresCluster does not wait for its hooks.
    hooks -= {("initsql", "finalize"), ("initsql-pgo", "finalize")}
    assert {(each.resource, each.hook) for each in map(read, RECORDED)} == hooks

"""Recorded calls: what is one, and what differs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hooks.recordings import BadRecording, Recording, read

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

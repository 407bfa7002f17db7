"""A specification as text: what is read, what is refused and where, and what equals what."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooks.ingestion import document, drift
from hooks.ingestion.document import MAX_BYTES, Unreadable
from hooks.ingestion.identity import as_floats, canonical, id_problem, proves, task_id
from tests.ingestion.world import text_of


def problem(text: str) -> str:
    with pytest.raises(Unreadable) as caught:
        document.read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            '{"a": 1,\n "b": {"x": 1, "x": 2}}',
            "line 2, column 16: the member 'x' is there twice: remove one",
            id="a member twice",
        ),
        pytest.param(
            '{"a\\u0062": 1, "ab": 2}',
            "line 1, column 16: the member 'ab' is there twice: remove one",
            id="a member twice, spelled in two ways",
        ),
        pytest.param('{"a":\n NaN}', "line 2, column 2: NaN is no JSON number", id="NaN"),
        pytest.param(
            '{"a": -Infinity}', "line 1, column 7: -Infinity is no JSON number", id="infinity"
        ),
        pytest.param(
            '{"a": "\\ud800"}',
            "line 1, column 7: the string holds half of a surrogate pair",
            id="escaped half of a surrogate pair",
        ),
        pytest.param(
            '{"a": "\ud800"}',
            "line 1, column 8: half of a surrogate pair",
            id="half of a surrogate pair",
        ),
        pytest.param(
            "[" * 201 + "]" * 201,
            "line 1, column 201: nested deeper than 200 levels",
            id="nested too deeply",
        ),
        pytest.param(
            "{}" + " " * MAX_BYTES,
            f"{MAX_BYTES + 2} bytes are too many: {MAX_BYTES} are allowed",
            id="too large",
        ),
        pytest.param(
            "\ufeff{}",
            "line 1, column 1: it begins with a byte order mark: remove it",
            id="byte order mark",
        ),
        pytest.param(" \n", "line 1, column 1: it is empty", id="empty"),
        pytest.param(
            "[]", "line 1, column 1: it is valid JSON, but not an object ({...})", id="a list"
        ),
        pytest.param(
            "null", "line 1, column 1: it is valid JSON, but not an object ({...})", id="null"
        ),
        pytest.param(
            '{"a": ' + "9" * 5000 + "}",
            "line 1, column 7: a number of more than 1000 characters",
            id="a very long number",
        ),
        pytest.param(
            text_of(10), "line 2, column 3: JSON has no comments: remove them", id="a comment"
        ),
        pytest.param(
            text_of(11),
            "line 1, column 1: this is YAML, and spec is JSON as text: write it as JSON, or put it"
            " into spec.ingestion.nativeSpec as an object",
            id="YAML",
        ),
        pytest.param(
            '{"a": [1,\n]}',
            "line 2, column 1: Expecting value; JSON has no comma after the last member",
            id="a comma too many in a list",
        ),
        pytest.param(
            '{"a": 1,}',
            "line 1, column 9: Expecting property name enclosed in double quotes; JSON has no"
            " comma after the last member",
            id="a comma too many in an object",
        ),
        pytest.param('{"a": tru}', "line 1, column 7: Expecting value", id="a word that is none"),
        pytest.param('{"a": "x', "line 1, column 7: Unterminated string starting at", id="cut off"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, expected: str) -> None:
    assert problem(text) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Unreadable):
        assert isinstance(document.read(text), dict)


TEXT = st.text('ab"\\\n/é東🚲', max_size=5)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_what_is_written_reads_as_the_same(value: document.Document) -> None:
    assert canonical(document.read(document.write(value))) == canonical(value)


def test_numbers_and_the_order_of_members_survive() -> None:
    text = '{"z":9007199254740993,"a":0.1000000000000000055511151231257827,"b":1E+400,"c":-0.10}'
    assert document.write(document.read(text)) == text


def test_nothing_of_a_manifest_is_lost() -> None:
    value = {"a": 0.1, "b": 9007199254740993, "c": [True, None, "é"]}
    assert document.exact(value) == {
        "a": Decimal("0.1"),
        "b": 9007199254740993,
        "c": [True, None, "é"],
    }


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ('{"a": 25000}', '{"a": 2.5e4}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 0}', '{"a": -0.0}', True),
        ('{"a": 1e999999999}', '{"a": 10e999999998}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 0}', '{"a": false}', False),
        ('{"a": 0}', '{"a": null}', False),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": []}', '{"a": {}}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": null}', "{}", False),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}', False),
        ('{"a": 0.1}', '{"a": 0.10000000000000001}', False),
        ('{"a": 1e400}', '{"a": 2e400}', False),
        ('{"a": 10}', '{"a": 1}', False),
    ],
)
def test_equality_is_by_json_value(one: str, other: str, same: bool) -> None:  # noqa: FBT001
    assert (canonical(document.read(one)) == canonical(document.read(other))) is same


def test_the_spelling_of_numbers_and_members_is_no_change() -> None:
    first = canonical(document.read(text_of(1)))
    assert canonical(document.read(text_of(12))) == first
    assert canonical(document.read(text_of(13))) == first


def test_a_reader_of_floats_does_not_see_what_floats_lose() -> None:
    one, other = {"a": 9007199254740993}, {"a": 9007199254740992}
    assert as_floats(one) == as_floats(other)
    assert as_floats({"a": 1}) != as_floats({"a": 2})
    assert as_floats({"a": Decimal("1e999")}) == as_floats({"a": 10**400})


def test_an_id_is_of_one_object_one_content_and_one_run() -> None:
    id_ = task_id("task", "été /1", "uid-1", "hash", 1)
    assert id_ == f"_t___1_{id_[-32:]}"
    assert proves(id_, "uid-1", "hash", 1)
    others = [("uid-2", "hash", 1), ("uid-1", "other", 1), ("uid-1", "hash", 2)]
    assert [proves(id_, *other) for other in others] == [False, False, False]
    assert task_id("sql", "été /1", "uid-1", "hash", 1) == f"query-{id_}"


def test_a_derived_id_is_one_that_druid_takes() -> None:
    for label in ("relevés été 東京", "....", "a/b", "x" * 500, "🚲", "a\tb"):
        assert id_problem(task_id("task", label, "uid", "hash", 1)) == ""


@pytest.mark.parametrize(
    ("id_", "expected"),
    [
        ("relevés été 東京", ""),
        ("x" * 255, ""),
        ("", "it is empty"),
        (".a", "it begins with '.'"),
        ("a/b", "it holds '/'"),
        ("a\tb", "it holds white space other than ' '"),
        ("a\u00a0b", "it holds white space other than ' '"),
        ("a\x01b", "it holds control characters"),
        ("🚲", "it holds characters outside of Unicode's first plane, such as emoji"),
        ("x" * 256, "it is longer than 255 characters"),
    ],
)
def test_ids_that_druid_refuses_are_refused_before(id_: str, expected: str) -> None:
    assert id_problem(id_) == expected


def test_a_copy_is_compared_as_far_as_the_user_wrote_it() -> None:
    written = json.loads('{"spec": {"a": "PT30M", "dimensions": ["x"], "n": {"m": 1}}}')
    spec: dict[str, Any] = {
        "a": "PT1800S",
        "dimensions": [{"name": "x", "type": "string"}],
        "n": {"m": 1},
    }
    before = drift.copy_hash({"spec": spec}, written)
    spec["added"] = "default"
    spec["dimensions"][0]["added"] = True
    assert drift.copy_hash({"spec": spec}, written) == before
    spec["a"] = "PT60S"
    assert drift.copy_hash({"spec": spec}, written) != before

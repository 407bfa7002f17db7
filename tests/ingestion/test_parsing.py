"""What a DruidIngestion may say, and what it means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hooks.core.manifests import Manifest
from hooks.ingestion.model import TYPES, Invalid, Spec
from hooks.ingestion.parsing import parse
from tests.ingestion.world import BATCH, KAFKA, SQL, edited, text_of


def parent(type_: str = "native-batch", text: str = BATCH, **spec: Any) -> Manifest:  # noqa: ANN401
    ingestion = {"type": type_, "spec": text, **spec.pop("ingestion", {})}
    return {
        "metadata": {"name": "load", "namespace": "team-a", "uid": "uid-1", "generation": 1},
        "spec": {"druidCluster": "tiny", "ingestion": ingestion, **spec},
    }


def spec(*args: str, **changes: Any) -> Spec:  # noqa: ANN401
    parsed = parse(parent(*args, **changes))
    assert isinstance(parsed, Spec), parsed
    return parsed


def problem(*args: str, **changes: Any) -> Invalid:  # noqa: ANN401
    parsed = parse(parent(*args, **changes))
    assert isinstance(parsed, Invalid)
    return parsed


def test_an_object_of_the_original_is_valid() -> None:
    parsed = spec(suspend=False, auth={"type": "", "secretRef": {}})
    assert parsed.connection.secret is None
    assert (parsed.suspend, parsed.max_retries, parsed.restore_drift) == (False, 0, False)


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        pytest.param(
            {"druidCluster": ""}, "InvalidSpec", "spec.druidCluster", id="an empty cluster"
        ),
        pytest.param(
            {"ingestion": {"type": "Batch"}}, "UnsupportedType", "'Batch' is none of", id="type"
        ),
        pytest.param(
            {"retryPolicy": {"maxRetries": 11}},
            "InvalidSpec",
            "spec.retryPolicy.maxRetries",
            id="too many retries",
        ),
        pytest.param(
            {"ingestion": {"spec": "[]"}}, "InvalidSpec", "spec.ingestion.spec: line 1", id="a list"
        ),
        pytest.param(
            {"ingestion": {"nativeSpec": {"a": "\ud800"}}},
            "InvalidSpec",
            "spec.ingestion.nativeSpec: line 1",
            id="half of a surrogate pair in an object",
        ),
        pytest.param(
            {"ingestion": {"nativeSpec": {"a": float("inf")}}},
            "InvalidSpec",
            "Infinity is no JSON number",
            id="a number without end in an object",
        ),
        pytest.param(
            {"ingestion": {"spec": "{}"}}, "InvalidSpec", "type is missing", id="no type inside"
        ),
        pytest.param(
            {"ingestion": {"spec": edited(BATCH, "id", value=5)}},
            "InvalidSpec",
            "the id is not a string",
            id="an id that is a number",
        ),
        pytest.param(
            {"ingestion": {"spec": edited(SQL, "context", "sqlQueryId", value=5), "type": "sql"}},
            "InvalidSpec",
            "the id is not a string",
            id="a query id that is a number",
        ),
        pytest.param(
            {"ingestion": {"spec": KAFKA}},
            "InvalidSpec",
            "type 'kafka' does not go with spec.ingestion.type 'native-batch'",
            id="a stream as a batch",
        ),
        pytest.param(
            {"ingestion": {"spec": BATCH, "type": "kafka"}},
            "InvalidSpec",
            "type 'index_parallel' does not go with",
            id="a batch as a stream",
        ),
        pytest.param(
            {"ingestion": {"spec": '{"query": 5}', "type": "sql"}},
            "InvalidSpec",
            "query is missing",
            id="no SQL",
        ),
        pytest.param(
            {"ingestion": {"spec": '{"query": "-- why\\n explain PLAN FOR x"}', "type": "sql"}},
            "InvalidSpec",
            "query is an EXPLAIN",
            id="a question about SQL",
        ),
        pytest.param(
            {"ingestion": {"spec": edited(BATCH, "context", value=[1])}},
            "InvalidSpec",
            "context is not an object",
            id="context",
        ),
        pytest.param(
            {
                "ingestion": {
                    "spec": edited(KAFKA, "spec", "dataSchema", value=None),
                    "type": "kafka",
                }
            },
            "InvalidSpec",
            "dataSchema.dataSource is missing",
            id="a stream to nowhere",
        ),
        pytest.param(
            {"ingestion": {"spec": edited(KAFKA, "suspended", value="yes"), "type": "kafka"}},
            "InvalidSpec",
            "suspended is not true or false",
            id="suspended",
        ),
        pytest.param(
            {"ingestion": {"spec": edited(BATCH, "id", value="a/b")}},
            "InvalidSpec",
            "Druid does not take the id: it holds '/'",
            id="id",
        ),
    ],
)
def test_what_cannot_be_used_is_explained(changes: dict[str, Any], reason: str, words: str) -> None:
    found = problem(**changes)
    assert found.reason == reason
    assert words in found.message


def test_an_object_wins_over_a_text_and_equals_it() -> None:
    written = spec()
    native = spec(text="{", ingestion={"nativeSpec": json.loads(BATCH)})
    assert native.ingestion.hash == written.ingestion.hash


def test_suspended_inside_a_stream_counts_and_is_no_other_content() -> None:
    plain = spec("kafka", KAFKA)
    own = spec("kafka", edited(KAFKA, "suspended", value=True))
    assert (plain.suspend, own.suspend) == (False, True)
    assert plain.ingestion.hash == own.ingestion.hash


@pytest.mark.parametrize(
    ("type_", "text", "datasource", "own_id"),
    [
        ("native-batch", text_of(7), "relevés été 東京", ""),
        ("native-batch", text_of(9), "meter_totals", "nightly-meter-load_2026-05-05"),
        ("kafka", text_of(8), "checkout_clicks", "checkout_clicks.eu-backfill"),
        ("sql", SQL, "", ""),
        ("sql", edited(SQL, "context", "sqlQueryId", value="mine"), "", "query-mine"),
    ],
)
def test_datasource_and_own_id_are_found(
    type_: str, text: str, datasource: str, own_id: str
) -> None:
    found = spec(type_, text).ingestion
    assert (found.datasource, found.own_id) == (datasource, own_id)


@pytest.mark.parametrize(
    ("args", "changes", "words"),
    [
        (
            ("native-batch", edited(BATCH, "tuningConfig", value={})),
            {},
            "Druid takes no notice of tuningConfig at the top of the specification",
        ),
        (
            ("sql", SQL),
            {"ingestion": {"rules": [{"type": "loadForever"}]}},
            "compaction and rules are not applied: only Druid knows the datasource",
        ),
        (
            ("native-batch", text_of(9)),
            {"retryPolicy": {"maxRetries": 1}},
            "retryPolicy is not applied: Druid runs an id of your own choice only once",
        ),
        (
            ("kafka", KAFKA),
            {"retryPolicy": {"maxRetries": 1}},
            "retryPolicy is not applied: a supervisor starts its tasks again by itself",
        ),
    ],
)
def test_what_has_no_effect_is_a_warning(
    args: tuple[str, str], changes: dict[str, Any], words: str
) -> None:
    assert spec(*args, **changes).ingestion.warnings == (words,)


@pytest.mark.parametrize("number", range(1, 10))
def test_the_specifications_of_people_have_no_warnings(number: int) -> None:
    types = {3: "kafka", 4: "kinesis", 5: "index-hadoop", 6: "sql", 8: "kafka"}
    assert spec(types.get(number, "native-batch"), text_of(number)).ingestion.warnings == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from(sorted(TYPES)))
def test_no_value_makes_the_hook_fail(value: object, type_: str) -> None:
    document = {"type": "index_parallel", "context": value, "spec": value, "id": value}
    for given_spec in (
        {"druidCluster": "tiny", "ingestion": {"type": type_, "nativeSpec": document}},
        {"druidCluster": "tiny", "ingestion": value},
        {"druidCluster": value},
        value,
    ):
        found = parse({"metadata": {"name": "x", "uid": "1"}, "spec": given_spec})
        assert isinstance(found, Spec | Invalid)

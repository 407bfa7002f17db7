"""Children are merged as Metacontroller's dynamic apply merges them, its flaws included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hooks.core.manifests import LAST_APPLIED
from hooks.sandbox import apply

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

Json = Any


def child(spec: Json, **metadata: Json) -> Manifest:
    """Return a child as a hook answers it."""
    named = {"name": "c", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Child", "metadata": named | metadata, "spec": spec}


def stored(desired: Manifest, **fields: Json) -> Manifest:
    """Return it as it is after its creation, with what the API server and others add."""
    notes = {LAST_APPLIED: json.dumps(desired, sort_keys=True, separators=(",", ":"))}
    server = {"uid": "u-1", "resourceVersion": "7", "generation": 1}
    own = desired["metadata"]
    notes = {**own.get("annotations", {}), **notes}
    return {**desired, "metadata": {**own, **server, "annotations": notes}, **fields}


@pytest.mark.parametrize(
    ("observed", "applied", "desired", "merged"),
    [
        pytest.param({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}, id="changed"),
        pytest.param({"a": 1, "b": 2}, {"a": 1, "b": 2}, {"a": 1}, {"a": 1}, id="dropped"),
        pytest.param({"a": 1, "x": 9}, {"a": 1}, {"a": 1}, {"a": 1, "x": 9}, id="foreign-stays"),
        pytest.param({"a": 1}, None, {}, {"a": 1}, id="nothing-was-applied"),
        pytest.param({"a": {"x": 1}}, {"a": {}}, {}, {}, id="dropped-map-goes-with-foreign-keys"),
        pytest.param({"a": 1}, {"a": 1}, {"a": None}, {"a": None}, id="null-is-written"),
        pytest.param({}, {"a": None}, {"a": None}, {"a": None}, id="null-is-written-for-ever"),
        pytest.param(
            {"a": {"b": 1, "x": 2}},
            {"a": {"b": 1}},
            {"a": None},
            {"a": {"x": 2}},
            id="null-for-a-map-drops-what-was-applied",
        ),
        pytest.param(
            {"a": {"b": 1}}, {"a": {}}, {"a": "text"}, {"a": {"b": 1}}, id="a-map-stays-a-map"
        ),
        pytest.param({"a": 1}, {"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="scalar-to-map"),
        pytest.param({"a": [1, 2]}, {"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="plain-list"),
        pytest.param({"a": [1]}, {"a": [1]}, {"a": "x"}, {"a": None}, id="list-to-scalar-is-null"),
        pytest.param(
            {"a": [{"key": "x", "default": 1}]},
            {"a": [{"key": "x"}]},
            {"a": [{"key": "x"}]},
            {"a": [{"key": "x"}]},
            id="list-without-merge-key-loses-defaults",
        ),
        pytest.param(
            {"a": [{"name": "x", "default": 1}, {"name": "foreign"}]},
            {"a": [{"name": "x", "v": 1}]},
            {"a": [{"name": "new"}, {"name": "x", "v": 2}]},
            {"a": [{"name": "x", "default": 1, "v": 2}, {"name": "foreign"}, {"name": "new"}]},
            id="list-by-name",
        ),
        pytest.param(
            {"a": [{"name": "x"}, {"name": "y"}]},
            {"a": [{"name": "x"}, {"name": "y"}]},
            {"a": [{"name": "y"}]},
            {"a": [{"name": "y"}]},
            id="list-item-dropped",
        ),
        pytest.param(
            {"a": [{"name": "x", "port": 1}]},
            {"a": []},
            {"a": [{"name": "y", "port": 1}]},
            {"a": [{"name": "y", "port": 1}]},
            id="port-goes-before-name",
        ),
        pytest.param(
            {"a": [{"port": 53, "p": "TCP"}, {"port": 53, "p": "UDP"}]},
            {"a": [{"port": 53, "p": "TCP"}, {"port": 53, "p": "UDP"}]},
            {"a": [{"port": 53, "p": "TCP"}, {"port": 53, "p": "UDP"}]},
            {"a": [{"port": 53, "p": "UDP"}, {"port": 53, "p": "UDP"}]},
            id="one-of-two-equal-keys-is-overwritten",
        ),
        pytest.param(
            {"a": [{"name": "x", "d": 1}]},
            {"a": [{"name": "x"}]},
            {"a": [{"name": "x"}, {"key": "y"}]},
            {"a": [{"name": "x"}, {"key": "y"}]},
            id="a-key-that-one-item-lacks-is-none",
        ),
        pytest.param(
            {"a": [{"name": "x"}]}, {"a": ["x"]}, {"a": []}, {"a": []}, id="a-scalar-item-is-none"
        ),
    ],
)
def test_the_difference_to_what_was_applied_last_is_made(
    observed: Json, applied: Json, desired: Json, merged: Json
) -> None:
    assert apply.merge(observed, applied, desired) == merged


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        pytest.param({"a": [1, "x", None]}, {"a": [1, "x", None]}, True, id="same"),
        pytest.param({"a": 1}, {"a": 1.0}, False, id="float"),
        pytest.param({"a": 1}, {"a": True}, False, id="bool"),
        pytest.param({"a": None}, {}, False, id="null-or-absent"),
        pytest.param({"a": []}, {}, False, id="empty-or-absent"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, False, id="order"),
        pytest.param({"a": {"b": "1000m"}}, {"a": {"b": "1"}}, False, id="quantity"),
    ],
)
def test_equal_is_what_go_calls_deeply_equal(left: Json, right: Json, equal: object) -> None:
    assert apply.deep_equal(left, right) is equal


@pytest.mark.parametrize(
    ("observed", "desired"),
    [
        pytest.param({"cpu": "1"}, {"cpu": "1000m"}, id="quantity"),
        pytest.param({}, {"env": []}, id="empty-list-that-the-server-omits"),
        pytest.param({}, {"value": None}, id="null-that-the-server-omits"),
        pytest.param({"n": 1}, {"n": 1.0}, id="integral-float"),
        pytest.param(
            {"sources": [{"token": {"expirationSeconds": 3600}}]},
            {"sources": [{"token": {}}]},
            id="default-in-a-list-without-merge-key",
        ),
    ],
)
def test_what_the_server_spells_differently_is_written_at_every_sync(
    observed: Json, desired: Json
) -> None:
    seen = stored(child(desired), spec=observed)
    once = apply.updated(seen, child(desired))
    assert not apply.deep_equal(once, seen)
    assert not apply.deep_equal(apply.updated({**once, "spec": observed}, child(desired)), seen)


def test_an_unchanged_child_is_equal_in_spite_of_server_fields_and_status() -> None:
    desired = child({"size": 1}, labels={"app": "x"})
    observed = stored(desired, spec={"size": 1, "default": True}, status={"phase": "Ready"})
    assert apply.deep_equal(apply.updated(observed, desired), observed)


def test_the_last_applied_annotation_answered_as_a_child_changes_nothing() -> None:
    observed = stored(child({"size": 1}), spec={"size": 1, "default": True})
    echo = apply.last_applied(observed)
    assert echo is not None
    assert apply.deep_equal(apply.updated(observed, echo), observed)


def test_the_observed_child_answered_as_desired_is_written_again_at_every_sync() -> None:
    observed = stored(child({"size": 1}))
    once = apply.updated(observed, observed)
    later = {**once, "metadata": {**once["metadata"], "resourceVersion": "8"}}
    assert not apply.deep_equal(apply.updated(later, later), later)


def test_a_hook_writes_neither_status_nor_system_fields_of_a_child() -> None:
    observed = stored(child({"size": 1}), status={"phase": "Ready"})
    desired = child({"size": 1}, uid="mine", generation=9) | {"status": {"phase": "Mine"}}
    result = apply.updated(observed, desired)
    applied = json.loads(result["metadata"]["annotations"].pop(LAST_APPLIED))
    assert applied == desired
    del observed["metadata"]["annotations"]
    del result["metadata"]["annotations"]
    assert result == observed


def test_one_annotation_that_is_no_text_drops_all_of_the_child() -> None:
    desired = child({}, annotations={"number": 1, "text": "x"})
    result = json.loads(json.dumps(desired))
    apply.record_last_applied(result, desired)
    assert list(result["metadata"]["annotations"]) == [LAST_APPLIED]


@pytest.mark.parametrize("text", ["{", "[]"])
def test_an_unreadable_annotation_is_an_error(text: str) -> None:
    observed = stored(child({}))
    observed["metadata"]["annotations"][LAST_APPLIED] = text
    with pytest.raises(apply.BadLastApplied):
        apply.updated(observed, child({}))

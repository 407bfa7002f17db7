"""The double refuses and completes objects as the API server does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hooks.sandbox.cluster import ApiError, MemoryCluster
from tests.sandbox.widgets import NOW, WIDGET, cluster, crd, widget

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

UNCHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was "
    "invalid; correct the existing errors to complete validation"
)


def refusal(obj: Manifest, memory: MemoryCluster | None = None) -> tuple[int, str, str]:
    world = memory or cluster()
    with pytest.raises(ApiError) as caught:
        world.replace(obj) if obj["metadata"].get("resourceVersion") else world.create(obj)
    return caught.value.status, caught.value.reason, caught.value.message


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        pytest.param({}, {}, id="defaults-are-filled-in-down-to-the-leaves"),
        pytest.param({"bogus": 1, "options": {"no": 1}}, {}, id="unknown-fields-are-pruned"),
        pytest.param({"extra": {"a": {"b": 1}}}, {"extra": {"a": {"b": 1}}}, id="preserved-fields"),
        pytest.param({"note": None}, {"note": None}, id="a-nullable-null-stays"),
        pytest.param({"tags": None, "color": None}, {}, id="another-null-is-dropped-or-defaulted"),
        pytest.param({"port": 5432.0}, {"port": 5432}, id="an-integral-float-is-an-integer"),
        pytest.param({"limit": "5%"}, {"limit": "5%"}, id="int-or-string"),
        pytest.param(
            {"parts": [{"name": "a", "no": 1}]}, {"parts": [{"name": "a"}]}, id="inside-lists"
        ),
        pytest.param(
            {"since": "2026-01-01T00:00:00Z"}, {"since": "2026-01-01T00:00:00Z"}, id="date-time"
        ),
    ],
)
def test_an_object_is_pruned_and_completed(spec: Manifest, stored: Manifest) -> None:
    full = {"owner": "bob", "color": "red", "options": {"namespace": "any"}, **stored}

    assert cluster().create(widget(spec={"owner": "bob", **spec}))["spec"] == full


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"owner": "Bob\n"},
            "spec.owner: Invalid value: \"Bob\\n\": spec.owner in body should match '^[a-z]+$'",
            id="pattern",
        ),
        pytest.param(
            {"owner": "bob\n"},
            "spec.owner: Invalid value: \"bob\\n\": spec.owner in body should match '^[a-z]+$'",
            id="dollar-is-the-end-of-the-text",
        ),
        pytest.param(
            {"port": 0},
            "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1",
            id="minimum",
        ),
        pytest.param(
            {"port": 2**31},
            "spec.port: Invalid value: 2147483648: spec.port in body must be of type int32",
            id="int32",
        ),
        pytest.param(
            {"since": "2026-01-01"},
            'spec.since: Invalid value: "2026-01-01": spec.since in body must be of type date-time',
            id="date-time",
        ),
        pytest.param(
            {"tags": ["a", "b", "a"]}, 'spec.tags[2]: Duplicate value: "a"', id="list-type-set"
        ),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "a", "size": 2}]},
            'spec.parts[1]: Duplicate value: {"name":"a"}',
            id="list-type-map",
        ),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "b", "size": -1}]},
            "spec.parts[1]: Invalid value: a part has a size",
            id="a-rule-on-items",
        ),
        pytest.param(
            {"options": {"namespace": "none"}},
            "spec.options: Forbidden: failed rule: self.__namespace__ != 'none'",
            id="a-rule-with-a-reserved-name-and-a-reason",
        ),
    ],
)
def test_one_problem_is_named(spec: Manifest, problem: str) -> None:
    obj = widget(spec={"owner": "bob", **spec})

    assert refusal(obj) == (422, "Invalid", f'Widget.example.com "w" is invalid: {problem}')


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"owner": None}, "spec.owner: Required value", id="required"),
        pytest.param(
            {"owner": "abcdefghi"},
            "spec.owner: Too long: may not be more than 8 bytes",
            id="max-length",
        ),
        pytest.param(
            {"color": "green"},
            'spec.color: Unsupported value: "green": supported values: "red", "blue"',
            id="enum",
        ),
        pytest.param(
            {"port": "80"},
            'spec.port: Invalid value: "string": spec.port in body must be of type integer: '
            '"string"',
            id="type",
        ),
        pytest.param(
            {"parts": [{"name": name} for name in "abcd"]},
            "spec.parts: Too many: 4: must have at most 3 items",
            id="max-items",
        ),
    ],
)
def test_after_a_structural_problem_no_rule_is_asked(spec: Manifest, problem: str) -> None:
    text = f'Widget.example.com "w" is invalid: [{problem}, {UNCHECKED}]'

    assert refusal(widget(spec={"owner": "bob", **spec})) == (422, "Invalid", text)


def test_all_problems_come_in_one_message() -> None:
    assert refusal(widget(name="W", spec={"owner": "B", "port": 0}))[2] == (
        'Widget.example.com "W" is invalid: [metadata.name: Invalid value: "W": a lowercase RFC '
        "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character, "
        "spec.owner: Invalid value: \"B\": spec.owner in body should match '^[a-z]+$', "
        "spec.port: Invalid value: 0: spec.port in body should be greater than or equal to 1]"
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(
            {"owner": "eve"},
            "spec.owner: Invalid value: spec.owner is immutable once there is a status",
            id="at-the-root-with-a-field-path",
        ),
        pytest.param(
            {"parts": [{"name": "new", "size": 1}, {"name": "old", "size": 4}]},
            "spec.parts[1]: Invalid value: a part of 5 never shrinks",
            id="in-the-item-of-the-same-key",
        ),
    ],
)
def test_a_rule_about_a_transition_compares_with_the_stored_object(
    change: Manifest, problem: str
) -> None:
    world = cluster()
    spec = {"owner": "bob", "parts": [{"name": "old", "size": 5}]}
    stored = world.create(widget(spec=spec))
    stored = world.replace_status(stored | {"status": {"phase": "Ready"}})

    changed = stored | {"spec": {**spec, **change}}

    assert refusal(changed, world)[2] == f'Widget.example.com "w" is invalid: {problem}'


def test_rules_hold_for_status_writes_too() -> None:
    root = {"x-kubernetes-validations": [{"rule": "!has(self.status) || self.status.phase != 'x'"}]}
    world = MemoryCluster([crd(WIDGET, **root)], lambda: NOW)
    stored = world.create(widget())

    with pytest.raises(ApiError, match="is invalid: <nil>: Invalid value: failed rule"):
        world.replace_status(stored | {"status": {"phase": "x"}})


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        pytest.param("self.metadata.namespace == 'x'", "namespace", id="metadata-but-the-name"),
        pytest.param("self.spec.extra.a == 1", '"a"', id="undeclared-fields"),
    ],
)
def test_a_rule_cannot_see(rule: str, said: str) -> None:
    root = {"x-kubernetes-validations": [{"rule": rule}]}
    world = MemoryCluster([crd(WIDGET, **root)], lambda: NOW)

    message = refusal(widget(spec={"owner": "bob", "extra": {"a": 1}}), world)[2]

    assert said in message
    assert f"evaluating rule: {rule}" in message


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param({"rule": "self.spec."}, id="syntax"),
        pytest.param({"rule": "quantity(self.spec.port) > 1"}, id="unknown-function"),
        pytest.param({"rule": "true", "optionalOldSelf": True}, id="optional-old-self"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_refused_with_its_crd(rule: Manifest) -> None:
    with pytest.raises(ValueError, match=r"this rule|not supported"):
        MemoryCluster([crd(WIDGET, **{"x-kubernetes-validations": [rule]})], lambda: NOW)


def metadata(**fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    return widget() | {"metadata": {"name": "w", "namespace": "default"} | fields}


@pytest.mark.parametrize(
    ("obj", "status", "said"),
    [
        pytest.param(metadata(name=""), 422, "name or generateName is required", id="no-name"),
        pytest.param(metadata(name="a" * 254), 422, "no more than 253 bytes", id="long-name"),
        pytest.param(metadata(labels={"a": "b c"}), 422, "valid label value", id="label"),
        pytest.param(metadata(labels={"a": 1}), 400, "must be a string", id="label-type"),
        pytest.param(
            metadata(annotations={"a": "x" * 2**18}), 422, "Too long: may not be", id="annotations"
        ),
        pytest.param(metadata(ownerReferences=[{}]), 422, "[0].uid: Required", id="owner"),
        pytest.param(metadata(namespace="no"), 404, '"no"', id="namespace"),
        pytest.param(widget() | {"spec": {"owner": float("nan")}}, 400, "JSON", id="not-json"),
        pytest.param(widget() | {"kind": "No"}, 404, "could not find", id="unknown-kind"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}},
            422,
            "RFC 1123 label",
            id="namespace-name",
        ),
    ],
)
def test_metadata_is_checked(obj: Manifest, status: int, said: str) -> None:
    answered, _, message = refusal(obj)

    assert (answered, said in message) == (status, True)

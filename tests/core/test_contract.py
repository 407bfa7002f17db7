"""What Metacontroller sends and what it may be answered."""

from __future__ import annotations

import json

import pytest

from hooks.core import contract
from hooks.core.contract import BadReply, BadRequest, Request, Response
from hooks.core.manifests import LAST_APPLIED, Manifest

KINDS = frozenset({("external-secrets.io/v1", "ExternalSecret")})


def child(name: str = "a", **extra: object) -> Manifest:
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": name, "namespace": "team-a"},
        **extra,
    }


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param(b"{", "the body is not JSON", id="cut-off"),
        pytest.param(b"\xff", "the body is not JSON", id="not-utf8"),
        pytest.param(b"[" * 100_000, "the body is not JSON", id="too-deep"),
        pytest.param(b"[]", "the body is not a JSON object", id="list"),
        pytest.param(b"{}", "parent is missing or not an object with metadata", id="empty"),
        pytest.param(
            b'{"parent":{}}', "parent is missing or not an object with metadata", id="no-metadata"
        ),
        pytest.param(
            b'{"parent":{"metadata":{}}}', "parent.metadata.name is missing", id="no-name"
        ),
        pytest.param(
            b'{"parent":{"metadata":{"name":"a"}},"finalizing":"yes"}',
            "finalizing is not a boolean",
            id="finalizing-text",
        ),
        pytest.param(
            b'{"parent":{"metadata":{"name":"a"}},"children":{"A.v1":{"a":null}}}',
            "children is not a map of kinds to maps of objects",
            id="null-child",
        ),
        pytest.param(
            b'{"parent":{"metadata":{"name":"a"}},"related":[]  ,"children":[1]}',
            "children is not a map of kinds to maps of objects",
            id="children-list",
        ),
    ],
)
def test_a_body_that_metacontroller_never_sends_is_refused(body: bytes, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        contract.parse(body)


def test_a_request_is_read_with_its_groups() -> None:
    body = {
        "controller": {"metadata": {"name": "tenants"}},
        "parent": {"metadata": {"name": "a"}},
        "children": {"ExternalSecret.external-secrets.io/v1": {"team-a/a": child()}},
        "related": None,
        "finalizing": True,
    }
    assert contract.parse(json.dumps(body).encode()) == Request(
        parent={"metadata": {"name": "a"}},
        children={"ExternalSecret.external-secrets.io/v1": {"team-a/a": child()}},
        related={},
        finalizing=True,
        controller={"metadata": {"name": "tenants"}},
    )


def test_an_answer_holds_exactly_the_four_keys_in_a_fixed_order() -> None:
    answer = Response({"phase": "Ready"}, (child(),), recheck=2.0, finalized=False)
    assert contract.render(answer, kinds=KINDS, finalizing=True) == (
        b'{"children":[{"apiVersion":"external-secrets.io/v1","kind":"ExternalSecret",'
        b'"metadata":{"name":"a","namespace":"team-a"}}],"finalized":false,'
        b'"resyncAfterSeconds":2.0,"status":{"phase":"Ready"}}'
    )


def test_a_sync_never_says_finalized_and_a_missing_recheck_is_left_out() -> None:
    answer = contract.render(Response({}, ()), kinds=KINDS, finalizing=False)
    assert json.loads(answer) == {"status": {}, "children": []}


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        pytest.param(
            Response({"a": [{"b": None}]}), r"status\.a\[0\]\.b is null", id="null-in-status"
        ),
        pytest.param(
            Response({}, (child(spec={"x": None}),)), r"\.spec\.x is null", id="null-in-child"
        ),
        pytest.param(Response({}, (child(), child())), "is listed twice", id="twice"),
        pytest.param(
            Response({}, ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},)),
            "is of a kind that the controller does not list",
            id="a-secret",
        ),
        pytest.param(Response({}, (child(""),)), "has no name", id="nameless"),
        pytest.param(
            Response({}, (child(spec={"x": "y" * 131_072}),)), "is larger than", id="too-large"
        ),
        pytest.param(Response({}, finalized=True), "finalized outside of finalize", id="finalized"),
    ],
)
def test_an_answer_that_would_do_harm_does_not_leave(response: Response, problem: str) -> None:
    with pytest.raises(BadReply, match=problem):
        contract.render(response, kinds=KINDS, finalizing=False)


def observed(**metadata: object) -> Request:
    seen = child(spec={"target": {"name": "a"}, "gone": None}, status={"conditions": []})
    seen["metadata"] |= {"uid": "u", "resourceVersion": "7", **metadata}
    group = {"team-a/a": seen}
    return Request({"metadata": {"name": "a"}}, {"ExternalSecret.external-secrets.io/v1": group})


def test_holding_answers_the_last_applied_child() -> None:
    applied = child(spec={"target": {"name": "a"}})
    request = observed(annotations={LAST_APPLIED: json.dumps(applied)})
    assert contract.hold(request) == (applied,)


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param(None, id="server-side-apply"),
        pytest.param("{", id="cut-off"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"metadata":{"name":"other"}}', id="of-another-object"),
    ],
)
def test_holding_without_a_usable_annotation_answers_what_a_hook_can_send(
    annotation: str | None,
) -> None:
    notes = {"force-sync": "v1"} | ({LAST_APPLIED: annotation} if annotation else {})
    held = contract.hold(observed(annotations=notes))
    expected = child(spec={"target": {"name": "a"}})
    expected["metadata"]["annotations"] = {"force-sync": "v1"}
    assert held == (expected,)


def test_holding_keeps_what_a_kind_has_beside_a_spec() -> None:
    rights = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    meta = {"name": "a", "namespace": "team-a"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    seen = role | {"metadata": meta | {"uid": "u"}, "rules": rights}
    request = Request({"metadata": {"name": "a"}}, {"Role": {"team-a/a": seen}})
    assert contract.hold(request) == (role | {"metadata": meta, "rules": rights},)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({"finalizers": ["metacontroller.io/compositecontroller-c"]}, False, id="live"),
        pytest.param({"deletionTimestamp": "t", "finalizers": ["other"]}, False, id="not-ours"),
        pytest.param(
            {
                "deletionTimestamp": "t",
                "finalizers": ["metacontroller.io/compositecontroller-c"],
            },
            True,
            id="deleting-and-ours",
        ),
    ],
)
def test_finalize_acts_only_on_a_deleting_parent_that_carries_our_finalizer(
    metadata: Manifest,
    expected: bool,  # noqa: FBT001  a table's column
) -> None:
    request = Request(
        {"metadata": {"name": "a", **metadata}}, controller={"metadata": {"name": "c"}}
    )
    assert contract.must_finalize(request) is expected

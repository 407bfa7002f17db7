"""A request means to the double what it means to the API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from hooks.sandbox.rest import Api, Request
from tests.sandbox.widgets import API, edited, populated, secret, widget

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

WIDGETS = f"/apis/{API}/namespaces/default/widgets"
SECRET_S = "/api/v1/namespaces/default/secrets/s"


@pytest.fixture
def api() -> Api:
    return Api(populated())


def call(
    api: Api, method: str, target: str, body: object = None, **headers: str
) -> tuple[int, Manifest]:
    url = urlsplit(target)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    content = b"" if body is None else json.dumps(body).encode()
    query = dict(parse_qsl(url.query))
    return api.answer(Request("hooks", method, url.path, query, sent, content))


def names(body: Manifest) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param("", ["a", "b", "c", "d"], id="all"),
        pytest.param("fieldSelector=spec.owner=bob", ["a", "c", "d"], id="declared-field"),
        pytest.param("fieldSelector=spec.owner!=bob", ["b"], id="declared-field-not-equal"),
        pytest.param("fieldSelector=metadata.name=c", ["c"], id="name"),
        pytest.param("fieldSelector=metadata.namespace=no", [], id="namespace"),
        pytest.param("labelSelector=for=bob", ["a", "c", "d"], id="label"),
        pytest.param("labelSelector=for=bob&fieldSelector=metadata.name=c", ["c"], id="both"),
        pytest.param("resourceVersion=0&limit=1", ["a", "b", "c", "d"], id="cache-is-not-paged"),
    ],
)
@pytest.mark.parametrize("path", [WIDGETS, f"/apis/{API}/widgets"])
def test_a_list_is_selected(api: Api, path: str, query: str, found: list[str]) -> None:
    status, body = call(api, "GET", f"{path}?{query}")

    assert (status, body["kind"], names(body)) == (200, "WidgetList", found)
    assert body["metadata"]["resourceVersion"].isdigit()


def test_one_object_can_be_its_metadata_only(api: Api) -> None:
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

    body = call(api, "GET", f"{WIDGETS}/a", Accept=accept)[1]

    assert (body["kind"], sorted(body)) == (
        "PartialObjectMetadata",
        ["apiVersion", "kind", "metadata"],
    )


def test_an_object_is_written_and_deleted(api: Api) -> None:
    patched = {"Content_Type": "application/merge-patch+json"}
    one = f"{WIDGETS}/new"

    created, obj = call(api, "POST", WIDGETS, widget("new"))
    replaced = call(api, "PUT", one, edited(obj, labels={"a": "b"}))[1]
    stale, _ = call(api, "PUT", one, edited(obj, labels={"a": "c"}))
    changed = call(api, "PATCH", one, {"spec": {"port": 1, "color": None}}, **patched)[1]
    status = call(api, "PATCH", f"{one}/status", {"status": {"phase": "Ready"}}, **patched)[1]
    final = call(api, "PUT", f"{one}/status", status | {"status": {"phase": "Done"}})[1]
    options = {"preconditions": {"uid": obj["metadata"]["uid"]}, "propagationPolicy": "Background"}
    gone = call(api, "DELETE", one, options)[1]

    assert (created, stale, replaced["metadata"]["labels"]) == (201, 409, {"a": "b"})
    assert (changed["spec"]["port"], changed["spec"]["color"]) == (1, "red")
    assert (final["status"], final["spec"]) == ({"phase": "Done"}, changed["spec"])
    assert (gone["status"], call(api, "GET", one)[0]) == ("Success", 404)


def test_a_deletion_that_waits_returns_the_object(api: Api) -> None:
    call(api, "POST", WIDGETS, edited(widget("held"), finalizers=["a/b"]))

    status, obj = call(api, "DELETE", f"{WIDGETS}/held?propagationPolicy=Background")

    assert (status, obj["metadata"]["finalizers"]) == (200, ["a/b"])


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        pytest.param("GET", f"{WIDGETS}/no", None, 404, "NotFound", id="absent"),
        pytest.param("GET", f"/apis/{API}/nos", None, 404, "NotFound", id="unknown-resource"),
        pytest.param("GET", f"{SECRET_S}/status", None, 404, "NotFound", id="no-status"),
        pytest.param("POST", WIDGETS, widget("a"), 409, "AlreadyExists", id="taken"),
        pytest.param("POST", WIDGETS, widget("x", spec={}), 422, "Invalid", id="invalid"),
        pytest.param("POST", WIDGETS, widget(namespace="other"), 400, "BadRequest", id="namespace"),
        pytest.param("PUT", f"{WIDGETS}/a", widget("b"), 400, "BadRequest", id="other-name"),
        pytest.param("POST", WIDGETS, secret("x"), 400, "BadRequest", id="other-kind"),
        pytest.param("POST", f"{WIDGETS}?dryRun=All", widget("x"), 400, "BadRequest", id="dry-run"),
        pytest.param("PATCH", f"{WIDGETS}/a", {}, 415, "UnsupportedMediaType", id="patch-type"),
        pytest.param("DELETE", WIDGETS, None, 405, "MethodNotAllowed", id="collection"),
        pytest.param("GET", f"{WIDGETS}?watch=true", None, 405, "MethodNotAllowed", id="watch"),
        pytest.param("GET", f"{WIDGETS}?limit=x", None, 400, "BadRequest", id="limit"),
        pytest.param("GET", f"{WIDGETS}?continue=x", None, 400, "BadRequest", id="continue"),
        pytest.param(
            "GET", f"{WIDGETS}?labelSelector=a+in+(b)", None, 400, "BadRequest", id="set-based"
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_a_status(
    api: Api, method: str, path: str, body: object, status: int, reason: str
) -> None:  # fmt: skip
    answered, said = call(api, method, path, body, Content_Type="application/json")

    assert (answered, said["kind"], said["code"], said["reason"]) == (
        status,
        "Status",
        status,
        reason,
    )


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param("for=bob", ["a", "c", "d"], id="equal"),
        pytest.param("for!=bob", ["b", "e"], id="unequal"),
        pytest.param("for", ["a", "b", "c", "d"], id="there"),
        pytest.param("!for", ["e"], id="not-there"),
        pytest.param("for=bob,!for", [], id="all-of-them"),
    ],
)
def test_labels_select_by_value_and_by_presence(api: Api, selector: str, found: list[str]) -> None:
    call(api, "POST", WIDGETS, widget("e"))

    listed = call(api, "GET", f"{WIDGETS}?labelSelector={quote(selector)}")[1]

    assert [item["metadata"]["name"] for item in listed["items"]] == found


def test_an_undeclared_field_cannot_be_selected(api: Api) -> None:
    _, said = call(api, "GET", f"{WIDGETS}?fieldSelector=spec.color=red")

    assert (said["code"], said["message"]) == (400, "field label not supported: spec.color")


def test_discovery_names_what_is_served(api: Api) -> None:
    groups = call(api, "GET", "/apis")[1]["groups"]
    core = call(api, "GET", "/api/v1")[1]["resources"]

    assert [group["name"] for group in groups] == [
        "batch",
        "example.com",
        "external-secrets.io",
        "rbac.authorization.k8s.io",
    ]
    assert "secrets" in [resource["name"] for resource in core]

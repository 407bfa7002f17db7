"""What one request reads of the API server.

"Not found" is believed of an object only when the answer names that object: a kind that is not
served is a 404 too. A list is asked for without a resourceVersion, so it is never older than the
question.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from kubernetes.client.api_client import ApiClient

from hooks.core import manifests
from hooks.core.deadline import Deadline
from hooks.core.errors import Misconfigured, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.kubernetes.transport import SYSTEM, Answer, Question, ask
from hooks.effects.ports.kubernetes import Resource, Secret

_SECRETS = Resource("", "v1", "secrets")
_WHOLE = "application/json"
# The second form is for a server that knows only whole objects.
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
_PAGE = "500"
_BAD_REQUEST, _NOT_FOUND, _GONE = 400, 404, 410

_Manifests = list[Manifest]


class _Expired(Exception):
    """The server does not keep the rest of this list any more."""


class _NotSelectable(Exception):
    """The server does not select by this field."""


class Reader:
    """The API server as one request may use it."""

    def __init__(self, client: ApiClient, deadline: Deadline) -> None:
        self._client = client
        self._deadline = deadline

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:
        """Read one object."""
        question = Question("get", resource, namespace, name)
        answer = self._ask(question, _WHOLE, {})
        if answer.status == _NOT_FOUND and _is_about(answer, name):
            return None
        found = answer.accepted()
        # Without a name the list was asked for.
        if not name or manifests.name(found) != name:
            raise Misconfigured(SYSTEM, f"another object came back from {question}")
        return found

    def secret(self, namespace: str, name: str) -> Secret | None:
        """Read one Secret by name."""
        found = self.get(_SECRETS, name, namespace)
        if found is None:
            return None
        return Secret(
            name,
            manifests.uid(found),
            manifests.controller_uid(found),
            _decoded(found),
            str(manifests.metadata(found).get("resourceVersion") or ""),
        )

    def list(self, resource: Resource, *, fields: Mapping[str, str] | None = None) -> _Manifests:
        """List metadata of all objects in all namespaces, every page or none."""
        wanted = fields or {}
        try:
            found = self._listed(resource, _METADATA, wanted)
        except _NotSelectable:
            whole = self._listed(resource, _WHOLE, {})
            found = [item for item in whole if _matches(item, wanted)]
        return [{"metadata": manifests.metadata(item)} for item in found]

    def _listed(self, resource: Resource, accept: str, fields: Mapping[str, str]) -> _Manifests:
        """Read all pages, and once more from the start when the server forgot the rest."""
        question = Question("list", resource)
        query = {"limit": _PAGE}
        if fields:
            query["fieldSelector"] = ",".join(f"{path}={value}" for path, value in fields.items())
        for _ in range(2):
            try:
                return self._pages(question, accept, query)
            except _Expired:
                continue
        raise Unavailable(SYSTEM, f"it changes too fast to {question}", code=str(_GONE))

    def _pages(self, question: Question, accept: str, query: Mapping[str, str]) -> _Manifests:
        found: _Manifests = []
        page = dict(query)
        while True:
            answer = self._ask(question, accept, page)
            if answer.status == _GONE:
                raise _Expired
            if answer.status == _BAD_REQUEST and _is_about_a_field(answer):
                raise _NotSelectable
            listed = answer.accepted()
            if "items" not in listed:
                raise Misconfigured(SYSTEM, f"no list came back from {question}")
            found += listed["items"] or []
            token = manifests.metadata(listed).get("continue")
            if not token:
                return found
            page = {**query, "continue": token}

    def _ask(self, question: Question, accept: str, query: Mapping[str, str]) -> Answer:
        return ask(self._client, question, accept, query, self._deadline.timeout(SYSTEM))


def _is_about(answer: Answer, name: str) -> bool:
    """Say whether this Status speaks of the object, not of a path or kind that is not there."""
    details = answer.body.get("details") or {}
    return answer.body.get("reason") == "NotFound" and details.get("name") == name


def _is_about_a_field(answer: Answer) -> bool:
    return "field label not supported" in str(answer.body.get("message"))


def _matches(item: Manifest, fields: Mapping[str, str]) -> bool:
    return all(_field(item, path) == wanted for path, wanted in fields.items())


def _field(item: Manifest, path: str) -> str:
    """Return a field as a selector sees it: what is absent is empty."""
    value: Any = item
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else str(value)


def _decoded(found: Manifest) -> dict[str, bytes]:
    try:
        return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
    except (binascii.Error, TypeError):
        raise Misconfigured(SYSTEM, "the data of a Secret are not base64") from None

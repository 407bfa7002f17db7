"""Call a hook as Metacontroller does, and read its answer as strictly.

Idea: the answer is checked before anything is done with it: a status other than 200, an unknown or
a repeated key fail the sync, and a null in a list ends the process.

Limits: a time-out counts each wait for bytes, not the whole call; redirects are not
followed, and a Retry-After that is a date counts as none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import requests

from hooks.sandbox.runner_state import RunnerCrashed, SyncError, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_config import Hook, HookName
    from hooks.sandbox.runner_state import Faults

_REPLY = frozenset({"status", "children", "resyncAfterSeconds", "finalized"})
_RULES = frozenset({"relatedResources"})
_RULE = frozenset(
    {"apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"}
)
_TOO_MANY, _OK = 429, 200


@dataclass(frozen=True, slots=True)
class Connection:
    """How the hooks are reached.

    Attributes:
        base_url: replaces scheme, host and port of every hook; empty to use what manifests say.
        token: the bearer token; empty for none.
        ca_file: who signed the server's certificate; None for those that the system trusts.
    """

    base_url: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to sync or finalize."""

    status: Manifest
    children: list[Manifest]
    resync_after: float
    finalized: bool


class Webhooks:
    """The HTTP client of a runner."""

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def reply(self, name: HookName, hook: Hook, request: Manifest) -> Reply:
        """Call sync or finalize.

        Raises:
            SyncError: There is no usable answer.
            TooManyRequests: The answer is 429.
            RunnerCrashed: A child is null.
        """
        document = self._document(name, hook, request, _REPLY)
        children = _items(document, "children")
        for child in children:
            if not isinstance(child.get("kind"), str) or not child["kind"]:
                raise SyncError(f"{name} hook failed: Object 'Kind' is missing")
        return Reply(
            status=_typed(document, "status", dict) or {},
            children=children,
            resync_after=float(_typed(document, "resyncAfterSeconds", (int, float)) or 0),
            finalized=bool(_typed(document, "finalized", bool)),
        )

    def rules(self, hook: Hook, request: Manifest) -> list[Manifest]:
        """Call customize.

        Raises:
            SyncError: There is no usable answer.
            TooManyRequests: The answer is 429.
            RunnerCrashed: A rule is null.
        """
        document = self._document("customize", hook, request, _RULES)
        rules = _items(document, "relatedResources")
        if hook.strict:
            for rule in rules:
                _refuse_unknown("customize", rule, _RULE)
        return rules

    def _document(
        self, name: HookName, hook: Hook, request: Manifest, known: frozenset[str]
    ) -> Mapping[str, Any]:
        body = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
        if self._faults.take("duplicate_call"):
            self._post(hook, body)
        answer = self._post(hook, body)
        if self._faults.take("lost_answer"):
            raise SyncError(f"{name} hook failed: http error: Client.Timeout exceeded")
        if answer.status_code == _TOO_MANY:
            raise TooManyRequests(_retry_after(answer.headers.get("Retry-After", "")))
        if answer.status_code != _OK:
            raise SyncError(
                f"{name} hook failed: unsupported status code: {answer.status_code} "
                f"body: {answer.text}"
            )
        return _decoded(name, answer.content, known if hook.strict else None)

    def _post(self, hook: Hook, body: bytes) -> requests.Response:
        headers = {"Content-Type": "application/json"}
        if self._connection.token:
            headers["Authorization"] = f"Bearer {self._connection.token}"
        url = (self._connection.base_url or hook.address).rstrip("/") + hook.path
        ca_file = self._connection.ca_file
        with requests.Session() as session:
            # Neither a proxy nor a .netrc of whoever runs this has a say.
            session.trust_env = False
            try:
                return session.post(
                    url,
                    data=body,
                    headers=headers,
                    timeout=hook.timeout,
                    verify=str(ca_file) if ca_file else True,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                raise SyncError(f"http error: Post {url}: {type(error).__name__}") from error


def _retry_after(text: str) -> float:
    """Read seconds; anything else is now, so the caller loops."""
    try:
        return float(int(text))
    except ValueError:
        return 0.0


class _Repeated(dict[str, Any]):
    """A JSON object that remembers which of its keys came twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.names = [key for key, _ in pairs]

    @property
    def duplicates(self) -> list[str]:
        return sorted({name for name in self.names if self.names.count(name) > 1})


def _decoded(name: str, body: bytes, known: frozenset[str] | None) -> Manifest:
    try:
        document = json.loads(body)
        checked = json.loads(body, object_pairs_hook=_Repeated)
    except ValueError as error:
        raise SyncError(f"{name} hook failed: can't unmarshal webhookResponse") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise SyncError(f"{name} hook failed: can't unmarshal webhookResponse: not an object")
    if known is not None:
        _refuse_unknown(name, document, known)
        # Children have a decoder of their own, which takes the last of several equal keys.
        _refuse_repeated(name, {key: checked[key] for key in checked if key != "children"})
        _refuse_repeated_keys(name, checked)
    return document


def _refuse_unknown(name: str, document: Manifest, known: frozenset[str]) -> None:
    unknown = sorted(document.keys() - known)
    if unknown:
        texts = ", ".join(f'unknown field "{key}"' for key in unknown)
        raise SyncError(f"{name} hook failed: strict validation failed: {texts}")


def _refuse_repeated(name: str, value: object) -> None:
    if isinstance(value, _Repeated):
        _refuse_repeated_keys(name, value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            _refuse_repeated(name, item)


def _refuse_repeated_keys(name: str, value: _Repeated) -> None:
    if value.duplicates:
        texts = ", ".join(f'duplicate field "{key}"' for key in value.duplicates)
        raise SyncError(f"{name} hook failed: strict validation failed: {texts}")


def _items(document: Mapping[str, Any], key: str) -> list[Manifest]:
    """Return a list of objects; nothing and null are an empty one.

    Raises:
        SyncError: It is something else.
        RunnerCrashed: An item is null.
    """
    items = _typed(document, key, list) or []
    for item in items:
        if item is None:
            raise RunnerCrashed(f"panic: nil pointer dereference: {key} has a null item")
        if not isinstance(item, dict):
            raise SyncError(f"can't unmarshal webhookResponse: an item of {key} is not an object")
    return list(items)


def _typed(document: Mapping[str, Any], key: str, wanted: type[Any] | tuple[type[Any], ...]) -> Any:  # noqa: ANN401 - a JSON value of the wanted type, or None
    value = document.get(key)
    if value is None:
        return None
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise SyncError(f"can't unmarshal webhookResponse: {key} has the wrong type")
    return value

"""Choose and page the objects of a list, as its query parameters say.

Limits: equality, and of labels existence, refused otherwise; a page continues after the last name
of the one before, in the objects of now, where the real server serves the first page's moment.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import bad_request
from hooks.sandbox.runner_labels import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from hooks.core.manifests import Manifest

_ALWAYS = ("metadata.name", "metadata.namespace")


def field_selector(text: str, selectable: Collection[str]) -> Callable[[Manifest], bool]:
    """Return what a fieldSelector asks.

    Raises:
        ApiError: It names a field that this kind does not declare selectable.
    """
    terms = list(_terms(text))
    for path, _, _ in terms:
        if path not in (*_ALWAYS, *selectable):
            raise bad_request(f"field label not supported: {path}")
    return lambda obj: all((_field(obj, path) == want) is equal for path, want, equal in terms)


def label_selector(text: str) -> Callable[[Manifest], bool]:
    """Return what a labelSelector asks."""
    selector: Manifest = {"matchExpressions": list(map(_expression, filter(None, text.split(","))))}
    return lambda obj: matches(selector, obj)


def _expression(term: str) -> Manifest:
    """Return a term as LabelSelector objects spell it."""
    if re.fullmatch(r"!?[\w./-]+", term.strip()):
        absent = term.strip().startswith("!")
        operator = "DoesNotExist" if absent else "Exists"
        return {"key": term.strip().removeprefix("!"), "operator": operator}
    ((key, value, equal),) = _terms(term)
    return {"key": key, "operator": "In" if equal else "NotIn", "values": [value]}


def page(items: list[Manifest], query: Mapping[str, str]) -> tuple[list[Manifest], Manifest]:
    """Return the page that limit and continue ask for, and what list metadata says of it.

    A list by resourceVersion=0 comes from the real server's cache and is not paged.
    """
    after, version = query.get("continue", ""), query.get("resourceVersion", "")
    if after and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    limit = query.get("limit", "") or "0"
    if not limit.isdigit():
        raise bad_request(f"limit {limit} is not a number")
    if after:
        last = _decoded(after)
        items = [item for item in items if _position(item) > last]
    size = len(items) if version == "0" or limit == "0" else int(limit)
    if len(items) <= size:
        return items, {}
    shown = items[:size]
    token = base64.urlsafe_b64encode(json.dumps(_position(shown[-1])).encode()).decode()
    more: Manifest = {"continue": token}
    if not (query.get("fieldSelector") or query.get("labelSelector")):
        more["remainingItemCount"] = len(items) - size
    return shown, more


def _terms(text: str) -> Iterator[tuple[str, str, bool]]:
    for term in filter(None, text.split(",")):
        for operator, equal in (("!=", False), ("==", True), ("=", True)):
            key, found, value = term.partition(operator)
            if found:
                yield key.strip(), value.strip(), equal
                break
        else:
            raise bad_request(f"unable to parse requirement: {term} is no equality")


def _field(obj: Manifest, path: str) -> str:
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _position(obj: Manifest) -> list[str]:
    return [manifests.namespace(obj), manifests.name(obj)]


def _decoded(token: str) -> list[str]:
    try:
        found = json.loads(base64.urlsafe_b64decode(token))
    except ValueError as error:
        raise bad_request("continue key is not valid") from error
    if not isinstance(found, list):
        raise bad_request("continue key is not valid")
    return found

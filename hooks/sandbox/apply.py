"""How Metacontroller merges a desired child into the observed one (dynamic apply).

Idea: a three-way merge in the manner of the first `kubectl apply`. What was applied last and is not
desired any more goes, what is desired is set, everything else stays. Whether there is anything to
write is decided by comparing whole objects, so a form that the API server spells differently is
written again at every sync.

Limits: as in Metacontroller, a list is merged by a guessed key or else replaced, and a map that
should become something else stays a map.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from hooks.core import manifests
from hooks.core.manifests import LAST_APPLIED

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest

MERGE_KEYS = ("containerPort", "port", "mountPath", "name", "uid", "ip", "path")
SYSTEM_FIELDS = (
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
)


class BadLastApplied(Exception):
    """The last-applied annotation of a child is not a JSON object."""


def deep_equal(left: object, right: object) -> bool:
    """Compare like Go's reflect.DeepEqual: 1 is neither 1.0 nor true, and null is not absence."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            deep_equal(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(deep_equal, left, right))
    return left == right


def last_applied(obj: Manifest) -> Manifest | None:
    """Return what was applied last; None when nothing is recorded.

    Raises:
        BadLastApplied: The annotation cannot be read.
    """
    text = manifests.annotations(obj).get(LAST_APPLIED)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise BadLastApplied(f'can\'t unmarshal "{LAST_APPLIED}" annotation') from error
    if not isinstance(found, dict):
        raise BadLastApplied(f'"{LAST_APPLIED}" is not an object')
    return found


def record_last_applied(obj: Manifest, applied: Manifest) -> None:
    """Write what is applied into the object's annotation.

    Any annotation that is not a text makes Metacontroller drop all others.
    """
    meta = obj.setdefault("metadata", {})
    notes = meta.get("annotations") or {}
    if not all(isinstance(value, str) for value in notes.values()):
        notes = {}
    text = json.dumps(applied, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    meta["annotations"] = {**notes, LAST_APPLIED: text}


def without_last_applied(obj: Manifest) -> Manifest:
    """Return a copy that does not carry the annotation."""
    result = copy.deepcopy(obj)
    notes = manifests.metadata(result).get("annotations") or {}
    if LAST_APPLIED in notes:
        del notes[LAST_APPLIED]
        if not notes:
            del result["metadata"]["annotations"]
    return result


def updated(observed: Manifest, desired: Manifest) -> Manifest:
    """Return the observed object with the desired changes; deep-equal when there are none."""
    desired = without_last_applied(desired)
    result = merge(observed, last_applied(observed), desired)
    keep_system_fields(result, observed)
    record_last_applied(result, desired)
    return result


def keep_system_fields(obj: Manifest, observed: Manifest) -> None:
    """Put back what belongs to the API server, or to a child's own controller (its status)."""
    _revert(obj, observed, "status")
    for field in SYSTEM_FIELDS:
        _revert(obj["metadata"], manifests.metadata(observed), field)


def merge(observed: Manifest, applied: Manifest | None, desired: Manifest) -> Manifest:
    """Apply the difference between applied and desired to a copy of observed."""
    return _merge_maps(copy.deepcopy(observed), applied or {}, copy.deepcopy(desired))


def _revert(target: Manifest, source: Manifest, field: str) -> None:
    target.pop(field, None)
    if field in source:
        target[field] = copy.deepcopy(source[field])


def _merge(observed: Any, applied: Any, desired: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(observed, dict):
        return _merge_maps(observed, _map(applied), _map(desired))
    if isinstance(observed, list):
        return _merge_lists(observed, _list(applied), _list(desired), replaced_by=desired)
    return desired


def _map(value: object) -> dict[str, Any]:
    """Take anything else than a map for an empty one, as Metacontroller does."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _merge_maps(
    observed: dict[str, Any], applied: dict[str, Any], desired: dict[str, Any]
) -> dict[str, Any]:
    for key in applied.keys() - desired.keys():
        observed.pop(key, None)
    for key, value in desired.items():
        observed[key] = _merge(observed.get(key), applied.get(key), value)
    return observed


def _merge_lists(
    observed: list[Any], applied: list[Any], desired: list[Any], *, replaced_by: object
) -> object:
    key = _merge_key([*observed, *applied, *desired])
    if key is None:
        # Go's nil slice of a null or foreign value is written as null.
        return replaced_by if isinstance(replaced_by, list) else None
    merged = _merge_maps(_by(key, observed), _by(key, applied), _by(key, desired))
    # An item with the key of an earlier one comes out twice: a flaw that is kept on purpose.
    result = [merged[name] for item in observed if (name := _text(item[key])) in merged]
    known = {_text(item[key]) for item in observed}
    return result + [item for name, item in merged.items() if name not in known]


def _merge_key(items: list[Any]) -> str | None:
    """Guess by which field the items of a list are told apart; None for a plain list."""
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    return next((key for key in MERGE_KEYS if all(key in item for item in items)), None)


def _by(key: str, items: list[Any]) -> dict[str, Any]:
    return {_text(item[key]): item for item in items}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)

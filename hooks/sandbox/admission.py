"""Turn what a client wrote into what the API server would store.

Idea: pure functions from (written, stored) to the next object, or an `ApiError`. The server owns
part of metadata, the status subresource owns status, and a writer only ever changes its own part.

Limits: the `immutable` flag and the type of Secrets are not enforced, nor are data keys.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING

from hooks.sandbox.kinds import SECRET, ApiError, bad_request, conflict, invalid
from hooks.sandbox.openapi import Problem, shown
from hooks.sandbox.validation import metadata_problems

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Resource

KUBECTL_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_SERVER_OWNED = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
_STALE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def canonical(obj: Manifest) -> Manifest:
    """Copy an object as it comes out of the server's JSON: integral numbers are integers.

    Raises:
        ApiError: It is not JSON.
    """
    try:
        text = json.dumps(obj, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error
    result: Manifest = json.loads(text, parse_float=_number)
    return result


def same(left: Manifest, right: Manifest) -> bool:
    """Compare as JSON does, where 1 is not true."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def created(resource: Resource, obj: Manifest) -> Manifest:
    """Return the object to store for a creation."""
    meta = obj["metadata"]
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    for key in _SERVER_OWNED:
        meta.pop(key, None)
    if not resource.kind.namespaced:
        meta.pop("namespace", None)
    if resource.has_status:
        obj.pop("status", None)
    return _checked(resource, obj, None)


def updated(resource: Resource, obj: Manifest, old: Manifest) -> Manifest:
    """Return the object to store for an update of everything but status."""
    _require_same(resource, obj, old)
    _inherit(obj["metadata"], old["metadata"], (*_SERVER_OWNED, "namespace"))
    if resource.has_status:
        _inherit(obj, old, ("status",))
    result = _checked(resource, obj, old)
    if resource.has_generation and not same(_content(result), _content(old)):
        result["metadata"]["generation"] += 1
    return result


def status_updated(resource: Resource, obj: Manifest, old: Manifest) -> Manifest:
    """Return the object to store for an update of the status subresource."""
    if not resource.has_status:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    _require_same(resource, obj, old)
    result = copy.deepcopy(old)
    _inherit(result, obj, ("status",))
    return _checked(resource, result, old)


def applied(obj: Manifest, live: Manifest | None) -> Manifest:
    """Return what `kubectl apply` of a manifest writes: a three-way merge with the live object."""
    desired = copy.deepcopy(obj)
    desired.pop("status", None)
    annotation = json.dumps(desired, sort_keys=True, separators=(",", ":")) + "\n"
    desired["metadata"].setdefault("annotations", {})[KUBECTL_APPLIED] = annotation
    if live is None:
        return desired
    last = (live["metadata"].get("annotations") or {}).get(KUBECTL_APPLIED)
    return _merged(live, json.loads(last) if last else {}, desired)


def merge_patched(value: object, patch: object) -> object:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), change)
    return result


def _merged(live: Manifest, last: Manifest, desired: Manifest) -> Manifest:
    result = {key: value for key, value in live.items() if key in desired or key not in last}
    for key, value in desired.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            before = last.get(key)
            result[key] = _merged(result[key], before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number


def _content(obj: Manifest) -> Manifest:
    return {key: value for key, value in obj.items() if key != "metadata"}


def _inherit(target: Manifest, source: Manifest, keys: tuple[str, ...]) -> None:
    for key in keys:
        target.pop(key, None)
        if key in source:
            target[key] = copy.deepcopy(source[key])


def _require_same(resource: Resource, obj: Manifest, old: Manifest) -> None:
    """Refuse a write that was made for another object or another version of it."""
    written, stored = obj["metadata"], old["metadata"]
    kind, name = resource.kind, stored["name"]
    if written.get("uid", stored["uid"]) != stored["uid"]:
        why = f"UID in precondition: {written['uid']}, UID in object meta: {stored['uid']}"
        raise conflict(kind, name, f"Precondition failed: {why}")
    version = written.get("resourceVersion")
    if resource.needs_version and not version:
        text = 'Invalid value: "": must be specified for an update'
        raise invalid(kind, name, [Problem("metadata.resourceVersion", text)])
    if version and version != stored["resourceVersion"]:
        raise conflict(kind, name, _STALE)


def _checked(resource: Resource, obj: Manifest, old: Manifest | None) -> Manifest:
    meta = obj["metadata"]
    for key in ("labels", "annotations"):
        if any(not isinstance(value, str) for value in (meta.get(key) or {}).values()):
            raise bad_request(f"metadata.{key}: every value must be a string")
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if not meta.get(key):
            meta.pop(key, None)
    resource.schema.prepare(obj)
    problems = metadata_problems(obj, old) + resource.schema.problems(obj, old)
    problems += _changed(resource, obj, old) if old is not None else []
    if problems and old is not None:
        # Ratcheting: what was wrong before and is not changed does not stop an update.
        before = resource.schema.problems(old)
        problems = [problem for problem in problems if problem not in before]
    if problems:
        raise invalid(resource.kind, str(meta.get("name") or ""), problems)
    if resource.kind == SECRET:
        _encode_string_data(obj)
    return obj


def _changed(resource: Resource, obj: Manifest, old: Manifest) -> list[Problem]:
    """List what is immutable and another value now."""
    found = []
    for path in resource.immutable:
        value, before = (_at(one, path) for one in (obj, old))
        if json.dumps(value, sort_keys=True) != json.dumps(before, sort_keys=True):
            found.append(Problem(path, f"Invalid value: {shown(value)}: field is immutable"))
    return found


def _at(obj: Manifest, path: str) -> object:
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _encode_string_data(secret: Manifest) -> None:
    texts = secret.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}

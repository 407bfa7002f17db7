"""Read Kubernetes objects that travel as JSON.

A manifest is untyped on purpose: it is what the API server sent. Everything past these accessors
is a typed value.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Manifest = dict[str, Any]

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


def metadata(manifest: Manifest) -> Manifest:
    """Return metadata, empty when there is none."""
    return manifest.get("metadata") or {}


def name(manifest: Manifest) -> str:
    """Return metadata.name, empty when there is none."""
    return str(metadata(manifest).get("name") or "")


def namespace(manifest: Manifest) -> str:
    """Return metadata.namespace; empty for a cluster-scoped object."""
    return str(metadata(manifest).get("namespace") or "")


def uid(manifest: Manifest) -> str:
    """Return metadata.uid, empty when there is none."""
    return str(metadata(manifest).get("uid") or "")


def generation(manifest: Manifest) -> int:
    """Return metadata.generation, 0 when there is none."""
    return int(metadata(manifest).get("generation") or 0)


def deleting(manifest: Manifest) -> bool:
    """Say whether deletion has begun."""
    return bool(metadata(manifest).get("deletionTimestamp"))


def annotations(manifest: Manifest) -> Mapping[str, str]:
    """Return metadata.annotations."""
    return metadata(manifest).get("annotations") or {}


def controller_uid(manifest: Manifest) -> str | None:
    """Return the UID of the controlling owner, or None when nothing controls it."""
    for reference in metadata(manifest).get("ownerReferences") or ():
        if reference.get("controller"):
            return str(reference.get("uid") or "")
    return None


def condition(manifest: Manifest, type_: str) -> Manifest:
    """Return the status condition of that type, empty when there is none."""
    for entry in (manifest.get("status") or {}).get("conditions") or ():
        if entry.get("type") == type_:
            found: Manifest = entry
            return found
    return {}


def timestamp(text: object) -> datetime | None:
    """Parse an RFC 3339 time as Kubernetes writes it; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def nulls(value: object, path: str = "") -> Iterator[str]:
    """Yield the path of every null inside, as `.spec.items[0]`."""
    if value is None:
        yield path or "."
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from nulls(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from nulls(item, f"{path}[{index}]")


def without_nulls(value: object) -> Any:  # noqa: ANN401  a JSON value goes in, one comes out
    """Return a deep copy without nulls: members that are null are dropped."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(item) for item in value if item is not None]
    return value

"""Change one object as a controller does: read, change, write, again when somebody came between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.sandbox.kinds import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind
    from hooks.sandbox.port import Cluster


def edit(
    cluster: Cluster, kind: Kind, obj: Manifest, change: Callable[[Manifest], None]
) -> Manifest | None:
    """Change all but the status of an object; None when it is gone."""
    return _edit(cluster, kind, obj, change, cluster.replace)


def edit_status(
    cluster: Cluster, kind: Kind, obj: Manifest, change: Callable[[Manifest], None]
) -> Manifest | None:
    """Change the status of an object, given to `change` as it is; None when the object is gone."""

    def change_status(live: Manifest) -> None:
        change(live.setdefault("status", {}))

    return _edit(cluster, kind, obj, change_status, cluster.replace_status)


def _edit(
    cluster: Cluster,
    kind: Kind,
    obj: Manifest,
    change: Callable[[Manifest], None],
    write: Callable[[Manifest], Manifest],
) -> Manifest | None:
    meta = obj["metadata"]
    while True:
        live = cluster.get(kind, meta.get("namespace"), meta["name"])
        if live is None or live["metadata"]["uid"] != meta["uid"]:
            return None
        change(live)
        try:
            return write(live)
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            if error.reason != "Conflict":
                raise

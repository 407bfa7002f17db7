"""What a runner and a user interface need of the Kubernetes API.

Idea: a port with two adapters, the double in cluster.py and a real API server. Manifests are
copies, both ways; a refusal is an `ApiError`.

Limits: no watch by resourceVersion; a listener is told what changes from now on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.kinds import Kind

Change = Literal["ADDED", "MODIFIED", "DELETED"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Listener(Protocol):
    """Is told of each change after it happened, in order."""

    def __call__(self, change: Change, obj: Manifest, /) -> None:
        """Take note of it."""


class Cluster(Protocol):
    """The Kubernetes API, as far as the sandbox goes.

    The namespace of a cluster-scoped object is None or empty.
    """

    @property
    def kinds(self) -> Sequence[Kind]:
        """Return the kinds that are served."""

    def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest | None:
        """Return one object, None when there is none."""

    def list(self, kind: Kind, namespace: str | None = None) -> list[Manifest]:
        """Return the objects of a kind, in a namespace or in all, by namespace and name."""

    def create(self, obj: Manifest) -> Manifest:
        """Create an object, without its status."""

    def replace(self, obj: Manifest) -> Manifest:
        """Write everything but status.

        A resourceVersion that is not the stored one is a Conflict; custom kinds need one.
        """

    def replace_status(self, obj: Manifest) -> Manifest:
        """Write status and nothing else."""

    def apply(self, obj: Manifest) -> Manifest:
        """Do what `kubectl apply` does with a manifest."""

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Delete an object; with finalizers it is only marked, until the last one goes."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each change from now on; calling the result ends that."""

    def record_event(
        self, obj: Manifest, reason: str, message: str, *, type_: str = "Warning"
    ) -> None:
        """Record an Event about an object; the same one again only raises its count."""

    @property
    def events(self) -> Sequence[Manifest]:
        """Return the Events of all namespaces, oldest first."""

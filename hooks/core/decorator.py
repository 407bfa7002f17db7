"""The webhook contract of a DecoratorController, where it differs from a CompositeController's.

It adds to objects that belong to somebody else: it is sent `object` and `attachments`, may set
single labels and annotations, and leaves the status alone unless it is answered one. That one
replaces the status whole, and only if nobody has changed the object since it was observed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from hooks.core import contract
from hooks.core.contract import Response
from hooks.core.manifests import Manifest


@dataclass(frozen=True, slots=True)
class Decoration:
    """The answer to sync and finalize.

    Attributes:
        children: all attachments that should exist; those left out are deleted.
        annotations: to set on the object; None takes one away, others stay.
        status: replaces the object's status; None leaves it.
        recheck: seconds until Metacontroller asks again, or None.
        finalized: our finalizer may go; only ever true in finalize.
    """

    children: tuple[Manifest, ...] = ()
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    status: Manifest | None = None
    recheck: float | None = None
    finalized: bool = False


def render(
    answer: Response | Decoration, *, kinds: frozenset[tuple[str, str]], finalizing: bool
) -> bytes:
    """Write an answer of either contract, byte for byte the same for the same answer.

    Raises:
        BadReply: it would crash Metacontroller or delete what it must not.
    """
    if isinstance(answer, Response):
        return contract.render(answer, kinds=kinds, finalizing=finalizing)
    alike = Response(answer.status or {}, answer.children, finalized=answer.finalized)
    contract.check(alike, kinds=kinds, finalizing=finalizing)
    document: Manifest = {"attachments": list(answer.children)}
    if answer.annotations:
        document["annotations"] = dict(answer.annotations)
    if answer.status is not None:
        document["status"] = answer.status
    if answer.recheck is not None and answer.recheck > 0:
        document["resyncAfterSeconds"] = answer.recheck
    if finalizing:
        document["finalized"] = answer.finalized
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

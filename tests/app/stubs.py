"""A resource that does what the spec of its parent says, and calls to it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import flask

from hooks.app import Limits, create_app
from hooks.core.contract import Request, Response
from hooks.core.deadline import Deadline
from hooks.core.errors import Unavailable
from hooks.core.manifests import Manifest, timestamp
from hooks.effects.ports import CredentialStore, Druid, Kubernetes, Postgres, Services
from hooks.telemetry import Metrics

TOKEN = "first-hook-token"
OTHER_TOKEN = "second-hook-token"
SECRET = "hunter2-never-shown"

DEFAULT = Limits()

CONFIG_MAP: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "out"}}


def services(deadline: Deadline) -> Services:
    """Return a world in which nothing is."""
    nothing = object()
    now = timestamp("2026-01-02T03:04:05Z")
    assert now
    return Services(
        kubernetes=cast("Kubernetes", nothing),
        postgres=cast("Postgres", nothing),
        credentials=cast("CredentialStore", nothing),
        druid=cast("Druid", nothing),
        deadline=deadline,
        now=now,
    )


class Stub:
    """Answers as `spec.do` says."""

    resource = "stub"
    children = frozenset({("v1", "ConfigMap")})

    def __init__(self, wait: Callable[[], object] = lambda: None) -> None:
        self._wait = wait

    def sync(self, request: Request, services: Services) -> Response:
        do = request.parent.get("spec", {}).get("do", "")
        if do == "raise":
            raise KeyError(SECRET)
        if do == "effect-error":
            raise Unavailable("PostgreSQL", SECRET)
        if do == "wait":
            self._wait()
        if do == "fifo":
            return Response(status={"read": Path(request.parent["spec"]["path"]).read_text()})
        children = {
            "null-child": ({**CONFIG_MAP, "data": {"key": None}},),
            "secret-child": ({**CONFIG_MAP, "kind": "Secret"},),
            "twice": (CONFIG_MAP, CONFIG_MAP),
        }.get(do, (CONFIG_MAP,))
        return Response(
            status={"secondsLeft": round(services.deadline.left())}, children=children, recheck=30.0
        )

    def finalize(self, request: Request, services: Services) -> Response:
        assert request.finalizing
        return Response(status={"at": services.now.isoformat()}, finalized=True)

    def customize(self, request: Request) -> list[Manifest]:
        names = None if request.parent.get("spec", {}).get("do") == "null-rule" else ["in"]
        return [{"apiVersion": "v1", "resource": "configmaps", "namespace": "a", "names": names}]


def call(do: str = "", *, finalizing: bool = False, **spec: object) -> bytes:
    """Return the body of a call."""
    parent = {
        "apiVersion": "example.org/v1",
        "kind": "Stub",
        "metadata": {"name": "one", "namespace": "a", "uid": "u-1", "generation": 3},
        "spec": {"do": do, "password": SECRET, **spec},
    }
    document = {"parent": parent, "children": {}, "related": {}, "finalizing": finalizing}
    return json.dumps(document).encode()


def bearer(token: str = TOKEN) -> dict[str, str]:
    """Return the headers of a caller."""
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def make(
    wait: Callable[[], object] = lambda: None,
    *,
    ready: bool = True,
    world: Callable[[Deadline], Services] = services,
    limits: Limits = DEFAULT,
) -> flask.Flask:
    """Build the application around a stub."""
    return create_app(
        [Stub(wait)],
        world,
        tokens=lambda: [TOKEN.encode(), OTHER_TOKEN.encode()],
        ready=lambda: ready,
        metrics=Metrics(),
        limits=limits,
    )

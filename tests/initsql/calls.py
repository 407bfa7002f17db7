"""Calls to the hooks, whose answers are checked as they are before they leave."""

from __future__ import annotations

import json
from datetime import datetime
from typing import cast

from hooks.core import decorator
from hooks.core.contract import Request, Response
from hooks.core.deadline import Deadline
from hooks.core.decorator import Decoration
from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.effects.ports import CredentialStore, Druid, Kubernetes, Postgres, Services
from hooks.initsql.children import KINDS
from hooks.initsql.hooks import InitSqlHooks
from hooks.initsql.pgo import InitSqlPgoHooks
from tests.builders import NOW, merged
from tests.initsql.builders import CONFIG
from tests.initsql.fakes import MemoryKubernetes


def services(kubernetes: MemoryKubernetes | None = None, now: datetime = NOW) -> Services:
    """Return a world with an API server and nothing else."""
    nothing = object()
    return Services(
        kubernetes=cast("Kubernetes", kubernetes or MemoryKubernetes()),
        postgres=cast("Postgres", nothing),
        credentials=cast("CredentialStore", nothing),
        druid=cast("Druid", nothing),
        deadline=Deadline(),
        now=now,
    )


def composite(request: Request, kubernetes: MemoryKubernetes | None = None) -> Response:
    """Sync a cluster that is ours."""
    answer = InitSqlHooks(CONFIG, lambda _action, _outcome: None).sync(
        request, services(kubernetes)
    )
    decorator.render(answer, kinds=KINDS, finalizing=False)
    return answer


def decorated(request: Request, kubernetes: MemoryKubernetes | None = None) -> Decoration:
    """Sync a cluster that the operator may have."""
    answer = InitSqlPgoHooks(CONFIG, lambda _action, _outcome: None).sync(
        request, services(kubernetes)
    )
    decorator.render(answer, kinds=KINDS, finalizing=False)
    return answer


def applied(children: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
    """Return children as Metacontroller shows them once it has made them."""
    return tuple(
        merged(child, {"metadata": {"annotations": {LAST_APPLIED: json.dumps(child)}}})
        for child in children
    )


def listed(answer: Response | Decoration) -> list[tuple[str, str]]:
    """Return kind and name of everything that should exist."""
    return [(child["kind"], child["metadata"]["name"]) for child in answer.children]


def job(answer: Response | Decoration) -> Manifest:
    """Return the last Job of an answer, as it is once made."""
    return applied(tuple(child for child in answer.children if child["kind"] == "Job"))[-1]

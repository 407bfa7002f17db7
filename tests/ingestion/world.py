"""DruidIngestions over the real client and the double of Druid, and an API that remembers status.

The world plays Metacontroller: it hands the object with the status that was written last, and
writes the one that is answered. Its clock is the test's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

import requests

from hooks.core import manifests
from hooks.core.contract import Request, Response, render
from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.ports import CredentialStore, Postgres, Resource, Secret, Services
from hooks.ingestion.hooks import IngestionHooks
from hooks.ingestion.model import Config
from hooks.sandbox.druid import Conduct, DruidServer

NAMESPACE = "team-a"
CONTROLLER = "druidingestions.druid.apache.org"
FINALIZER = f"metacontroller.io/compositecontroller-{CONTROLLER}"
START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
SPECS = Path(__file__).parent / "specs"

Wrap = Callable[[Services], Services]


def text_of(number: int) -> str:
    """Return a specification of the folder `specs` by its number."""
    (found,) = SPECS.glob(f"{number:02}-*")
    return found.read_text()


BATCH, KAFKA, KINESIS, HADOOP, SQL = (text_of(number) for number in (1, 3, 4, 5, 6))


def edited(text: str, *path: str, value: object) -> str:
    """Return a specification with one member changed, or taken away by None."""
    document = json.loads(text)
    holder = document
    for key in path[:-1]:
        holder = holder.setdefault(key, {})
    if value is None:
        holder.pop(path[-1], None)
    else:
        holder[path[-1]] = value
    return json.dumps(document)


def batch(interval: str) -> str:
    """Return a batch specification that differs from others by its interval."""
    path = ("spec", "dataSchema", "granularitySpec", "intervals")
    return edited(BATCH, *path, value=[interval])


A, B = batch("2026-03-01/2026-03-02"), batch("2026-04-01/2026-04-02")


@dataclass
class FakeKubernetes:
    """Secrets and namespaces by name; `down` makes every read fail."""

    secrets: dict[tuple[str, str], Secret] = field(default_factory=dict)
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    down: EffectError | None = None
    reads: list[str] = field(default_factory=list)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:  # noqa: ARG002
        if self.down:
            raise self.down
        return self.objects.get((resource.plural, name))

    def secret(self, namespace: str, name: str) -> Secret | None:
        self.reads.append(f"{namespace}/{name}")
        if self.down:
            raise self.down
        return self.secrets.get((namespace, name))

    def list(
        self, resource: Resource, *, fields: Mapping[str, str] | None = None
    ) -> list[Manifest]:
        raise AssertionError((resource, fields))


class IngestionWorld:
    """One Druid, and the DruidIngestions of one namespace.

    Attributes:
        druid: the double.
        parents: the objects as the API server has them, by name.
        services_: the Router's Services.
        effects: every write that was told of, with its outcome.
    """

    def __init__(self, conduct: Conduct | None = None, **config: Any) -> None:  # noqa: ANN401
        self.now = START
        self.druid = DruidServer(conduct)
        self.druid.conduct.now = self._time
        self.kubernetes = FakeKubernetes()
        self.kubernetes.objects["namespaces", NAMESPACE] = {"metadata": {"name": NAMESPACE}}
        self.parents: dict[str, Manifest] = {}
        self.effects: list[tuple[object, str]] = []
        self.hidden: set[str] = set()
        self.writes = 0
        self.hooks = IngestionHooks(
            Config("database-hooks", **config), lambda *told: self.effects.append(told)
        )
        self.clusters = DruidClusters()
        self.routers: list[Manifest] = []

    def __enter__(self) -> Self:
        self.druid.__enter__()
        self.routers = [self.router()]
        return self

    def __exit__(self, *_: object) -> None:
        self.druid.close()

    def _time(self) -> float:
        return self.now.timestamp()

    def router(self, name: str = "druid-router", cluster: str = "tiny") -> Manifest:
        """Return a Service that leads to the double."""
        return {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "labels": {"druid_cr": cluster, "component": "router"},
            },
            "spec": {
                "type": "ExternalName",
                "externalName": "127.0.0.1",
                "ports": [{"name": "http", "port": self.druid.port}],
            },
        }

    def services(self, seconds: float = 20) -> Services:
        """Return the outside world for one call."""
        deadline = Deadline(seconds)
        return Services(
            kubernetes=self.kubernetes,
            postgres=cast("Postgres", None),
            credentials=cast("CredentialStore", None),
            druid=self.clusters.bind(deadline),
            deadline=deadline,
            now=self.now,
        )

    def wait(self, seconds: float) -> None:
        """Let the clock run on."""
        self.now += timedelta(seconds=seconds)

    # Objects

    def make(
        self,
        text: str = BATCH,
        type_: str = "native-batch",
        *,
        name: str = "load",
        **spec: Any,  # noqa: ANN401
    ) -> Manifest:
        """Create a DruidIngestion."""
        ingestion = {"type": type_, "spec": text, **spec.pop("ingestion", {})}
        self.parents[name] = {
            "apiVersion": "druid.apache.org/v1alpha1",
            "kind": "DruidIngestion",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
                "generation": 1,
                "finalizers": [FINALIZER],
            },
            "spec": {"druidCluster": "tiny", "suspend": False, "ingestion": ingestion, **spec},
        }
        return self.parents[name]

    def edit(self, text: str | None = None, *, name: str = "load", **spec: Any) -> None:  # noqa: ANN401
        """Change spec, as a user does."""
        parent = self.parents[name]
        parent["metadata"]["generation"] += 1
        ingestion = parent["spec"]["ingestion"] | spec.pop("ingestion", {})
        if text is not None:
            ingestion["spec"] = text
        parent["spec"] |= {"ingestion": ingestion, **spec}

    def annotate(self, key: str, value: str, *, name: str = "load") -> None:
        """Set an annotation of ours."""
        meta = self.parents[name]["metadata"]
        meta.setdefault("annotations", {})[f"druid.apache.org/{key}"] = value

    def delete(self, name: str = "load") -> None:
        """Begin the deletion."""
        meta = self.parents[name]["metadata"]
        meta["deletionTimestamp"] = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        meta["generation"] += 1

    def secret(self, name: str = "login", namespace: str = NAMESPACE, **data: bytes) -> None:
        """Write a Secret; written again it is the same object in another version."""
        before = self.kubernetes.secrets.get((namespace, name))
        uid, version = (before.uid, int(before.version) + 1) if before else (str(uuid.uuid4()), 1)
        secret = Secret(name, uid, None, data, str(version))
        self.kubernetes.secrets[namespace, name] = secret

    def log_in(self, username: str, password: str) -> Manifest:
        """Write the login's Secret and return spec.auth."""
        self.secret("login", OperatorUserName=username.encode(), OperatorPassword=password.encode())
        self.hidden.add(password)
        return {"type": "basic-auth", "secretRef": {"name": "login"}}

    # Calls

    def sync(self, name: str = "load", *, wrap: Wrap | None = None) -> Response:
        """Call sync or finalize, and write the status."""
        parent = self.parents[name]
        finalizing = manifests.deleting(parent)
        hook = self.hooks.finalize if finalizing else self.hooks.sync
        request = self._request(parent, finalizing=finalizing)
        services = self.services()
        response = hook(request, wrap(services) if wrap else services)
        body = render(response, kinds=self.hooks.children, finalizing=finalizing)
        told = body.decode() + repr(self.effects)
        assert [secret for secret in self.hidden if secret in told] == []
        answered = json.loads(body)["status"]
        if answered != parent.get("status"):
            self.writes += 1
        parent["status"] = answered
        if response.finalized:
            del self.parents[name]
        return response

    def _request(self, parent: Manifest, *, finalizing: bool) -> Request:
        related = {
            "Service.v1": {
                f"{NAMESPACE}/{manifests.name(service)}": service for service in self.routers
            }
        }
        return Request(
            parent=json.loads(json.dumps(parent)),
            related=deepcopy(related),
            finalizing=finalizing,
            controller={"metadata": {"name": CONTROLLER}},
        )

    def settle(self, name: str = "load", *, most: int = 12) -> None:
        """Sync until nothing is written any more, as the controller would."""
        for _ in range(most):
            before = self.writes
            self.sync(name)
            if name not in self.parents or self.writes == before:
                return
            self.wait(2)
        raise AssertionError(f"never at rest: {self.parents[name]['status']}")

    # What somebody does in Druid's console

    def terminate_by_hand(self) -> None:
        """Terminate every supervisor."""
        for id_ in list(self.druid.supervisors):
            self._post(f"supervisor/{id_}/terminate")

    def suspend_by_hand(self, id_: str, *, suspend: bool = True) -> None:
        """Suspend or resume a supervisor."""
        self._post(f"supervisor/{id_}/{'suspend' if suspend else 'resume'}")

    def _post(self, path: str) -> None:
        url = f"{self.druid.url}/druid/indexer/v1/{path}"
        requests.post(url, timeout=10).raise_for_status()

    # What is so

    def status(self, name: str = "load") -> Manifest:
        """Return the status as it was written."""
        status: Manifest = self.parents[name]["status"]
        return status

    def condition(self, type_: str = "Ready", name: str = "load") -> tuple[str, str]:
        """Return status and reason of a condition."""
        found = manifests.condition(self.parents[name], type_)
        return found["status"], found["reason"]

    def message(self, type_: str = "Ready", name: str = "load") -> str:
        """Return the message of a condition."""
        return str(manifests.condition(self.parents[name], type_)["message"])

    def conditions(self, name: str = "load") -> dict[str, tuple[str, str]]:
        """Return all conditions."""
        return {
            entry["type"]: (entry["status"], entry["reason"])
            for entry in self.status(name)["conditions"]
        }

    @property
    def runs(self) -> list[str]:
        """Return the ids of everything that Druid took, oldest first."""
        return [submission.id for submission in self.druid.submissions]

    @property
    def running(self) -> list[str]:
        """Return the ids of the tasks that run."""
        return [one.id for one in self.druid.tasks.values() if one.state == "RUNNING"]

    def task(self) -> str:
        """Return the id of the only task."""
        (id_,) = self.druid.tasks
        return id_

    def asked(self, call: Callable[[], object]) -> list[str]:
        """Return the requests that a call made of Druid."""
        before = len(self.druid.seen)
        call()
        return self.druid.seen[before:]

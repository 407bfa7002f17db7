"""DruidIngestions over a real Druid, in an API double with the CRD that users apply.

The hooks are called directly and what they answer is written as Metacontroller would. The clock is
the real one, since what Druid does takes its own time; a test may put it forward.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, cast

import yaml

from hooks.core import manifests
from hooks.core.contract import Request, parse, render
from hooks.core.deadline import Deadline
from hooks.core.manifests import Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.kubernetes import connect
from hooks.effects.ports import CredentialStore, Login, Postgres, Services
from hooks.ingestion.hooks import IngestionHooks
from hooks.ingestion.model import Config
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import Kind, MemoryCluster
from hooks.sandbox.kinds import SERVICE
from hooks.sandbox.world import ROOT
from tests.builders import merged
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.specs import Document
from tests.e2e.druid.waiting import NotInTime, until

INGESTIONS = Kind("druid.apache.org/v1alpha1", "DruidIngestion", "druidingestions", namespaced=True)
NAMESPACE = "team-a"
CONTROLLER = "druidingestions.druid.apache.org"
FINALIZER = f"metacontroller.io/compositecontroller-{CONTROLLER}"
LOGIN = "druid-login"


class IngestionWorld:
    """One namespace with a Service for the Router, and the DruidIngestions that a test makes."""

    def __init__(self, server: DruidServer, authority: Authority, directory: Path) -> None:
        crd = yaml.safe_load((ROOT / "crds" / f"{CONTROLLER}.yaml").read_text())
        self._ahead = timedelta()
        self.cluster = MemoryCluster([crd], clock=self._now, namespaces=("default", NAMESPACE))
        self.cluster.create(_router(server.port))
        self._hooks = IngestionHooks(Config("database-hooks"), lambda _action, _outcome: None)
        self._clusters = DruidClusters()
        self._api = ApiServer(
            self.cluster,
            certificate=authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"]),
            ca_file=authority.ca_file,
            tokens={"a-token": "database-hooks"},
        )
        self._kubernetes = connect(self._api.kubeconfig(directory / "kubeconfig", "a-token"))

    def __enter__(self) -> Self:
        self._api.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    # What users do

    def make(
        self, type_: str, document: Document, *, name: str = "load", **spec: object
    ) -> Manifest:
        """Create a DruidIngestion, as Metacontroller shows it first: with our finalizer."""
        return self.cluster.create(
            {
                "apiVersion": INGESTIONS.api_version,
                "kind": INGESTIONS.kind,
                "metadata": {"name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER]},
                "spec": {
                    "druidCluster": "tiny",
                    "ingestion": {"type": type_, "spec": json.dumps(document)},
                    **spec,
                },
            }
        )

    def edit(self, document: Document | None = None, *, name: str = "load", **spec: object) -> None:
        """Change spec."""
        text = {} if document is None else {"ingestion": {"spec": json.dumps(document)}}
        self.cluster.replace(merged(self.ingestion(name), {"spec": {**spec, **text}}))

    def delete(self, name: str = "load") -> None:
        """Ask for the deletion."""
        self.cluster.delete(INGESTIONS, NAMESPACE, name)

    def lose_status(self, name: str = "load") -> None:
        """Take the status away, as a restore from a backup does."""
        bare = self.ingestion(name)
        del bare["status"]
        self.cluster.replace_status(bare)

    def log_in(self, login: Login) -> dict[str, object]:
        """Write the login's Secret, and return spec.auth."""
        data = {"OperatorUserName": login.username, "OperatorPassword": login.password}
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": LOGIN, "namespace": NAMESPACE},
                "data": {
                    key: base64.b64encode(text.encode()).decode() for key, text in data.items()
                },
            }
        )
        return {"type": "basic-auth", "secretRef": {"name": LOGIN}}

    def wait(self, seconds: float) -> None:
        """Put the clock of the hooks forward; Druid's stays."""
        self._ahead += timedelta(seconds=seconds)

    # What Metacontroller does

    def sync(self, name: str = "load") -> None:
        """Call sync or finalize, and write the answer."""
        parent = self.ingestion(name)
        finalizing = manifests.deleting(parent)
        hook = self._hooks.finalize if finalizing else self._hooks.sync
        response = hook(self._request(parent, finalizing=finalizing), self._services())
        body = render(response, kinds=self._hooks.children, finalizing=finalizing)
        if response.finalized:
            parent["metadata"]["finalizers"] = []
            self.cluster.replace(parent)
        else:
            self.cluster.replace_status(parent | {"status": json.loads(body)["status"]})

    def until(self, reason: str, *, name: str = "load", within: float = 120) -> Manifest:
        """Sync until Ready has this reason, and return the status.

        Raises:
            NotInTime: It has not; the text says what is there instead.
        """

        def reached() -> bool:
            self.sync(name)
            return self.ready(name)[1] == reason

        try:
            until(reached, within=within)
        except NotInTime as error:
            raise NotInTime(f"no {reason}: {json.dumps(self.status(name), indent=1)}") from error
        return self.status(name)

    def until_gone(self, name: str = "load") -> None:
        """Finalize until the object is gone."""

        def gone() -> bool:
            self.sync(name)
            return self.cluster.get(INGESTIONS, NAMESPACE, name) is None

        until(gone)

    # What is so

    def ingestion(self, name: str = "load") -> Manifest:
        """Return a DruidIngestion that is there."""
        found = self.cluster.get(INGESTIONS, NAMESPACE, name)
        assert found is not None, name
        return found

    def status(self, name: str = "load") -> Manifest:
        """Return its status."""
        return cast("Manifest", self.ingestion(name).get("status") or {})

    def ready(self, name: str = "load") -> tuple[str, str]:
        """Return status and reason of Ready."""
        ready = manifests.condition(self.ingestion(name), "Ready")
        return ready.get("status", ""), ready.get("reason", "")

    def message(self, type_: str = "Ready", *, name: str = "load") -> str:
        """Return the message of a condition."""
        return str(manifests.condition(self.ingestion(name), type_)["message"])

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._ahead  # noqa: TID251  where the tests' clock is

    def _services(self) -> Services:
        deadline = Deadline()
        return Services(
            kubernetes=self._kubernetes.bind(deadline),
            postgres=cast("Postgres", None),
            credentials=cast("CredentialStore", None),
            druid=self._clusters.bind(deadline),
            deadline=deadline,
            now=self._now(),
        )

    def _request(self, parent: Manifest, *, finalizing: bool) -> Request:
        body: dict[str, Any] = {
            "parent": parent,
            "finalizing": finalizing,
            "controller": {"metadata": {"name": CONTROLLER}},
        }
        [rule] = self._hooks.customize(Request(parent))
        wanted = rule["labelSelector"]["matchLabels"]
        services = [
            service
            for service in self.cluster.list(SERVICE, rule["namespace"])
            if wanted.items() <= _labels(service).items()
        ]
        body["related"] = {
            "Service.v1": {f"{NAMESPACE}/{manifests.name(one)}": one for one in services}
        }
        return parse(json.dumps(body).encode())


def _labels(manifest: Manifest) -> Mapping[str, str]:
    return cast("Mapping[str, str]", manifests.metadata(manifest).get("labels") or {})


def _router(port: int) -> Manifest:
    """Return a Service that leads out of the cluster, to loopback."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "tiny-router",
            "namespace": NAMESPACE,
            "labels": {"druid_cr": "tiny", "component": "router"},
        },
        "spec": {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"name": "http", "port": port}],
        },
    }

"""A Tenant in a real world: real PostgreSQL, real OpenBao, the API and External Secrets doubles.

The hooks are called directly, so that a test can put faults between them and the world, and what
they answer is applied as Metacontroller would: status replaced, children created or updated.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hooks.core import manifests
from hooks.core.contract import Request, Response, render
from hooks.core.deadline import Deadline
from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.kubernetes import connect
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports import Services
from hooks.effects.postgres import PostgresServers
from hooks.instance.hooks import InstanceHooks
from hooks.instance.model import Config as InstanceConfig
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET, Kind, MemoryCluster
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer, controller_policy, reader_policy
from hooks.sandbox.postgres_server import Login, PostgresServer
from hooks.sandbox.projector import KvStore, Projector
from hooks.sandbox.samples import LocalServer, localized
from hooks.sandbox.world import crds
from hooks.tenant.hooks import TenantHooks
from tests.builders import CONFIG, INSTANCE_FINALIZER, TENANT_FINALIZER, instance, merged, tenant

GROUP = "database.ddupan.top/v1alpha1"
INSTANCES = Kind(GROUP, "PostgreSQLInstance", "postgresqlinstances", namespaced=False)
TENANTS = Kind(GROUP, "PostgreSQLTenant", "postgresqltenants", namespaced=True)
NAMESPACE = "team-a"
BASE = "postgresql"


@dataclass(frozen=True, slots=True)
class Effect:
    """A write that the hooks told of."""

    action: object
    outcome: str


class TenantWorld:
    """One Instance and the Tenants that a test makes; everything in it is the test's own."""

    def __init__(
        self,
        postgres: PostgresServer,
        openbao: OpenBaoServer,
        authority: Authority,
        directory: Path,
        *,
        sweep_seconds: float = 600,
    ) -> None:
        self.postgres = postgres
        self.openbao = openbao
        self.name = f"t{uuid.uuid4().hex[:10]}"
        self.now = datetime.now(UTC)  # noqa: TID251  where the test's clock starts
        self.effects: list[Effect] = []
        self.config = replace(CONFIG, mount=MOUNT, base_path=BASE, consumer_address=openbao.address)
        self.cluster = MemoryCluster(
            crds(), clock=lambda: self.now, namespaces=("default", "database-hooks", NAMESPACE)
        )
        self.tenants = TenantHooks(self.config, self._on_effect)
        self.instances = InstanceHooks(
            InstanceConfig("database-hooks", sweep_seconds), self._on_effect
        )
        self._api = ApiServer(
            self.cluster,
            certificate=authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"]),
            ca_file=authority.ca_file,
            tokens={"a-token": "database-hooks"},
        ).__enter__()
        self._kubernetes = connect(self._api.kubeconfig(directory / "kubeconfig", "a-token"))
        self._servers = PostgresServers(ca_file=authority.ca_file)
        self._store = OpenBao(
            address=openbao.address,
            mount=MOUNT,
            auth=TokenFile(
                _file(directory / "token", openbao.token(controller_policy(MOUNT, BASE)))
            ),
            ca_file=authority.ca_file,
        )
        reader = _file(directory / "reader", openbao.token(reader_policy(MOUNT, BASE)))
        store = KvStore(openbao.address, MOUNT, reader, authority.ca_file)
        self.projector = Projector(self.cluster, store, lambda: self.now)

    def __enter__(self) -> TenantWorld:
        return self

    def __exit__(self, *_: object) -> None:
        self._api.close()

    def _on_effect(self, action: object, outcome: str) -> None:
        self.effects.append(Effect(action, outcome))

    def services(self, seconds: float = 20) -> Services:
        """Return the outside world for one call."""
        deadline = Deadline(seconds)
        return Services(
            kubernetes=self._kubernetes.bind(deadline),
            postgres=self._servers.bind(deadline),
            credentials=self._store.bind(deadline),
            druid=DruidClusters().bind(deadline),
            deadline=deadline,
            now=self.now,
        )

    def wait(self, seconds: float) -> None:
        """Let the clock of the hooks and the doubles run on."""
        self.now += timedelta(seconds=seconds)

    # The Instance

    def make_instance(self, *, name: str = "shared", login: Login | None = None) -> Manifest:
        """Create an Instance on the server and bring it to Ready; `login` is its admin's."""
        bare = instance(metadata={"name": name, "uid": None, "generation": None}, status=None)
        bare["metadata"]["finalizers"] = [INSTANCE_FINALIZER]
        server, admin = self.postgres, login or self.postgres.admin
        local = LocalServer(server.host, server.hostaddr, server.port, admin.name, admin.password)
        for manifest in localized([bare], local, "database-hooks"):
            self.cluster.apply(manifest)
        self.sync_instance(name)
        return self.get(INSTANCES, name)

    def sync_instance(self, name: str = "shared") -> Response:
        """Sync the Instance and write its status."""
        parent = self.get(INSTANCES, name)
        response = self.instances.sync(_request(parent, {}, INSTANCE_FINALIZER), self.services())
        self._write_status(parent, response)
        return response

    # Tenants

    def make_tenant(self, name: str = "", **spec: object) -> Manifest:
        """Create a Tenant, as Metacontroller shows it first: with our finalizer."""
        made = tenant(metadata={"name": name or self.name, "uid": None, "generation": None})
        made["spec"] |= spec
        made["metadata"]["finalizers"] = [TENANT_FINALIZER]
        return self.cluster.create(made)

    def edit(self, name: str = "", **spec: object) -> Manifest:
        """Change a Tenant's spec past the API server's rules, as a restored backup may."""
        parent = self.tenant(name)
        return self.cluster.replace(merged(parent, {"spec": spec}))

    def tenant(self, name: str = "") -> Manifest:
        """Return a Tenant as it is now."""
        return self.get(TENANTS, name or self.name, NAMESPACE)

    def sync(
        self,
        name: str = "",
        *,
        wrap: Callable[[Services], Services] = lambda services: services,
        parent: Manifest | None = None,
    ) -> Response:
        """Call sync or finalize as Metacontroller would, and apply the answer."""
        parent = parent or self.tenant(name)
        deleting = manifests.deleting(parent)
        request = _request(parent, self._children(parent), TENANT_FINALIZER, finalizing=deleting)
        call = self.tenants.finalize if deleting else self.tenants.sync
        response = call(request, wrap(self.services()))
        render(response, kinds=self.tenants.children, finalizing=deleting)
        self._apply(parent, response)
        return response

    def settle(self, name: str = "", *, calls: int = 12) -> Manifest:
        """Sync and project until Ready, gone, or nothing moves; return the Tenant."""
        before: object = None
        still = 0
        for _ in range(calls):
            if self.cluster.get(TENANTS, NAMESPACE, name or self.name) is None:
                return {}
            self.sync(name)
            self.project()
            there = self.cluster.get(TENANTS, NAMESPACE, name or self.name)
            moved = (there, self.cluster.list(EXTERNAL_SECRET), self.cluster.list(SECRET))
            # Work in flight may show nothing for a while, as a DROP on a busy machine.
            still = still + 1 if moved == before else 0
            if there is not None and (_ready(there) == "True" or still >= _patience(there)):
                return there
            before = moved
        return self.cluster.get(TENANTS, NAMESPACE, name or self.name) or {}

    def delete(self, name: str = "") -> None:
        """Ask for the deletion of a Tenant."""
        self.cluster.delete(TENANTS, NAMESPACE, name or self.name)

    def project(self) -> None:
        """Let External Secrets do its work."""
        self.projector.reconcile_all()

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Manifest:
        """Return an object that is there."""
        found = self.cluster.get(kind, namespace, name)
        assert found is not None, name
        return found

    def ready(self, name: str = "") -> Manifest:
        """Return the Ready condition of a Tenant."""
        return manifests.condition(self.tenant(name), "Ready")

    # What Metacontroller does with an answer

    def _children(self, parent: Manifest) -> dict[str, Manifest]:
        owned = [
            child
            for child in self.cluster.list(EXTERNAL_SECRET)
            if manifests.controller_uid(child) == manifests.uid(parent)
        ]
        return {f"{NAMESPACE}/{manifests.name(child)}": child for child in owned}

    def _apply(self, parent: Manifest, response: Response) -> None:
        if response.finalized:
            live = self.tenant(manifests.name(parent))
            live["metadata"]["finalizers"] = []
            self.cluster.replace(live)
            return
        desired = {manifests.name(child): child for child in response.children}
        for child in self._children(parent).values():
            if manifests.name(child) not in desired:
                self.cluster.delete(EXTERNAL_SECRET, NAMESPACE, manifests.name(child))
        for child in desired.values():
            self._apply_child(parent, child)
        self._write_status(parent, response)

    def _apply_child(self, parent: Manifest, child: Manifest) -> None:
        made = deepcopy(child)
        made["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(child)
        made["metadata"]["ownerReferences"] = [
            {
                "apiVersion": parent["apiVersion"],
                "kind": parent["kind"],
                "name": manifests.name(parent),
                "uid": manifests.uid(parent),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        live = self.cluster.get(EXTERNAL_SECRET, NAMESPACE, manifests.name(child))
        if live is None:
            self.cluster.create(made)
        elif manifests.controller_uid(live) == manifests.uid(parent):
            self.cluster.replace(merged(live, made))

    def _write_status(self, parent: Manifest, response: Response) -> None:
        live = self.cluster.get(
            TENANTS if parent["kind"] == "PostgreSQLTenant" else INSTANCES,
            manifests.namespace(parent) or None,
            manifests.name(parent),
        )
        if live is not None and manifests.uid(live) == manifests.uid(parent):
            self.cluster.replace_status(live | {"status": response.status})


def _patience(tenant: Manifest) -> int:
    return 3 if manifests.deleting(tenant) or _ready(tenant) == "Unknown" else 1


def _ready(manifest: Manifest) -> str:
    return str(manifests.condition(manifest, "Ready").get("status"))


def _request(
    parent: Manifest, children: dict[str, Manifest], finalizer: str, *, finalizing: bool = False
) -> Request:
    return Request(
        parent=parent,
        children={"ExternalSecret.external-secrets.io/v1": children},
        related={},
        finalizing=finalizing,
        controller={"metadata": {"name": finalizer.partition("compositecontroller-")[2]}},
    )


def _file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path

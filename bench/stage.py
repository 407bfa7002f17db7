"""The sandbox's world with Tenants in it, and the hooks called without HTTP.

Real: PostgreSQL, OpenBao, the app under gunicorn. Doubles: the Kubernetes API and External
Secrets; the API double runs in this process, so its time is part of every figure, on both sides
of a comparison.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.client import Call
from hooks.core import contract, manifests
from hooks.core.contract import Request, Response
from hooks.core.deadline import Deadline
from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.kubernetes import connect
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports import Services
from hooks.effects.postgres import PostgresServers
from hooks.sandbox import world as sandbox
from hooks.sandbox.cluster import EXTERNAL_SECRET, Kind
from hooks.sandbox.openbao_server import MOUNT
from hooks.sandbox.port import Change
from hooks.sandbox.samples import localized
from hooks.sandbox.world import BASE_PATH, NAMESPACE, STORE, World
from hooks.tenant.hooks import TenantHooks
from hooks.tenant.model import Config

API_VERSION = "database.ddupan.top/v1alpha1"
INSTANCES = Kind(API_VERSION, "PostgreSQLInstance", "postgresqlinstances", namespaced=False)
TENANTS = Kind(API_VERSION, "PostgreSQLTenant", "postgresqltenants", namespaced=True)
INSTANCE = "shared"
CONTROLLER = "postgresqltenants.database.ddupan.top"
FINALIZER = f"metacontroller.io/compositecontroller-{CONTROLLER}"
PER_NAMESPACE = 20
READY_SECONDS = 600.0


class Stage:
    """A world with one Ready Instance."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = Config(
            controller_namespace=NAMESPACE,
            mount=MOUNT,
            base_path=BASE_PATH,
            consumer_address=world.openbao.address,
            store_name=STORE,
            store_kind="SecretStore",
            refresh_interval="1h",
            ca_pem=world.authority.ca_file.read_text(),
        )
        self.hooks = TenantHooks(self.config, lambda _action, _outcome: None)
        self.token_file = world.directory / "openbao-token"
        self._kubernetes = connect(world.kubeconfig)
        self._postgres = PostgresServers(ca_file=world.authority.ca_file)
        self._credentials = OpenBao(
            address=world.openbao.address,
            mount=MOUNT,
            auth=TokenFile(self.token_file),
            ca_file=world.authority.ca_file,
        )
        self._controller = next(
            manifest for manifest in sandbox.controllers() if manifests.name(manifest) == CONTROLLER
        )
        for manifest in localized([_instance()], world.local_server, NAMESPACE):
            world.cluster.apply(manifest)
        world.runner.settle()

    def services(self) -> Services:
        """Return the outside world for one call, as the app makes it."""
        deadline = Deadline(20)
        return Services(
            kubernetes=self._kubernetes.bind(deadline),
            postgres=self._postgres.bind(deadline),
            credentials=self._credentials.bind(deadline),
            druid=DruidClusters().bind(deadline),
            deadline=deadline,
            now=datetime.now(UTC),  # noqa: TID251  the clock of the hooks under measurement
        )

    def create(self, number: int) -> Manifest:
        """Create a Tenant that nobody has seen yet, but with our finalizer."""
        namespace = f"team-{number // PER_NAMESPACE}"
        self.world.cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        return self.world.cluster.create(
            {
                "apiVersion": API_VERSION,
                "kind": TENANTS.kind,
                "metadata": {
                    "name": f"tenant{number}",
                    "namespace": namespace,
                    "finalizers": [FINALIZER],
                },
                "spec": {"instanceRef": INSTANCE, "deletionPolicy": "Delete"},
            }
        )

    def populate(self, numbers: Sequence[int]) -> list[Manifest]:
        """Create Tenants and let all parts of the world work until they are Ready."""
        waiting = {manifests.uid(self.create(number)) for number in numbers}
        wanted = frozenset(waiting)
        everybody = threading.Event()

        def note(_change: Change, obj: Manifest, /) -> None:
            if is_ready(obj):
                waiting.discard(manifests.uid(obj))
            if not waiting:
                everybody.set()

        unsubscribe = self.world.cluster.subscribe(note)
        parts = (self.world.runner, self.world.projector)
        for part in parts:
            part.start()
        done = everybody.wait(READY_SECONDS)
        for part in parts:
            part.stop()
        unsubscribe()
        assert done, f"{len(waiting)} Tenants are not Ready"
        found = self.world.cluster.list(TENANTS)
        return [tenant for tenant in found if manifests.uid(tenant) in wanted]

    def live(self, tenant: Manifest) -> Manifest:
        """Return a Tenant as it is now."""
        namespace, name = manifests.namespace(tenant), manifests.name(tenant)
        return self.world.cluster.get(TENANTS, namespace, name) or {}

    def document(self, tenant: Manifest, *, finalizing: bool = False) -> Manifest:
        """Return what Metacontroller would send about a Tenant now."""
        cluster, namespace = self.world.cluster, manifests.namespace(tenant)
        children = {
            f"{namespace}/{manifests.name(child)}": child
            for child in cluster.list(EXTERNAL_SECRET, namespace)
            if manifests.controller_uid(child) == manifests.uid(tenant)
        }
        return {
            "controller": self._controller,
            "parent": self.live(tenant),
            "children": {f"{EXTERNAL_SECRET.kind}.{EXTERNAL_SECRET.api_version}": children},
            "related": {
                f"{INSTANCES.kind}.{INSTANCES.api_version}": {
                    INSTANCE: cluster.get(INSTANCES, None, INSTANCE)
                }
            },
            "finalizing": finalizing,
        }

    def call(self, tenant: Manifest, hook: str = "sync") -> Call:
        """Return a call of a hook about a Tenant as it is now."""
        document = self.document(tenant, finalizing=hook == "finalize")
        return Call(f"/tenant/{hook}", encoded(document))

    def answer(self, body: bytes) -> Response:
        """Do what the app does with a sync, but for HTTP."""
        request = contract.parse(body)
        return self.answered(request, self.services())

    def answered(self, request: Request, services: Services) -> Response:
        """Sync, and check and write the answer."""
        response = self.hooks.sync(request, services)
        contract.render(response, kinds=self.hooks.children, finalizing=False)
        return response

    def apply(self, tenant: Manifest, response: Response) -> None:
        """Write children and status as Metacontroller does."""
        parent, cluster = self.live(tenant), self.world.cluster
        for child in response.children:
            name = manifests.name(child)
            if cluster.get(EXTERNAL_SECRET, manifests.namespace(parent), name) is None:
                cluster.create(_owned(child, parent))
        cluster.replace_status(parent | {"status": response.status})


@contextmanager
def staged(directory: Path, **settings: str) -> Iterator[Stage]:
    """Start a world; its parts work only when they are told to."""
    directory.mkdir()
    # Autovacuum's writes would be counted as ours.
    postgres = {"autovacuum": "off"}
    with sandbox.started(directory, live=False, postgres=postgres, **settings) as world:
        yield Stage(world)


def encoded(document: Manifest) -> bytes:
    """Return JSON as Go writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def is_ready(tenant: Manifest) -> bool:
    """Say whether a Tenant is Ready."""
    return manifests.condition(tenant, "Ready").get("status") == "True"


def until_ready(calls: int, step: Callable[[], Response]) -> int:
    """Repeat a step until its answer says Ready; return how often it took."""
    for count in range(1, calls + 1):
        if is_ready({"status": step().status}):
            return count
    raise AssertionError(f"not Ready after {calls} calls")


def _instance() -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": INSTANCES.kind,
        "metadata": {"name": INSTANCE},
        "spec": {
            "endpoint": {"host": "replaced", "hostaddr": "192.0.2.1", "sslMode": "verify-full"},
            "adminCredentialRef": {"name": "shared-admin"},
        },
    }


def _owned(child: Manifest, parent: Manifest) -> Manifest:
    made = copy.deepcopy(child)
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
    return made

"""A Tenant and an OpenBao that is sealed, gone, misconfigured, or written to by somebody else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from hvac.exceptions import Forbidden, InvalidPath

from hooks.core import manifests
from hooks.core.contract import Response
from hooks.core.manifests import Manifest
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer, controller_policy
from hooks.sandbox.postgres_server import PostgresServer
from hooks.tenant.actions import (
    CreateDatabase,
    CreateRole,
    InsertRow,
    ReserveCredential,
    SecureDatabase,
    SetPassword,
    StoreCredential,
)
from hooks.tenant.hooks import TenantHooks
from tests.effects.openbao.conftest import Fault, Front
from tests.tenant.world import BASE, NAMESPACE, TenantWorld

KV1 = "old"
MISSING = "missing"
READY = ("True", "Ready", "the database accepts the projected credential")


class BaoWorld(TenantWorld):
    """A TenantWorld whose way to OpenBao may be led elsewhere, and whose rights may be taken."""

    def __enter__(self) -> Self:
        return self

    def __init__(
        self,
        postgres: PostgresServer,
        openbao: OpenBaoServer,
        authority: Authority,
        directory: Path,
    ) -> None:
        super().__init__(postgres, openbao, authority, directory)
        self.path = f"{BASE}/{NAMESPACE}/{self.name}"
        self._authority = authority
        self._token = directory / "token"
        self.allow(*(controller_policy(mount, BASE) for mount in (MOUNT, KV1, MISSING)))

    def allow(self, *rules: str) -> None:
        """Let the hooks do this and nothing else from now on."""
        self._rules = "".join(rules) + f"# {self.name}\n"
        self._token.write_text(self.openbao.token(self._rules))
        self.lead_to(self.openbao.address)

    def rewrite_policy(self, rules: str) -> None:
        """Change what the token that the hooks have may do."""
        name = f"rules-{hashlib.sha256(self._rules.encode()).hexdigest()[:12]}"
        self.openbao.write_policy(name, rules)

    @property
    def rules(self) -> str:
        """Return what the hooks may do."""
        return self._rules

    def lead_to(self, address: str, mount: str = MOUNT) -> None:
        """Let the hooks ask there for the credentials."""
        self._store = OpenBao(
            address=address,
            mount=mount,
            auth=TokenFile(self._token),
            ca_file=self._authority.ca_file,
        )

    def use_base_path(self, base: str) -> None:
        """Deploy the hooks anew with another base path."""
        self.tenants = TenantHooks(replace(self.config, base_path=base), self._on_effect)

    # What is there, past the hooks

    @property
    def kv(self) -> Any:  # noqa: ANN401  hvac's own types are untyped here
        """Return KV v2 as root sees it."""
        return self.openbao.client(self.openbao.root_token).secrets.kv.v2

    def credential(self) -> dict[str, Any] | None:
        """Return metadata and, where they are readable, the values of the current version."""
        try:
            metadata = self.kv.read_secret_metadata(self.path, mount_point=MOUNT)["data"]
        except InvalidPath:
            return None
        return {"metadata": metadata, "values": self.values()}

    def values(self) -> dict[str, str] | None:
        """Return the current version."""
        try:
            return dict(
                self.kv.read_secret_version(
                    self.path, mount_point=MOUNT, raise_on_deleted_version=True
                )["data"]["data"]
            )
        except InvalidPath:
            return None

    def write(self, **values: str) -> None:
        """Write a version by hand."""
        self.kv.create_or_update_secret(self.path, values, mount_point=MOUNT)

    def owner(self) -> dict[str, str]:
        """Return the custom metadata."""
        metadata = self.kv.read_secret_metadata(self.path, mount_point=MOUNT)["data"]
        return dict(metadata["custom_metadata"])

    def mark(self, owner: dict[str, str]) -> None:
        """Write the custom metadata by hand."""
        self.kv.update_metadata(self.path, custom_metadata=owner, mount_point=MOUNT)

    def on_the_server(self) -> dict[str, object]:
        """Return everything that PostgreSQL holds under the Tenant's name."""
        queries = {
            "row": "SELECT to_jsonb(t)::text FROM tenant_registry.tenant t WHERE name = %s",
            "role": "SELECT oid, rolcanlogin, rolpassword FROM pg_authid WHERE rolname = %s",
            "database": "SELECT oid, datdba, datacl::text FROM pg_database WHERE datname = %s",
        }
        return {key: self.postgres.sql(query, [self.name]) for key, query in queries.items()}

    def objects(self) -> list[Manifest]:
        """Return the ExternalSecret and the Secret."""
        secrets = [
            secret
            for secret in self.cluster.list(SECRET, NAMESPACE)
            if manifests.name(secret).endswith(f"{self.name}-postgresql")
        ]
        return self.cluster.list(EXTERNAL_SECRET) + secrets

    def everything(self) -> dict[str, object]:
        """Return whatever a sync of the Tenant may change, but for its status."""
        return {**self.on_the_server(), "kv": self.credential(), "objects": self.objects()}


@pytest.fixture(scope="module")
def bao(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBaoServer]:
    """A server that survives being stopped, with a KV v1 mount beside ours."""
    directory = tmp_path_factory.mktemp("bao")
    with OpenBaoServer.start(directory, authority, storage="raft") as server:
        root = server.client(server.root_token)
        root.sys.enable_secrets_engine("kv", path=KV1, options={"version": "1"})
        yield server


@pytest.fixture
def world(
    postgres: PostgresServer, bao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[BaoWorld]:
    with BaoWorld(postgres, bao, authority, tmp_path) as made:
        made.make_instance()
        made.effects.clear()
        yield made


@pytest.fixture
def ready(world: BaoWorld) -> BaoWorld:
    """A world with a Ready Tenant."""
    world.make_tenant(deletionPolicy="Delete")
    world.settle()
    assert told(world.sync()) == READY
    world.effects.clear()
    return world


def told(response: Response) -> tuple[str, ...]:
    condition = manifests.condition({"status": response.status}, "Ready")
    return condition["status"], condition["reason"], condition["message"]


def effects(world: BaoWorld) -> list[type]:
    return [type(effect.action) for effect in world.effects if effect.outcome == "ok"]


# Failures


@contextmanager
def sealed(world: BaoWorld) -> Iterator[None]:
    world.openbao.seal()
    yield
    world.openbao.unseal()


@contextmanager
def stopped(world: BaoWorld) -> Iterator[None]:
    world.openbao.stop()
    yield
    world.openbao.restart()


@contextmanager
def forbidden(world: BaoWorld) -> Iterator[None]:
    world.rewrite_policy('path "secret/data/elsewhere" { capabilities = ["read"] }')
    yield
    world.rewrite_policy(world.rules)


def fronted(*faults: Fault) -> Callable[[BaoWorld], AbstractContextManager[None]]:
    """Return how to put a proxy with these faults before the server."""

    @contextmanager
    def failing(world: BaoWorld) -> Iterator[None]:
        front = Front(world.openbao)
        front.faults.extend(faults)
        world.lead_to(front.address)
        yield
        world.lead_to(world.openbao.address)
        front.close()

    return failing


def mounted_at(mount: str) -> Callable[[BaoWorld], AbstractContextManager[None]]:
    """Return how to deploy the hooks with another mount."""

    @contextmanager
    def elsewhere(world: BaoWorld) -> Iterator[None]:
        world.lead_to(world.openbao.address, mount)
        yield
        world.lead_to(world.openbao.address)

    return elsewhere


@dataclass(frozen=True)
class Failure:
    """A way to fail and what is said of it.

    Attributes:
        recheck: what the server asked for.
        wrong: it is the deployment that is wrong, not the moment.
    """

    cause: Callable[[BaoWorld], AbstractContextManager[None]]
    message: str
    recheck: float | None = None
    wrong: bool = False


STANDBY = {"Location": "https://127.0.0.1:1/v1/secret"}
FORBIDDEN = "OpenBao: permission denied on secret: check the policy of the hooks (403)"


def no_mount(name: str) -> str:
    return (
        f"OpenBao: there is no KV v2 mount {name} that the hooks may use: check the mount and the"
        " policy of the hooks"
    )


FAILURES = {
    "sealed": Failure(sealed, "OpenBao: it is sealed: unseal it (503)"),
    "stopped": Failure(stopped, "OpenBao: no connection"),
    "forbidden": Failure(forbidden, FORBIDDEN),
    "quota": Failure(
        fronted(Fault(429, headers={"Retry-After": "7"})), "OpenBao: too many requests (429)", 7.0
    ),
    "storage": Failure(fronted(Fault(500)), "OpenBao: it cannot answer now (500)"),
    "black-hole": Failure(fronted(Fault(silent=True)), "OpenBao: no answer in time"),
    "standby": Failure(
        fronted(Fault(307, headers=STANDBY)),
        "OpenBao: a standby answered: let the address lead to the active server (307)",
    ),
    "no-mount": Failure(mounted_at(MISSING), no_mount(MISSING), wrong=True),
    "kv-v1": Failure(mounted_at(KV1), no_mount(KV1), wrong=True),
}

failures = pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)


@failures
def test_nothing_is_made_before_openbao_says_that_there_is_nothing_and_then_once(
    world: BaoWorld, failure: Failure
) -> None:
    world.make_tenant()
    nothing = world.everything()
    with failure.cause(world):
        response = world.sync()
    assert told(response) == ("False", "DependencyUnavailable", failure.message)
    assert response.status["phase"] == "Pending"
    assert response.recheck == (failure.recheck or 2.0)
    assert (world.everything(), world.effects) == (nothing, [])
    world.settle()
    assert told(world.sync()) == READY
    assert world.owner()["tenant-uid"] == manifests.uid(world.tenant())
    assert effects(world).count(StoreCredential) == 1


@failures
def test_a_ready_tenant_stays_as_it_is_without_openbao(ready: BaoWorld, failure: Failure) -> None:
    before, status = ready.everything(), ready.tenant()["status"]
    with failure.cause(ready):
        response = ready.sync()
    reported = ("False", "DependencyUnavailable", failure.message)
    assert told(response) == (reported if failure.wrong else READY)
    assert (response.status == status) is not failure.wrong
    assert (response.status["phase"], ready.everything(), ready.effects) == ("Ready", before, [])
    assert (told(ready.sync()), ready.everything()) == (READY, before)


WRITES = {
    "quota": Failure(
        fronted(Fault(429, headers={"Retry-After": "7"}, method="POST")),
        "OpenBao: too many requests (429)",
        7.0,
    ),
    "sealed": Failure(
        fronted(Fault(503, body='{"errors":["Vault is sealed"]}', method="POST")),
        "OpenBao: it is sealed: unseal it (503)",
    ),
    "lost": Failure(fronted(Fault(method="POST")), "OpenBao: no connection"),
    "forbidden": Failure(
        fronted(Fault(403, body='{"errors":["permission denied"]}', method="POST")), FORBIDDEN
    ),
}


@pytest.mark.parametrize("failure", WRITES.values(), ids=WRITES)
def test_nothing_is_made_on_the_server_before_the_credential_is_stored(
    world: BaoWorld, failure: Failure
) -> None:
    world.make_tenant()
    with failure.cause(world):
        response = world.sync()
    seen = world.everything()
    assert told(response) == (
        "False",
        "DependencyUnavailable",
        f"reserving the credential's path: {failure.message}",
    )
    assert response.recheck == (failure.recheck or 2.0)
    assert response.status["phase"] == "Planned"
    assert {key: bool(value) for key, value in seen.items()} == {
        "row": True,
        "role": False,
        "database": False,
        "kv": False,
        "objects": False,
    }
    world.settle()
    assert told(world.sync()) == READY


def test_a_write_that_goes_on_failing_does_not_change_its_reason(world: BaoWorld) -> None:
    world.make_tenant()
    failing = fronted(Fault(503, method="POST"))
    with failing(world):
        first = world.sync()
        world.wait(30)
        second = world.sync()
    assert (second.status, second.recheck) == (first.status, 30.0)


# What somebody does to the credential


def conflict(message: str) -> tuple[str, ...]:
    return "False", "Conflict", message


def lost(world: BaoWorld, what: str) -> tuple[str, ...]:
    return conflict(
        f"the credential at {world.path} {what}: restore it in OpenBao, or have a new one made by"
        " annotating this Tenant with database.ddupan.top/new-credential and a value not used"
        " before"
    )


def foreign(world: BaoWorld) -> tuple[str, ...]:
    return conflict(
        f"OpenBao path {world.path} belongs to somebody else (its custom metadata does not name"
        " this Tenant): choose another Tenant name, or find out whose credential it is"
    )


def overwritten(world: BaoWorld) -> tuple[str, ...]:
    return conflict(
        f"the credential at {world.path} was overwritten: it must hold username {world.name!r} and"
        " a password; restore the earlier version"
    )


@dataclass(frozen=True)
class Harm:
    """What somebody does to a credential, what is said of it, and how it is made good."""

    do: Callable[[BaoWorld], object]
    said: Callable[[BaoWorld], tuple[str, ...]]


def restore(world: BaoWorld, values: dict[str, str], owner: dict[str, str]) -> None:
    """Write what was there, as an administrator with a backup would."""
    world.mark(owner)
    world.write(**values)


HARMS = {
    "soft-deleted": Harm(
        lambda world: world.kv.delete_latest_version_of_secret(world.path, mount_point=MOUNT),
        lambda world: lost(world, "was deleted or destroyed"),
    ),
    "destroyed": Harm(
        lambda world: world.kv.destroy_secret_versions(world.path, [1], mount_point=MOUNT),
        lambda world: lost(world, "was deleted or destroyed"),
    ),
    "metadata-deleted": Harm(
        lambda world: world.kv.delete_metadata_and_all_versions(world.path, mount_point=MOUNT),
        lambda world: lost(world, "is gone"),
    ),
    "other-username": Harm(
        lambda world: world.write(username="postgres", password="a-word"), overwritten
    ),
    "no-password": Harm(lambda world: world.write(username=world.name), overwritten),
    "empty-password": Harm(
        lambda world: world.write(username=world.name, password=""), overwritten
    ),
    "other-owner": Harm(
        lambda world: world.mark(world.owner() | {"tenant-uid": "somebody"}), foreign
    ),
    "no-owner": Harm(lambda world: world.mark({}), foreign),
}


@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_harmed_credential_is_reported_not_touched_and_good_again_once_restored(
    ready: BaoWorld, harm: Harm
) -> None:
    values, owner, server = ready.values(), ready.owner(), ready.on_the_server()
    assert values is not None
    harm.do(ready)
    harmed = ready.everything()
    response = ready.sync()
    assert (told(response), ready.everything()) == (harm.said(ready), harmed)
    restore(ready, values, owner)
    ready.settle()
    assert told(ready.sync()) == READY
    assert (ready.values(), ready.on_the_server(), ready.effects) == (values, server, [])


def test_an_undeleted_version_is_as_it_was(ready: BaoWorld) -> None:
    before = ready.values(), ready.on_the_server()
    ready.kv.delete_latest_version_of_secret(ready.path, mount_point=MOUNT)
    ready.sync()
    ready.kv.undelete_secret_versions(ready.path, [1], mount_point=MOUNT)
    assert told(ready.sync()) == READY
    assert (ready.values(), ready.on_the_server()) == before


def test_the_role_follows_a_password_that_was_written_by_hand(ready: BaoWorld) -> None:
    values = {"username": ready.name, "password": "written-by-hand"}
    ready.write(**values)
    following = ready.sync()
    ready.settle()
    assert told(following)[:2] == ("Unknown", "Reconciling")
    assert (told(ready.sync()), ready.values(), effects(ready)) == (READY, values, [SetPassword])


@pytest.mark.parametrize("name", ["soft-deleted", "metadata-deleted", "other-owner", "no-owner"])
def test_a_harmed_credential_is_no_licence_to_destroy(ready: BaoWorld, name: str) -> None:
    """Deleting the Tenant destroys what is proved to be its own, and no stranger's credential."""
    HARMS[name].do(ready)
    stranger = name in ("other-owner", "no-owner")
    before = ready.everything()
    ready.delete()
    ready.settle()
    if stranger:
        assert told(ready.sync())[1] == "Conflict"
        assert ready.everything() == before
    else:
        nothing: dict[str, object] = {"row": [], "role": [], "database": []}
        assert ready.everything() == {**nothing, "kv": None, "objects": []}


def test_a_path_that_somebody_else_has_is_not_overwritten(world: BaoWorld) -> None:
    world.write(username="theirs", password="theirs-too")
    before = world.everything()
    world.make_tenant()
    assert told(world.sync()) == foreign(world)
    assert (world.everything(), world.effects) == (before, [])


def test_another_base_path_finds_no_credential_and_makes_none(ready: BaoWorld) -> None:
    before = ready.everything()
    ready.use_base_path("elsewhere")
    moved = told(ready.sync())
    after = ready.everything()
    ready.use_base_path(BASE)
    assert moved == conflict(
        f"the credential was stored at {ready.path} and would now be at"
        f" elsewhere/{NAMESPACE}/{ready.name}: set the base path of the deployment back"
    )
    assert (after, ready.effects, told(ready.sync())) == (before, [], READY)


# The policy

CAPABILITIES = {
    "data": ["create", "update", "read"],
    "metadata": ["create", "update", "read", "delete"],
}


def policy(capabilities: dict[str, list[str]]) -> str:
    return "".join(
        f'path "{MOUNT}/{kind}/{BASE}/*" {{ capabilities = {json.dumps(rights)} }}\n'
        for kind, rights in capabilities.items()
    )


def test_the_policy_of_the_hooks_allows_their_own_paths_and_nothing_else(
    world: BaoWorld,
) -> None:
    token = world.openbao.token(controller_policy(MOUNT, BASE))
    client: Any = world.openbao.client(token).secrets.kv.v2
    mine, others = world.path, f"other/{NAMESPACE}/{world.name}"
    world.write(username="x", password="y")
    client.read_secret_version(mine, mount_point=MOUNT, raise_on_deleted_version=True)
    attempts: list[Callable[[], object]] = [
        lambda: client.list_secrets(f"{BASE}/{NAMESPACE}", mount_point=MOUNT),
        lambda: client.read_secret_version(
            others, mount_point=MOUNT, raise_on_deleted_version=True
        ),
        lambda: client.create_or_update_secret(others, {"a": "b"}, mount_point=MOUNT),
        lambda: client.delete_latest_version_of_secret(mine, mount_point=MOUNT),
        lambda: client.destroy_secret_versions(mine, [1], mount_point=MOUNT),
        lambda: client.read_configuration(mount_point=MOUNT),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()


def test_with_the_policy_a_tenant_comes_and_goes(world: BaoWorld) -> None:
    world.allow(policy(CAPABILITIES))
    world.make_tenant(deletionPolicy="Delete")
    world.settle()
    ready = told(world.sync())
    world.delete()
    world.settle()
    assert (policy(CAPABILITIES), ready, world.credential()) == (
        controller_policy(MOUNT, BASE),
        READY,
        None,
    )


NEEDED = [
    ("data", "update"),
    ("data", "read"),
    ("metadata", "create"),
    ("metadata", "read"),
    ("metadata", "delete"),
]


@pytest.mark.parametrize(("kind", "right"), NEEDED, ids="-".join)
def test_without_a_right_of_the_policy_a_tenant_does_not_come_or_does_not_go(
    world: BaoWorld, kind: str, right: str
) -> None:
    less = {
        name: [held for held in rights if (name, held) != (kind, right)]
        for name, rights in CAPABILITIES.items()
    }
    world.allow(policy(less))
    world.make_tenant(deletionPolicy="Delete")
    world.settle()
    ready = told(world.sync())
    world.delete()
    world.settle()
    assert (ready, world.credential()) != (READY, None)
    world.allow(policy(CAPABILITIES))
    world.settle()
    assert world.credential() is None


def test_a_tenant_is_made_in_the_order_of_the_contract(world: BaoWorld) -> None:
    world.make_tenant()
    world.settle()
    assert effects(world) == [
        InsertRow,
        ReserveCredential,
        StoreCredential,
        CreateRole,
        CreateDatabase,
        SecureDatabase,
    ]

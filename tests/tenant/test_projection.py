"""From the credential to the Secret: whose names they are, what was projected, what heals."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from psycopg import OperationalError

from hooks.core import manifests
from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.effects.ports import Credential
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import CONFIG_MAP, EXTERNAL_SECRET, SECRET, Kind
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from hooks.sandbox.postgres_server import Login, PostgresServer
from tests.builders import merged
from tests.tenant.faults import Fuse
from tests.tenant.world import INSTANCES, NAMESPACE, TenantWorld

NOTHING: dict[str, Any] = {"rows": [], "role": [], "database": [], "kv": None}
WAITING = ("Unknown", "Reconciling")
FAILED = ("False", "CredentialProjectionFailed")
READY = ("True", "Ready")
CONFLICT = ("False", "Conflict")


class Scene(TenantWorld):
    """A world in which everything that can be touched by strangers is at hand."""

    @property
    def api(self) -> ApiServer:
        return self._api

    @property
    def target(self) -> str:
        return f"shared-{self.name}-postgresql"

    @property
    def path(self) -> str:
        return f"postgresql/{NAMESPACE}/{self.name}"

    def verdict(self) -> tuple[str, str]:
        ready = self.ready()
        return ready["status"], ready["reason"]

    def child(self) -> Manifest:
        return self.get(EXTERNAL_SECRET, self.target, NAMESPACE)

    def secret(self) -> dict[str, str]:
        data = self.get(SECRET, self.target, NAMESPACE)["data"]
        return {key: base64.b64decode(text).decode() for key, text in data.items()}

    def change_secret(self, **values: str) -> None:
        live = self.get(SECRET, self.target, NAMESPACE)
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in values.items()}
        self.cluster.replace(merged(live, {"data": encoded}))

    def credential(self) -> Credential:
        """Return what KV holds; it must hold something."""
        found = self.services().credentials.read(self.path)
        assert found is not None
        return found

    def kv(self) -> Any:  # noqa: ANN401  hvac's client has no types here
        return self.openbao.client(self.openbao.root_token).secrets.kv.v2

    def put(self, **values: str) -> None:
        """Write a version as `bao kv put` does."""
        self.kv().create_or_update_secret(self.path, values, mount_point=MOUNT)

    def mark_kv(self, **owner: str) -> None:
        """Change custom metadata of the credential."""
        kept = self.kv().read_secret_metadata(self.path, mount_point=MOUNT)["data"]
        custom = {**(kept["custom_metadata"] or {}), **owner}
        self.kv().update_metadata(self.path, mount_point=MOUNT, custom_metadata=custom)

    def holdings(self) -> dict[str, Any]:
        """Return all that the servers hold under the Tenant's name, to the last byte."""
        sql, name = self.postgres.sql, self.name
        credential = self.services().credentials.read(self.path)
        return {
            "rows": sql(
                "SELECT to_jsonb(t)::text FROM tenant_registry.tenant t"
                " WHERE name = %s OR database_name = %s ORDER BY uid",
                [name, name],
            ),
            "role": sql("SELECT to_jsonb(a)::text FROM pg_authid a WHERE rolname = %s", [name]),
            "database": sql(
                "SELECT oid, datdba, datconnlimit, datallowconn, datacl::text FROM pg_database"
                " WHERE datname = %s",
                [name],
            ),
            "kv": credential,
        }

    def controlled_by(self, owner: Manifest) -> list[Manifest]:
        """Return the ownerReferences of an object that another one controls."""
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        meta = {key: owner["metadata"][key] for key in ("name", "uid")}
        return [reference | meta | {"controller": True, "blockOwnerDeletion": True}]

    def stranger(self, kind: Kind) -> Manifest:
        """Create an object that controls others."""
        meta = {"name": f"other-{self.name}", "namespace": NAMESPACE}
        made: Manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
        if kind == EXTERNAL_SECRET:
            made["spec"] = {"target": {"name": "theirs"}, "secretStoreRef": {"name": "theirs"}}
        return self.cluster.create(made)

    def foreign(self, kind: Kind, owner: Kind | None = None) -> Manifest:
        """Create somebody else's Secret or ExternalSecret under the Tenant's name."""
        meta: Manifest = {"name": self.target, "namespace": NAMESPACE}
        if owner is not None:
            meta["ownerReferences"] = self.controlled_by(self.stranger(owner))
        made: Manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
        if kind == SECRET:
            made |= {"type": "Opaque", "data": {"theirs": "dmFsdWU="}}
        else:
            made["spec"] = {"target": {"name": "theirs"}, "secretStoreRef": {"name": "theirs"}}
        return self.cluster.create(made)


class ServerSide(Scene):
    """Children are written as by server-side apply: without an annotation of what was applied."""

    def _apply_child(self, parent: Manifest, child: Manifest) -> None:
        live = self.cluster.get(EXTERNAL_SECRET, NAMESPACE, manifests.name(child))
        if live is not None:
            self.cluster.replace(merged(live, child))
            return
        super()._apply_child(parent, child)
        made = self.get(EXTERNAL_SECRET, manifests.name(child), NAMESPACE)
        made["metadata"]["annotations"].pop(LAST_APPLIED)
        self.cluster.replace(made)


@pytest.fixture
def world(
    postgres: PostgresServer, openbao: OpenBaoServer, authority: Authority, tmp_path: Path
) -> Iterator[Scene]:
    with Scene(postgres, openbao, authority, tmp_path) as made:
        assert isinstance(made, Scene)
        made.make_instance()
        yield made


# Whose names


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        pytest.param(SECRET, None, id="a Secret of nobody"),
        pytest.param(SECRET, EXTERNAL_SECRET, id="a Secret of another ExternalSecret"),
        pytest.param(SECRET, CONFIG_MAP, id="a Secret of another controller"),
        pytest.param(EXTERNAL_SECRET, None, id="an ExternalSecret of nobody"),
        pytest.param(EXTERNAL_SECRET, CONFIG_MAP, id="an ExternalSecret of another controller"),
    ],
)
def test_a_foreign_object_is_a_conflict_before_anything_is_made(
    world: Scene, kind: Kind, owner: Kind | None
) -> None:
    theirs = world.foreign(kind, owner)
    world.make_tenant()
    answers = [world.sync().children for _ in range(3)]
    assert (world.verdict(), answers) == (CONFLICT, [(), (), ()])
    assert world.get(kind, world.target, NAMESPACE) == theirs
    assert world.holdings() == NOTHING
    world.cluster.delete(kind, NAMESPACE, world.target)
    world.settle()
    assert world.verdict() == READY


@pytest.mark.parametrize("kind", [SECRET, EXTERNAL_SECRET], ids=lambda kind: kind.kind)
@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_foreign_object_that_appears_meanwhile_keeps_the_child_back(
    world: Scene, kind: Kind, at: int
) -> None:
    theirs: list[Manifest] = []

    def appear(number: int) -> None:
        if number == at:
            theirs.append(world.foreign(kind))

    world.make_tenant()
    assert world.sync(wrap=Fuse(before=appear).services).children == ()
    assert world.verdict() == CONFLICT
    assert [world.get(kind, world.target, NAMESPACE)] == theirs


@pytest.mark.parametrize("plural", ["secrets", "externalsecrets"])
def test_the_child_is_listed_only_when_both_names_were_read(world: Scene, plural: str) -> None:
    world.make_tenant()
    world.api.faults = lambda _, path: 500 if path.endswith(f"{plural}/{world.target}") else None
    assert world.sync().children == ()
    assert world.verdict() == ("False", "DependencyUnavailable")
    assert world.holdings() == NOTHING
    world.api.faults = lambda _method, _path: None
    world.settle()
    assert world.verdict() == READY


def test_two_tenants_cannot_have_one_secret(world: Scene) -> None:
    world.make_tenant()
    world.settle()
    before = world.secret()
    second = f"{world.name}b"
    world.make_tenant(second, credential={"secretName": world.target})
    world.settle(second)
    ready = world.ready(second)
    assert (ready["status"], ready["reason"]) == CONFLICT
    assert (world.secret(), world.verdict()) == (before, READY)


# What is projected


def test_the_child_is_spelled_with_every_default(world: Scene) -> None:
    world.make_tenant()
    (child,) = world.sync().children
    name, written = world.name, world.credential().created
    labels = {
        "app.kubernetes.io/managed-by": "database-hooks",
        "database.ddupan.top/tenant": name,
    }
    defaults = {
        "conversionStrategy": "Default",
        "decodingStrategy": "None",
        "metadataPolicy": "None",
    }
    login = "{{ .username }}:{{ .password }}"
    at = f"localhost:{world.postgres.port}"
    assert child == {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {
            "name": world.target,
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {"force-sync": f"v1 {written}"},
        },
        "spec": {
            "refreshPolicy": "Periodic",
            "refreshInterval": "1h",
            "secretStoreRef": {"kind": "SecretStore", "name": "openbao"},
            "target": {
                "name": world.target,
                "creationPolicy": "Owner",
                "deletionPolicy": "Retain",
                "template": {
                    "engineVersion": "v2",
                    "mergePolicy": "Replace",
                    "type": "Opaque",
                    "metadata": {"labels": labels},
                    "data": {
                        "username": "{{ .username }}",
                        "password": "{{ .password }}",
                        "host": "localhost",
                        "port": str(world.postgres.port),
                        "database": name,
                        "sslmode": "verify-full",
                        "uri": f"postgresql://{login}@{at}/{name}?sslmode=verify-full",
                        "jdbc-uri": (
                            f"jdbc:postgresql://{at}/{name}?user={{{{ .username }}}}"
                            "&password={{ .password }}&sslmode=verify-full"
                        ),
                        "pgpass": f"{at}:{name}:{login}",
                    },
                },
            },
            "data": [
                {
                    "secretKey": key,
                    "remoteRef": {"key": world.path, "property": key, **defaults},
                }
                for key in ("username", "password")
            ],
        },
    }


def test_the_secret_and_the_status_say_where_everything_is(world: Scene) -> None:
    world.make_tenant()
    status = world.settle()["status"]
    login = world.credential().login
    assert login is not None
    user, password = login.username, login.password
    at = f"localhost:{world.postgres.port}"
    assert world.secret() == {
        "username": user,
        "password": password,
        "host": "localhost",
        "port": str(world.postgres.port),
        "database": world.name,
        "sslmode": "verify-full",
        "uri": f"postgresql://{user}:{password}@{at}/{world.name}?sslmode=verify-full",
        "jdbc-uri": (
            f"jdbc:postgresql://{at}/{world.name}?user={user}&password={password}"
            "&sslmode=verify-full"
        ),
        "pgpass": f"{at}:{world.name}:{user}:{password}",
    }
    assert status["credential"] == {
        "secretRef": {"name": world.target},
        "openBaoURL": f"{world.openbao.address}/v1/secret/data/postgresql/team-a/{world.name}",
    }


# What External Secrets did


def _silent(world: Scene) -> None:
    live = world.child()
    world.cluster.replace_status({**live, "status": {}})


def _deleted_at_the_source(world: Scene) -> None:
    live = world.child()
    changed = deepcopy(live["status"])
    changed["conditions"][0]["reason"] = "SecretDeleted"
    world.cluster.replace_status({**live, "status": changed})


def _older_generation(world: Scene) -> None:
    world.cluster.replace(merged(world.child(), {"spec": {"refreshInterval": "2h"}}))


def _secret_removed(world: Scene) -> None:
    world.cluster.delete(SECRET, NAMESPACE, world.target)


def _secret_taken(world: Scene) -> None:
    live = world.get(SECRET, world.target, NAMESPACE)
    live["metadata"]["ownerReferences"] = world.controlled_by(world.stranger(EXTERNAL_SECRET))
    world.cluster.replace(live)


def _give_back(world: Scene) -> None:
    live = world.get(SECRET, world.target, NAMESPACE)
    del live["metadata"]["ownerReferences"]
    world.cluster.replace(live)
    world.wait(3600)


def _refresh(world: Scene) -> None:
    world.wait(3600)


def _by_itself(_world: Scene) -> None:
    return


@pytest.mark.parametrize(
    ("spoil", "heal", "message"),
    [
        pytest.param(
            _silent,
            _by_itself,
            "ExternalSecret {0} has no status: check that External Secrets runs and that the"
            " SecretStore it names is Ready",
            id="no status",
        ),
        pytest.param(
            _deleted_at_the_source,
            _refresh,
            "ExternalSecret {0} reports SecretDeleted, not SecretSynced",
            id="SecretDeleted",
        ),
        pytest.param(
            _older_generation,
            _by_itself,
            "ExternalSecret {0} is not synced at its current generation",
            id="an older generation",
        ),
        pytest.param(
            lambda world: world.change_secret(password="anything"),
            _by_itself,
            "Secret {0} does not hold the current credential: waiting for a refresh",
            id="password edited by hand",
        ),
        pytest.param(
            lambda world: world.change_secret(host="elsewhere"),
            _by_itself,
            "Secret {0} does not hold the current endpoint: waiting for a refresh",
            id="host edited by hand",
        ),
        pytest.param(
            _secret_removed,
            _by_itself,
            "Secret {0} is not there: External Secrets has not written it",
            id="removed by hand",
        ),
        pytest.param(
            _secret_taken,
            _give_back,
            "Secret {0} is not controlled by ExternalSecret {0}",
            id="another owner",
        ),
    ],
)
def test_a_bad_projection_is_reported_after_a_minute_and_heals(
    world: Scene, spoil: Callable[[Scene], None], heal: Callable[[Scene], None], message: str
) -> None:
    world.make_tenant()
    world.settle()
    before = world.holdings()
    spoil(world)
    world.sync()
    assert (world.verdict(), world.tenant()["status"]["phase"]) == (
        WAITING,
        "ExternalSecretCreated",
    )
    world.wait(61)
    world.sync()
    assert (world.verdict(), world.ready()["message"]) == (FAILED, message.format(world.target))
    heal(world)
    world.project()
    world.settle()
    assert world.verdict() == READY
    assert world.holdings() == before


def test_a_store_that_cannot_be_read_is_reported_and_heals(world: Scene, tmp_path: Path) -> None:
    reader = tmp_path / "reader"
    token = reader.read_text()
    reader.write_text("no-token")
    world.make_tenant()
    world.settle()
    assert world.verdict() == WAITING
    world.wait(61)
    world.settle()
    assert world.verdict() == FAILED
    assert world.ready()["message"] == (
        f"ExternalSecret {world.target} is not synced (SecretSyncedError): check the SecretStore"
        " and what it may read in OpenBao"
    )
    reader.write_text(token)
    world.settle()
    assert world.verdict() == READY


def test_the_role_and_the_secret_follow_a_new_version(world: Scene) -> None:
    world.make_tenant()
    world.settle()
    old = Login(world.name, world.secret()["password"])
    new = Login(world.name, "written-by-hand-in-kv")
    world.put(username=world.name, password=new.password)
    world.sync()
    assert (world.verdict(), world.ready()["message"]) == (
        WAITING,
        f"Secret {world.target} does not hold the current credential: waiting for a refresh",
    )
    assert world.postgres.sql("SELECT 1", database=world.name, login=new) == [(1,)]
    with pytest.raises(OperationalError):
        world.postgres.sql("SELECT 1", database=world.name, login=old)
    nudge = f"v2 {world.credential().created}"
    assert manifests.annotations(world.child())["force-sync"] == nudge
    world.settle()
    assert (world.verdict(), world.secret()["password"]) == (READY, new.password)


def test_a_moved_endpoint_reaches_the_secret(world: Scene, authority: Authority) -> None:
    world.make_tenant()
    world.settle()
    password = world.secret()["password"]
    ips = ["127.0.0.1", "::1"]
    world.postgres.present(authority.issue("postgres", dns=["localhost", "db.internal"], ips=ips))
    try:
        moved = {"spec": {"endpoint": {"host": "db.internal"}}}
        world.cluster.replace(merged(world.get(INSTANCES, "shared"), moved))
        held = world.child()
        world.sync()
        assert (world.verdict(), world.child()) == (("False", "InstanceNotReady"), held)
        world.sync_instance()
        world.settle()
        assert world.verdict() == READY
        secret = world.secret()
        assert (secret["host"], secret["password"]) == ("db.internal", password)
        assert secret["pgpass"].startswith(f"db.internal:{world.postgres.port}:{world.name}:")
    finally:
        world.postgres.present(authority.issue("postgres", dns=["localhost"], ips=ips))


# The child is never dropped


@pytest.fixture(scope="module", params=[Scene, ServerSide], ids=["dynamic-apply", "server-side"])
def resting(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    openbao: OpenBaoServer,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    directory: Path = tmp_path_factory.mktemp("resting")
    with request.param(postgres, openbao, authority, directory) as made:
        made.make_instance()
        made.make_tenant(extensions=["hstore"])
        made.settle()
        yield made


@contextmanager
def _spec(world: Scene, **changes: object) -> Iterator[None]:
    before = world.tenant()
    world.cluster.force(merged(before, {"spec": changes}))
    yield
    world.cluster.force(before)


@contextmanager
def _instance_unready(world: Scene) -> Iterator[None]:
    live = world.get(INSTANCES, "shared")
    world.cluster.replace_status({**live, "status": {}})
    yield
    world.sync_instance()


@contextmanager
def _openbao_down(world: Scene, *, old: bool = False) -> Iterator[None]:
    if old:
        world.change_secret(password="anything")
    world.openbao.seal()
    try:
        yield
    finally:
        world.openbao.unseal()


@contextmanager
def _postgres_down(world: Scene) -> Iterator[None]:
    world.postgres.kill()
    try:
        yield
    finally:
        world.postgres.restart()


@contextmanager
def _foreign_credential(world: Scene) -> Iterator[None]:
    uid = manifests.uid(world.tenant())
    world.mark_kv(**{"tenant-uid": "somebody-else"})
    yield
    world.mark_kv(**{"tenant-uid": uid})


@contextmanager
def _api_failing(world: Scene) -> Iterator[None]:
    world.api.faults = lambda _, path: 500 if f"/secrets/{world.target}" in path else None
    yield
    world.api.faults = lambda _method, _path: None


Trouble = Callable[[Scene], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("trouble", "verdict"),
    [
        pytest.param(
            lambda world: _spec(world, extensions=["-- none --"]),
            ("False", "InvalidSpec"),
            id="invalid spec",
        ),
        pytest.param(_instance_unready, ("False", "InstanceNotReady"), id="Instance not ready"),
        pytest.param(_openbao_down, READY, id="OpenBao down"),
        pytest.param(
            lambda world: _openbao_down(world, old=True),
            ("False", "DependencyUnavailable"),
            id="OpenBao down and the Secret wrong",
        ),
        pytest.param(_postgres_down, ("False", "InstanceNotReady"), id="PostgreSQL down"),
        pytest.param(
            lambda world: _spec(world, database="other", extensions=[]),
            ("False", "ImmutableField"),
            id="immutable field",
        ),
        pytest.param(_foreign_credential, CONFLICT, id="conflict"),
        pytest.param(_api_failing, ("False", "DependencyUnavailable"), id="API server failing"),
    ],
)
def test_the_child_stays_as_it_is_in_trouble(
    resting: Scene, trouble: Trouble, verdict: tuple[str, str]
) -> None:
    world = resting
    world.settle()
    assert world.verdict() == READY
    (listed,), child = world.sync().children, world.child()
    with trouble(world):
        held = [world.sync().children for _ in range(2)]
        assert json.dumps(held) == json.dumps([[listed], [listed]])
        assert world.verdict() == verdict
    assert world.child() == child
    world.settle()
    assert world.verdict() == READY

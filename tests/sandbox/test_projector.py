"""The double of External Secrets does what the real one does, with a real OpenBao."""

from __future__ import annotations

import base64
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET, MemoryCluster
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer, reader_policy
from hooks.sandbox.projector import FINALIZER, KvStore, Projector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Change

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATH = "tenants/acme"
MANAGED = "reconcile.external-secrets.io/managed"
CREATED_BY = "reconcile.external-secrets.io/created-by"
DATA_HASH = "reconcile.external-secrets.io/data-hash"


@pytest.fixture(scope="module")
def openbao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBaoServer]:
    directory = tmp_path_factory.mktemp("projector")
    with OpenBaoServer.start(directory / "openbao", Authority(directory / "ca")) as server:
        yield server


@pytest.fixture(scope="module")
def token_file(openbao: OpenBaoServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("token") / "token"
    path.touch(mode=0o600)
    path.write_text(openbao.token(reader_policy(MOUNT, "tenants")) + "\n")
    return path


class World:
    """A cluster, an OpenBao and the projector between them, at a time that only we move."""

    def __init__(self, openbao: OpenBaoServer, token_file: Path) -> None:
        self.now = START
        self.cluster = MemoryCluster([], lambda: self.now, namespaces=("team",))
        self.openbao = openbao
        store = KvStore(openbao.address, MOUNT, token_file, openbao.ca_file)
        self.projector = Projector(self.cluster, store, lambda: self.now)

    def store(self, **values: str) -> None:
        kv = self.openbao.client(self.openbao.root_token).secrets.kv.v2
        kv.create_or_update_secret(PATH, values, mount_point=MOUNT)

    def create(self, *, name: str = "acme", **spec: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
        return self.cluster.create(external_secret(name, **spec))

    def change(self, obj: Manifest) -> None:
        self.cluster.replace(obj)

    def external_secret(self, name: str = "acme") -> Manifest:
        found = self.cluster.get(EXTERNAL_SECRET, "team", name)
        assert found is not None
        return found

    def secret(self, name: str = "acme-database") -> Manifest:
        found = self.cluster.get(SECRET, "team", name)
        assert found is not None
        return found

    def texts(self, name: str = "acme-database") -> dict[str, str]:
        data = self.secret(name).get("data") or {}
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def ready(self, name: str = "acme") -> list[str]:
        condition = self.external_secret(name)["status"]["conditions"][0]
        return [condition[key] for key in ("type", "status", "reason", "message")]


@pytest.fixture
def world(openbao: OpenBaoServer, token_file: Path) -> World:
    made = World(openbao, token_file)
    made.store(username="acme", password="one")
    return made


def external_secret(name: str = "acme", **spec: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    template = {
        "engineVersion": "v2",
        "mergePolicy": "Replace",
        "type": "Opaque",
        "metadata": {"labels": {"app": "acme"}},
        "data": {"uri": "postgresql://{{ .username }}:{{.password}}@host/db", "host": "host"},
    }
    target = {"name": "acme-database", "creationPolicy": "Owner", "deletionPolicy": "Retain"}
    return {
        "apiVersion": "external-secrets.io/v1",
        "kind": "ExternalSecret",
        "metadata": {"name": name, "namespace": "team", "annotations": {"force-sync": "v1"}},
        "spec": {
            "refreshInterval": "5m",
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": "openbao"},
            "target": target | {"template": template},
            "data": [remote("username"), remote("password")],
        }
        | spec,
    }


def remote(key: str, path: str = PATH) -> Manifest:
    return {"secretKey": key, "remoteRef": {"key": path, "property": key}}


def plain_secret(**fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    meta = {"name": "acme-database", "namespace": "team"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "data": {"old": "b2xk"},
    } | fields


def test_a_secret_is_made_from_the_template_and_owned(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    es, secret = world.external_secret(), world.secret()
    assert world.texts() == {"uri": "postgresql://acme:one@host/db", "host": "host"}
    assert secret["type"] == "Opaque"
    assert secret["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "external-secrets.io/v1",
            "kind": "ExternalSecret",
            "name": "acme",
            "uid": es["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert secret["metadata"]["labels"].keys() == {"app", CREATED_BY, MANAGED}
    assert secret["metadata"]["annotations"].keys() == {DATA_HASH}
    assert es["metadata"]["finalizers"] == [FINALIZER]


def test_status_says_what_was_synced_and_when(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    status = world.external_secret()["status"]
    version = status.pop("syncedResourceVersion")
    assert version.startswith("1-")
    assert status == {
        "binding": {"name": "acme-database"},
        "refreshTime": "2026-01-02T03:04:05Z",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "SecretSynced",
                "message": "secret synced",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }
        ],
    }


def test_without_a_template_values_labels_and_annotations_are_copied(world: World) -> None:
    world.create(target={"name": "acme-database"})
    world.projector.reconcile_all()
    assert world.texts() == {"username": "acme", "password": "one"}
    assert world.secret()["metadata"]["annotations"].keys() == {"force-sync", DATA_HASH}


@pytest.mark.parametrize(
    ("policy", "keys"),
    [("Replace", {"uri", "host"}), ("Merge", {"uri", "host", "username", "password"})],
)
def test_the_merge_policy_says_whether_values_are_there_too(
    world: World, policy: str, keys: set[str]
) -> None:
    es = external_secret()
    es["spec"]["target"]["template"]["mergePolicy"] = policy
    world.cluster.create(es)
    world.projector.reconcile_all()
    assert world.texts().keys() == keys


@pytest.mark.parametrize(
    "data",
    [
        pytest.param([remote("username", "tenants/nobody")], id="no-path"),
        pytest.param([remote("nothing")], id="no-property"),
        pytest.param([remote("username", "others/acme")], id="denied"),
    ],
)
def test_what_cannot_be_read_is_an_error_and_makes_no_secret(
    world: World, data: list[Manifest]
) -> None:
    world.create(data=data)
    world.projector.reconcile_all()
    assert world.ready() == [
        "Ready",
        "False",
        "SecretSyncedError",
        "could not get secret data from provider",
    ]
    assert world.cluster.list(SECRET) == []
    assert "syncedResourceVersion" not in world.external_secret()["status"]


def test_a_sealed_store_is_an_error_that_keeps_secret_and_last_sync(
    world: World, openbao: OpenBaoServer
) -> None:
    world.create()
    world.projector.reconcile_all()
    secret, synced = world.secret(), world.external_secret()["status"]["syncedResourceVersion"]
    world.now += timedelta(minutes=5)
    openbao.seal()
    try:
        world.projector.reconcile_all()
        assert world.ready()[1:3] == ["False", "SecretSyncedError"]
        status = world.external_secret()["status"]
        assert (world.secret(), status["syncedResourceVersion"]) == (secret, synced)
        assert status["refreshTime"] == "2026-01-02T03:04:05Z"
        assert status["conditions"][0]["lastTransitionTime"] == "2026-01-02T03:09:05Z"
    finally:
        openbao.unseal()
    world.projector.reconcile_all()
    assert world.ready()[1:3] == ["True", "SecretSynced"]


@pytest.mark.parametrize("text", ["{{ .nothing }}", "{{ .username | b64enc }}", "{{ range . }}"])
def test_a_template_that_makes_no_sense_is_an_error(world: World, text: str) -> None:
    es = external_secret()
    es["spec"]["target"]["template"]["data"] = {"key": text}
    world.cluster.create(es)
    world.projector.reconcile_all()
    assert world.ready()[2:] == ["SecretSyncedError", "could not update secret"]


def test_a_new_value_is_seen_when_the_refresh_is_due_and_not_before(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    world.store(username="acme", password="two")
    world.now += timedelta(minutes=4)
    world.projector.reconcile_all()
    assert world.texts()["uri"] == "postgresql://acme:one@host/db"
    world.now += timedelta(minutes=1)
    world.projector.reconcile_all()
    assert world.texts()["uri"] == "postgresql://acme:two@host/db"


def test_a_changed_annotation_forces_a_refresh(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    world.store(username="acme", password="two")
    es = world.external_secret()
    es["metadata"]["annotations"]["force-sync"] = "v2"
    before = es["status"]["syncedResourceVersion"]
    world.change(es)
    world.projector.reconcile_all()
    assert world.texts()["uri"] == "postgresql://acme:two@host/db"
    assert world.external_secret()["status"]["syncedResourceVersion"] != before


def test_a_changed_annotation_forces_nothing_when_the_interval_is_zero(world: World) -> None:
    world.create(refreshInterval="0")
    world.projector.reconcile_all()
    world.store(username="acme", password="two")
    es = world.external_secret()
    es["metadata"]["annotations"]["force-sync"] = "v2"
    world.change(es)
    world.projector.reconcile_all()
    assert world.texts()["uri"] == "postgresql://acme:one@host/db"


def test_nothing_is_written_when_nothing_changed(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    before = (world.external_secret(), world.secret())
    world.projector.reconcile_all()
    assert (world.external_secret(), world.secret()) == before


@pytest.mark.parametrize("deed", ["edited", "deleted"])
def test_a_secret_that_was_touched_by_hand_is_restored(world: World, deed: str) -> None:
    world.create()
    world.projector.reconcile_all()
    secret = world.secret()
    if deed == "edited":
        world.change(secret | {"data": {**secret["data"], "host": "aGFuZA==", "new": "aGFuZA=="}})
    else:
        world.cluster.delete(SECRET, "team", "acme-database")
    world.projector.reconcile_all()
    assert world.secret()["data"] == secret["data"]


def test_a_secret_without_an_owner_is_emptied_and_adopted(world: World) -> None:
    world.cluster.create(plain_secret())
    world.create()
    world.projector.reconcile_all()
    assert world.texts().keys() == {"uri", "host"}
    uid = world.external_secret()["metadata"]["uid"]
    assert [ref["uid"] for ref in world.secret()["metadata"]["ownerReferences"]] == [uid]


def test_a_secret_of_another_external_secret_is_left_to_it(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    secret = world.secret()
    world.create(name="intruder")
    world.projector.reconcile_all()
    assert world.ready("intruder") == [
        "Ready",
        "False",
        "SecretSyncedError",
        "target is owned by another ExternalSecret",
    ]
    assert (world.secret(), world.ready()[1]) == (secret, "True")


def test_a_secret_of_another_controller_is_left_to_it(world: World) -> None:
    parent = world.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team"}}
    )
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "controller": True}
    owned = plain_secret()
    owned["metadata"]["ownerReferences"] = [reference | {"uid": parent["metadata"]["uid"]}]
    before = world.cluster.create(owned)
    world.create()
    world.projector.reconcile_all()
    assert world.ready()[2:] == ["SecretSyncedError", "failed to take ownership of target secret"]
    assert world.secret() == before


def test_an_immutable_secret_does_not_rotate(world: World) -> None:
    world.create(target=external_secret()["spec"]["target"] | {"immutable": True})
    world.projector.reconcile_all()
    before = world.secret()
    world.store(username="acme", password="two")
    world.now += timedelta(minutes=5)
    world.projector.reconcile_all()
    assert world.ready()[2:] == [
        "SecretSyncedError",
        "could not update secret, target is immutable",
    ]
    assert world.secret() == before


def test_a_renamed_target_takes_the_former_secret_away(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    es = world.external_secret()
    es["spec"]["target"]["name"] = "renamed"
    world.change(es)
    world.projector.reconcile_all()
    assert [secret["metadata"]["name"] for secret in world.cluster.list(SECRET)] == ["renamed"]
    assert world.external_secret()["status"]["binding"] == {"name": "renamed"}


def test_a_deleted_external_secret_takes_its_secret_along(world: World) -> None:
    world.create()
    world.projector.reconcile_all()
    world.cluster.delete(EXTERNAL_SECRET, "team", "acme")
    assert world.external_secret()["metadata"]["finalizers"] == [FINALIZER]
    world.projector.reconcile_all()
    assert (world.cluster.list(EXTERNAL_SECRET), world.cluster.list(SECRET)) == ([], [])


def test_no_value_is_in_status_or_events(world: World) -> None:
    world.store(username="acme", password="hunter-2")
    world.create()
    world.create(name="wrong", data=[remote("password"), remote("nothing")])
    world.projector.reconcile_all()
    shown = [world.external_secret(), world.external_secret("wrong"), *world.cluster.events]
    assert "hunter-2" not in str(shown)


def test_in_a_thread_events_are_enough(world: World) -> None:
    seen = threading.Semaphore(0)

    def note(change: Change, obj: Manifest, /) -> None:
        if (change, obj["kind"]) == ("ADDED", "Secret"):
            seen.release()

    world.cluster.subscribe(note)
    world.projector.start()
    try:
        world.create()
        assert seen.acquire(timeout=10)
        world.cluster.delete(SECRET, "team", "acme-database")
        assert seen.acquire(timeout=10)
    finally:
        world.projector.stop()
    assert world.texts().keys() == {"uri", "host"}

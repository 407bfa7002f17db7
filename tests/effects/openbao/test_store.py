"""The credential store on a real KV v2 mount, with the rights of the documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hvac.exceptions import InvalidPath

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Taken
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports.openbao import Credential, CredentialStore
from hooks.effects.ports.server import Login
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from tests.effects.openbao.conftest import KV1_MOUNT, MISSING_MOUNT

OWNER = {"tenant-uid": "4f1c", "instance": "main"}
FIRST = Login("orders", "first-password")
SECOND = Login("orders", "second-password")
TAKEN = Taken("OpenBao", "the credential was written by somebody else in the meantime")


def misconfigured(mount: str) -> Misconfigured:
    return Misconfigured(
        "OpenBao",
        f"there is no KV v2 mount {mount} that the hooks may use: "
        "check the mount and the policy of the hooks",
    )


def store_at(server: OpenBaoServer, mount: str, token_file: Path) -> CredentialStore:
    return OpenBao(
        address=server.address, mount=mount, auth=TokenFile(token_file), ca_file=server.ca_file
    ).bind(Deadline())


def outcome(store: CredentialStore, call: str, path: str) -> EffectError | None:
    """Call a method of the store and return its error."""
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: store.read(path),
        "reserve": lambda: store.reserve(path, OWNER),
        "store": lambda: store.store(path, FIRST, after=0),
        "destroy": lambda: store.destroy(path),
    }
    try:
        calls[call]()
    except EffectError as error:
        return error
    return None


def test_what_was_never_written_is_absent(store: CredentialStore, path: str) -> None:
    assert store.read(path) is None


def test_a_reserved_path_has_an_owner_and_no_version(store: CredentialStore, path: str) -> None:
    store.reserve(path, OWNER)
    assert store.read(path) == Credential(0, OWNER, login=None)


def test_a_stored_login_is_read_back(store: CredentialStore, path: str) -> None:
    store.reserve(path, OWNER)
    store.store(path, FIRST, after=0)
    assert store.read(path) == Credential(1, OWNER, FIRST)


def test_any_printable_password_survives(store: CredentialStore, path: str) -> None:
    login = Login("orders", "p@ss:/?#[]'\"\\ %ß")
    store.store(path, login, after=0)
    assert store.read(path) == Credential(1, {}, login)


def test_only_the_first_reserves(store: CredentialStore, path: str) -> None:
    store.reserve(path, OWNER)
    assert outcome(store, "reserve", path) == TAKEN
    assert store.read(path) == Credential(0, OWNER, login=None)


def test_a_path_that_somebody_wrote_without_metadata_is_not_reserved(
    store: CredentialStore, path: str
) -> None:
    store.store(path, FIRST, after=0)
    assert outcome(store, "reserve", path) == TAKEN
    assert store.read(path) == Credential(1, {}, FIRST)


def test_cas_0_only_creates(store: CredentialStore, path: str) -> None:
    store.store(path, FIRST, after=0)
    with pytest.raises(Taken) as raised:
        store.store(path, SECOND, after=0)
    assert raised.value == TAKEN
    assert store.read(path) == Credential(1, {}, FIRST)


def test_of_two_writers_after_the_same_version_the_second_is_too_late(
    store: CredentialStore, path: str
) -> None:
    store.store(path, FIRST, after=0)
    store.store(path, SECOND, after=1)
    with pytest.raises(Taken) as raised:
        store.store(path, FIRST, after=1)
    assert raised.value == TAKEN
    assert store.read(path) == Credential(2, {}, SECOND)


def test_a_soft_deleted_version_is_lost(
    store: CredentialStore, server: OpenBaoServer, path: str
) -> None:
    store.reserve(path, OWNER)
    store.store(path, FIRST, after=0)
    kv2 = server.client(server.root_token).secrets.kv.v2
    kv2.delete_latest_version_of_secret(path, mount_point=MOUNT)
    assert store.read(path) == Credential(1, OWNER, login=None, lost=True)


def test_a_destroyed_version_is_lost_and_can_be_followed(
    store: CredentialStore, server: OpenBaoServer, path: str
) -> None:
    store.reserve(path, OWNER)
    store.store(path, FIRST, after=0)
    kv2 = server.client(server.root_token).secrets.kv.v2
    kv2.destroy_secret_versions(path, versions=[1], mount_point=MOUNT)
    assert store.read(path) == Credential(1, OWNER, login=None, lost=True)
    store.store(path, SECOND, after=1)
    assert store.read(path) == Credential(2, OWNER, SECOND)


def test_destroying_leaves_nothing_and_may_be_repeated(store: CredentialStore, path: str) -> None:
    store.reserve(path, OWNER)
    store.store(path, FIRST, after=0)
    store.destroy(path)
    store.destroy(path)
    assert store.read(path) is None


def test_what_somebody_else_wrote_is_reported_as_it_is(
    store: CredentialStore, server: OpenBaoServer, path: str
) -> None:
    kv2 = server.client(server.root_token).secrets.kv.v2
    kv2.create_or_update_secret(path, {"key": "value"}, mount_point=MOUNT)
    kv2.update_metadata(path, custom_metadata={"team": "billing"}, mount_point=MOUNT)
    assert store.read(path) == Credential(1, {"team": "billing"}, login=None)


@pytest.mark.parametrize("call", ["read", "reserve", "store", "destroy"])
@pytest.mark.parametrize("mount", [KV1_MOUNT, MISSING_MOUNT])
def test_a_mount_that_is_not_kv_v2_is_named(
    server: OpenBaoServer, token_file: Path, path: str, mount: str, call: str
) -> None:
    assert outcome(store_at(server, mount, token_file), call, path) == misconfigured(mount)


@pytest.mark.parametrize("call", ["reserve", "store"])
def test_nothing_is_written_to_a_kv_v1_mount(
    server: OpenBaoServer, token_file: Path, path: str, call: str
) -> None:
    outcome(store_at(server, KV1_MOUNT, token_file), call, path)
    root = server.client(server.root_token)
    with pytest.raises(InvalidPath):
        root.secrets.kv.v1.list_secrets("", mount_point=KV1_MOUNT)


def test_an_openbao_namespace_is_a_world_of_its_own(
    server: OpenBaoServer, store: CredentialStore, tmp_path: Path, path: str
) -> None:
    root = server.client(server.root_token)
    root.adapter.post("/v1/sys/namespaces/team")
    root.adapter.namespace = "team"
    root.sys.enable_secrets_engine("kv", path=MOUNT, options={"version": "2"})
    rules = f'path "{MOUNT}/*" {{ capabilities = ["create", "read"] }}'
    root.sys.create_or_update_policy("all", rules)
    answer = root.auth.token.create(policies=["all"], no_parent=True)
    (tmp_path / "team-token").write_text(answer["auth"]["client_token"])
    team = OpenBao(
        address=server.address,
        mount=MOUNT,
        auth=TokenFile(tmp_path / "team-token"),
        ca_file=server.ca_file,
        namespace="team",
    ).bind(Deadline())
    team.store(path, FIRST, after=0)
    assert (team.read(path), store.read(path)) == (Credential(1, {}, FIRST), None)

"""Which servers the credential store talks to, and which it does not trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports.openbao import CredentialStore
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from hooks.sandbox.processes import free_port
from tests.effects.openbao.conftest import Front

SYSTEM = "OpenBao"
NO_TLS = Refused(
    SYSTEM, "no trusted TLS connection: check its address, its certificate's names and the CA file"
)


def failure(store: CredentialStore, path: str) -> EffectError:
    with pytest.raises(EffectError) as raised:
        store.read(path)
    return raised.value


def test_nobody_listens(token_file: Path, path: str) -> None:
    nobody = OpenBao(
        address=f"https://127.0.0.1:{free_port()}", mount=MOUNT, auth=TokenFile(token_file)
    )
    assert failure(nobody.bind(Deadline()), path) == Unavailable(SYSTEM, "no connection")


def test_a_certificate_of_a_stranger_is_refused(
    server: OpenBaoServer, token_file: Path, tmp_path: Path, path: str
) -> None:
    stranger = Authority(tmp_path / "stranger")
    openbao = OpenBao(
        address=server.address, mount=MOUNT, auth=TokenFile(token_file), ca_file=stranger.ca_file
    )
    assert failure(openbao.bind(Deadline()), path) == NO_TLS


def test_a_certificate_for_another_name_is_refused(
    server: OpenBaoServer, authority: Authority, token_file: Path, path: str
) -> None:
    front = Front(server, authority.issue("elsewhere", dns=["elsewhere.test"]))
    openbao = OpenBao(
        address=front.address, mount=MOUNT, auth=TokenFile(token_file), ca_file=authority.ca_file
    )
    error = failure(openbao.bind(Deadline()), path)
    front.close()
    assert (error, front.seen) == (NO_TLS, [])


def test_a_server_without_tls_is_refused(front: Front, token_file: Path, path: str) -> None:
    address = front.address.replace("http:", "https:")
    openbao = OpenBao(address=address, mount=MOUNT, auth=TokenFile(token_file))
    assert failure(openbao.bind(Deadline()), path) == NO_TLS


def test_a_missing_ca_file_is_named(server: OpenBaoServer, token_file: Path, path: str) -> None:
    openbao = OpenBao(
        address=server.address, mount=MOUNT, auth=TokenFile(token_file), ca_file=Path("/nowhere")
    )
    error = failure(openbao.bind(Deadline()), path)
    assert error == Misconfigured(SYSTEM, "the CA file cannot be read")


def test_an_address_that_is_none_is_named(token_file: Path, path: str) -> None:
    openbao = OpenBao(address="openbao:8200", mount=MOUNT, auth=TokenFile(token_file))
    assert failure(openbao.bind(Deadline()), path) == Misconfigured(
        SYSTEM, "its address is not a URL"
    )


def test_the_environment_sets_no_proxy_and_no_token(
    store: CredentialStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("VAULT_TOKEN", "a-token-of-the-environment")
    assert store.read(path) is None

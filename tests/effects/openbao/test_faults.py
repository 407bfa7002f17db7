"""What the credential store makes of servers that fail, and that it tells nobody a secret."""

from __future__ import annotations

import time
import traceback
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, OutOfTime, Taken, Unavailable
from hooks.effects.openbao import AppRole, OpenBao, TokenFile
from hooks.effects.ports.openbao import Credential, CredentialStore
from hooks.effects.ports.server import Login
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from tests.effects.openbao.conftest import Fault, Front

LOGIN = Login("orders", "a-password-in-no-text")
SYSTEM = "OpenBao"
NO_CONNECTION = Unavailable(SYSTEM, "no connection")
NOT_ITS = "the answer is not OpenBao's: check its address"


def failure(store: CredentialStore, path: str) -> EffectError:
    with pytest.raises(EffectError) as raised:
        store.read(path)
    return raised.value


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(
            Fault(500, body='{"errors":["1 error occurred"]}'),
            Unavailable(SYSTEM, "it cannot answer now", code="500"),
            id="storage-error",
        ),
        pytest.param(
            Fault(502, body="<html>"),
            Unavailable(SYSTEM, "it cannot answer now", code="502"),
            id="bad-gateway",
        ),
        pytest.param(
            Fault(503, body='{"errors":["Vault is sealed"]}'),
            Unavailable(SYSTEM, "it is sealed: unseal it", code="503"),
            id="sealed",
        ),
        pytest.param(
            Fault(501), Unavailable(SYSTEM, "it is not initialised", code="501"), id="new"
        ),
        pytest.param(Fault(429), Unavailable(SYSTEM, "too many requests", code="429"), id="quota"),
        pytest.param(
            Fault(412), Unavailable(SYSTEM, "it is not up to date yet", code="412"), id="stale"
        ),
        pytest.param(
            Fault(405),
            Misconfigured(
                SYSTEM, "it does not understand the request: check its address", code="405"
            ),
            id="another-server",
        ),
        pytest.param(
            Fault(404, body="404 page not found"),
            Misconfigured(SYSTEM, NOT_ITS, code="404"),
            id="404-of-another-server",
        ),
        pytest.param(
            Fault(200, body="<html>please log in</html>"),
            Misconfigured(SYSTEM, NOT_ITS, code="200"),
            id="200-of-another-server",
        ),
        pytest.param(Fault(), NO_CONNECTION, id="connection-closed"),
    ],
)
def test_a_fault_is_told_in_our_words(
    fronted: CredentialStore, front: Front, path: str, fault: Fault, expected: EffectError
) -> None:
    front.faults.append(fault)
    assert failure(fronted, path) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [("7", 7.0), ("0", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("²", None)],
)
def test_a_server_may_say_how_long_to_wait(
    fronted: CredentialStore, front: Front, path: str, header: str, expected: float | None
) -> None:
    front.faults.append(Fault(429, headers={"Retry-After": header}))
    assert failure(fronted, path).retry_after == expected


def test_a_standby_is_not_followed(
    fronted: CredentialStore, front: Front, server: OpenBaoServer, path: str
) -> None:
    elsewhere = Front(server)
    front.faults.append(Fault(307, headers={"Location": f"{elsewhere.address}/v1/any"}))
    assert failure(fronted, path) == Unavailable(
        SYSTEM, "a standby answered: let the address lead to the active server", code="307"
    )
    elsewhere.close()
    assert elsewhere.seen == []


def test_a_write_whose_reply_is_lost_is_found_by_the_next_read(
    fronted: CredentialStore, front: Front, path: str
) -> None:
    front.faults.append(Fault(method="POST", done=True))
    with pytest.raises(Unavailable) as raised:
        fronted.store(path, LOGIN, after=0)
    front.faults.clear()
    assert raised.value == NO_CONNECTION
    assert fronted.read(path) == Credential(1, {}, LOGIN)


NOTHING = '{"errors":[]}'


def test_of_two_who_saw_nothing_one_reserves(
    fronted: CredentialStore, store: CredentialStore, front: Front, path: str
) -> None:
    store.reserve(path, {"tenant-uid": "first"})
    front.faults.append(Fault(404, body=NOTHING, method="GET", path="/metadata/"))
    with pytest.raises(Taken):
        fronted.reserve(path, {"tenant-uid": "second"})
    assert store.read(path) == Credential(0, {"tenant-uid": "first"}, login=None)


def test_a_server_that_overwrites_metadata_is_not_asked_to(
    fronted: CredentialStore, store: CredentialStore, front: Front, path: str
) -> None:
    store.reserve(path, {"tenant-uid": "first"})
    front.faults.append(Fault(204, method="POST", path="/metadata/"))
    with pytest.raises(Taken):
        fronted.reserve(path, {"tenant-uid": "second"})


def test_a_version_that_appears_between_two_looks_is_not_absent(
    fronted: CredentialStore, front: Front, path: str
) -> None:
    fronted.store(path, LOGIN, after=0)
    front.faults.append(Fault(404, body=NOTHING, path="/data/"))
    assert failure(fronted, path) == Unavailable(SYSTEM, "the credential changed while it was read")


def test_a_kv_v1_answer_to_a_write_is_not_success(
    fronted: CredentialStore, front: Front, path: str
) -> None:
    front.faults.append(Fault(204, method="POST"))
    with pytest.raises(Misconfigured):
        fronted.store(path, LOGIN, after=0)


def test_a_server_that_never_answers_costs_the_time_that_is_left(
    front: Front, token_file: Path, path: str
) -> None:
    front.faults.append(Fault(silent=True))
    behind = OpenBao(address=front.address, mount=MOUNT, auth=TokenFile(token_file))
    began = time.monotonic()
    error = failure(behind.bind(Deadline(1.2)), path)
    assert error == Unavailable(SYSTEM, "no answer in time")
    assert 1.0 < time.monotonic() - began < 2.0


def test_nothing_is_asked_without_time(openbao: OpenBao, path: str) -> None:
    error = failure(openbao.bind(Deadline(0.5)), path)
    assert error == OutOfTime(SYSTEM, "not asked, the time of this call was spent")


def test_a_sealed_server_is_waited_for(
    server: OpenBaoServer, store: CredentialStore, path: str
) -> None:
    store.store(path, LOGIN, after=0)
    server.seal()
    try:
        assert failure(store, path) == Unavailable(SYSTEM, "it is sealed: unseal it", code="503")
    finally:
        server.unseal()
    assert store.read(path) == Credential(1, {}, LOGIN)


@pytest.mark.parametrize("status", [None, 200, 204, 307, 400, 401, 403, 404, 429, 500, 503])
def test_no_text_holds_a_secret(
    front: Front, token: str, token_file: Path, tmp_path: Path, path: str, status: int | None
) -> None:
    (tmp_path / "role-id").write_text("a-role-id")
    (tmp_path / "secret-id").write_text("a-secret-id")
    echo = f"{LOGIN.password} {token} a-secret-id"
    front.faults.append(Fault(status, body=echo))
    auths = (TokenFile(token_file), AppRole(tmp_path / "role-id", tmp_path / "secret-id"))
    texts = [repr(LOGIN), repr(Credential(1, {}, LOGIN)), *map(repr, auths)]
    for auth in auths:
        openbao = OpenBao(address=front.address, mount=MOUNT, auth=auth)
        with pytest.raises(EffectError) as raised:
            openbao.bind(Deadline()).store(path, LOGIN, after=0)
        texts += [repr(openbao), repr(raised.value), str(raised.value)]
        texts += traceback.format_exception(raised.value)
    told = "\n".join(texts)
    assert [secret for secret in echo.split() if secret in told] == []


def test_a_token_file_with_something_else_is_not_sent_and_not_shown(
    server: OpenBaoServer, tmp_path: Path, path: str
) -> None:
    (tmp_path / "token").write_text("two\nlines")
    openbao = OpenBao(
        address=server.address,
        mount=MOUNT,
        auth=TokenFile(tmp_path / "token"),
        ca_file=server.ca_file,
    )
    assert failure(openbao.bind(Deadline()), path) == Misconfigured(
        SYSTEM, "the token file is missing, empty or holds something else"
    )

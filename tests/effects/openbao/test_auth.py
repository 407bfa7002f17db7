"""Logging in to a real OpenBao, and what happens when a token is not good any more."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, EffectError, Misconfigured, Refused
from hooks.effects.openbao import AppRole, Auth, KubernetesAuth, OpenBao, TokenFile
from hooks.effects.ports.openbao import Credential
from hooks.effects.ports.server import Login
from hooks.sandbox.openbao_server import MOUNT, OpenBaoServer
from tests.effects.openbao.conftest import RULES

SYSTEM = "OpenBao"
DENIED = Denied(SYSTEM, f"permission denied on {MOUNT}: check the policy of the hooks", code="403")
NOBODY = "the login was refused: check the hooks' auth mount, role and credentials"
HOUR = 3600


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def openbao_with(server: OpenBaoServer, auth: Auth, clock: Clock | None = None) -> OpenBao:
    return OpenBao(
        address=server.address,
        mount=MOUNT,
        auth=auth,
        ca_file=server.ca_file,
        clock=clock or Clock(),
    )


def reading(openbao: OpenBao, path: str) -> Credential | EffectError | None:
    try:
        return openbao.bind(Deadline()).read(path)
    except EffectError as error:
        return error


@pytest.fixture
def approle(server: OpenBaoServer, tmp_path: Path) -> AppRole:
    server.write_policy("hooks", RULES)
    login = server.approle("hooks", policies=["hooks"], ttl="1h")
    (tmp_path / "role-id").write_text(login.role_id)
    (tmp_path / "secret-id").write_text(f"{login.secret_id}\n")
    return AppRole(tmp_path / "role-id", tmp_path / "secret-id")


def revoke(server: OpenBaoServer, prefix: str) -> None:
    server.client(server.root_token).adapter.post(
        f"/v1/sys/leases/revoke-prefix/auth/{prefix}/login"
    )


def test_an_approle_logs_in(server: OpenBaoServer, approle: AppRole, path: str) -> None:
    openbao = openbao_with(server, approle)
    openbao.bind(Deadline()).store(path, Login("orders", "secret"), after=0)
    assert reading(openbao, path) == Credential(1, {}, Login("orders", "secret"))


def test_a_revoked_token_is_replaced(server: OpenBaoServer, approle: AppRole, path: str) -> None:
    openbao = openbao_with(server, approle)
    before = reading(openbao, path)
    revoke(server, "approle")
    assert (before, reading(openbao, path)) == (None, None)


def test_many_threads_replace_a_revoked_token(
    server: OpenBaoServer, approle: AppRole, path: str
) -> None:
    openbao = openbao_with(server, approle)
    reading(openbao, path)
    revoke(server, "approle")
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(reading(openbao, path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [None] * 8


def test_a_token_is_kept_for_two_thirds_of_its_life(
    server: OpenBaoServer, approle: AppRole, path: str
) -> None:
    clock = Clock()
    openbao = openbao_with(server, approle, clock)
    reading(openbao, path)
    approle.secret_id_file.write_text("not-the-secret-id")
    clock.now = 0.66 * HOUR
    before = reading(openbao, path)
    clock.now = 0.67 * HOUR
    assert (before, reading(openbao, path)) == (None, Refused(SYSTEM, NOBODY, code="400"))


def test_files_are_read_again_at_each_login(
    server: OpenBaoServer, approle: AppRole, path: str
) -> None:
    openbao = openbao_with(server, approle)
    good = approle.secret_id_file.read_text()
    approle.secret_id_file.write_text("not-the-secret-id")
    before = reading(openbao, path)
    approle.secret_id_file.write_text(good)
    assert (before, reading(openbao, path)) == (Refused(SYSTEM, NOBODY, code="400"), None)


def test_a_fresh_login_without_rights_is_denied(
    server: OpenBaoServer, tmp_path: Path, path: str
) -> None:
    login = server.approle("nothing", policies=["default"])
    (tmp_path / "role-id").write_text(login.role_id)
    (tmp_path / "secret-id").write_text(login.secret_id)
    auth = AppRole(tmp_path / "role-id", tmp_path / "secret-id")
    assert reading(openbao_with(server, auth), path) == DENIED


def test_a_login_at_a_mount_that_is_not_there_is_refused(
    server: OpenBaoServer, approle: AppRole, path: str
) -> None:
    auth = AppRole(approle.role_id_file, approle.secret_id_file, mount="elsewhere")
    assert reading(openbao_with(server, auth), path) == Refused(SYSTEM, NOBODY, code="403")


def test_a_replaced_token_file_counts_from_the_next_call(
    server: OpenBaoServer, token_file: Path, path: str
) -> None:
    openbao = openbao_with(server, TokenFile(token_file))
    good = reading(openbao, path)
    token_file.write_text(server.token(f'path "{MOUNT}/other/*" {{ capabilities = ["read"] }}'))
    powerless = reading(openbao, path)
    token_file.write_text("s.not-a-token")
    unknown = reading(openbao, path)
    token_file.unlink()
    gone = reading(openbao, path)
    token_file.write_text(server.token(RULES))
    missing = Misconfigured(SYSTEM, "the token file is missing, empty or holds something else")
    assert (good, powerless, unknown, gone) == (None, DENIED, DENIED, missing)
    assert reading(openbao, path) is None


def jwt(name: str) -> str:
    """A ServiceAccount's token; nobody here checks its signature."""
    account = {"namespace": "hooks", "serviceaccount": {"name": name, "uid": f"uid-{name}"}}
    claims = {
        "iss": "kubernetes/serviceaccount",
        "sub": f"system:serviceaccount:hooks:{name}",
        "kubernetes.io": account,
    }
    parts = [json.dumps({"alg": "RS256", "typ": "JWT"}).encode(), json.dumps(claims).encode(), b"x"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


@pytest.fixture
def reviewer() -> Iterator[str]:
    """The API server's TokenReview, which believes everything; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            payload = review["spec"]["token"].split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            uid = claims["kubernetes.io"]["serviceaccount"]["uid"]
            user = {"username": claims["sub"], "uid": uid, "groups": ["system:serviceaccounts"]}
            content = json.dumps({**review, "status": {"authenticated": True, "user": user}})
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_address[1]}"
    http.shutdown()
    http.server_close()


@pytest.fixture
def cluster(server: OpenBaoServer, reviewer: str) -> Iterator[str]:
    """The Kubernetes auth method with a role for the ServiceAccount "hooks"."""
    root = server.client(server.root_token)
    root.sys.enable_auth_method("kubernetes", path="cluster")
    root.adapter.post(
        "/v1/auth/cluster/config",
        json={
            "kubernetes_host": reviewer,
            "token_reviewer_jwt": jwt("reviewer"),
            "kubernetes_ca_cert": server.ca_file.read_text(),
            "disable_local_ca_jwt": True,
        },
    )
    server.write_policy("hooks", RULES)
    root.auth.kubernetes.create_role(
        "hooks", ["hooks"], ["hooks"], ttl="1h", policies=["hooks"], mount_point="cluster"
    )
    yield "cluster"
    root.adapter.delete("/v1/sys/auth/cluster")


def test_a_service_account_logs_in_and_its_token_is_read_again(
    server: OpenBaoServer, cluster: str, tmp_path: Path, path: str
) -> None:
    file = tmp_path / "jwt"
    openbao = openbao_with(server, KubernetesAuth("hooks", cluster, file))
    file.write_text(jwt("somebody"))
    stranger = reading(openbao, path)
    file.write_text(jwt("hooks"))
    ours = reading(openbao, path)
    assert (stranger, ours) == (Refused(SYSTEM, NOBODY, code="403"), None)


def test_a_role_that_is_not_there_is_refused(
    server: OpenBaoServer, cluster: str, tmp_path: Path, path: str
) -> None:
    file = tmp_path / "jwt"
    file.write_text(jwt("hooks"))
    openbao = openbao_with(server, KubernetesAuth("nobody", cluster, file))
    assert reading(openbao, path) == Refused(SYSTEM, NOBODY, code="400")


def test_rights_end_at_the_base_path(server: OpenBaoServer, token_file: Path) -> None:
    assert reading(openbao_with(server, TokenFile(token_file)), "other/shop/orders") == DENIED

"""Which Routers are talked to, which are not trusted, and who learns the password."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError
from hooks.effects.druid import DruidClusters
from hooks.effects.ports.druid import (
    Cluster,
    DruidUnavailable,
    ProtocolError,
    Redirected,
    Router,
    Unauthorized,
    Untrusted,
)
from hooks.effects.ports.server import Login
from hooks.sandbox.certificates import Authority
from hooks.sandbox.druid import Conduct, DruidServer, Fault, User
from hooks.sandbox.processes import free_port

LOGIN = Login("operator", 'pä:ss "w"\n')
NO_TLS = Untrusted(
    "Druid",
    "no trusted TLS connection: check the Router's port, its certificate's names, the CA and "
    "whether it wants a client certificate",
)


def clusters(ca_file: Path | None = None) -> DruidClusters:
    return DruidClusters(ca_file=ca_file)


def cluster(router: Router, *, ca_file: Path | None = None) -> Cluster:
    return clusters(ca_file).bind(Deadline()).cluster(router, None)


def failure(asked: Cluster) -> EffectError:
    with pytest.raises(EffectError) as raised:
        asked.version()
    return raised.value


@pytest.fixture
def secure(authority: Authority) -> Iterator[DruidServer]:
    certificate = authority.issue("router", ips=["127.0.0.1"])
    with DruidServer(certificate=certificate) as server:
        yield server


def test_a_router_brings_its_own_ca(secure: DruidServer, authority: Authority) -> None:
    router = Router(secure.url, ca_pem=authority.ca_file.read_bytes())
    assert cluster(router).version() == "33.0.0"


def test_a_router_without_a_ca_is_trusted_by_the_deployments(
    secure: DruidServer, authority: Authority
) -> None:
    assert cluster(Router(secure.url), ca_file=authority.ca_file).version() == "33.0.0"


def test_the_deployments_ca_may_be_replaced(
    secure: DruidServer, authority: Authority, stranger: Authority, tmp_path: Path
) -> None:
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(stranger.ca_file.read_bytes())
    process = clusters(ca_file)
    asked = process.bind(Deadline()).cluster(Router(secure.url), None)
    assert failure(asked) == NO_TLS
    ca_file.write_bytes(authority.ca_file.read_bytes())
    assert asked.version() == "33.0.0"


def test_a_stranger_is_not_trusted(secure: DruidServer) -> None:
    assert failure(cluster(Router(secure.url))) == NO_TLS
    assert secure.seen == []


def test_a_routers_own_ca_is_the_only_one(
    secure: DruidServer,
    authority: Authority,
    stranger: Authority,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What requests would add by itself, and what the environment would.
    monkeypatch.setattr("requests.adapters.DEFAULT_CA_BUNDLE_PATH", str(authority.ca_file))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.ca_file))
    router = Router(secure.url, ca_pem=stranger.ca_file.read_bytes())
    assert failure(cluster(router, ca_file=authority.ca_file)) == NO_TLS


def test_a_certificate_for_another_name_is_not_trusted(authority: Authority) -> None:
    certificate = authority.issue("elsewhere", dns=["elsewhere.test"])
    with DruidServer(certificate=certificate) as server:
        router = Router(server.url, ca_pem=authority.ca_file.read_bytes())
        assert failure(cluster(router)) == NO_TLS


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_no_proof_is_wanted_only_where_it_was_asked_for(
    secure: DruidServer, stranger: Authority
) -> None:
    process = clusters(stranger.ca_file).bind(Deadline())
    router = Router(secure.url)
    assert process.cluster(replace(router, verify=False), None).version() == "33.0.0"
    assert failure(process.cluster(router, None)) == NO_TLS


@pytest.fixture
def mutual(authority: Authority) -> Iterator[DruidServer]:
    """A Router that asks for a certificate of its own authority."""
    certificate = authority.issue("mutual", ips=["127.0.0.1"])
    with DruidServer(certificate=certificate, client_ca=authority.ca_file) as server:
        yield server


def test_a_router_may_want_a_certificate_of_ours(mutual: DruidServer, authority: Authority) -> None:
    router = Router(mutual.url, ca_pem=authority.ca_file.read_bytes())
    files = authority.issue("hooks", dns=["hooks"])
    ours = (files.cert.read_bytes(), files.key.read_bytes())
    assert cluster(replace(router, client_pem=ours)).version() == "33.0.0"
    assert failure(cluster(router)) == NO_TLS


def test_our_certificate_may_not_be_trusted(
    mutual: DruidServer, authority: Authority, stranger: Authority
) -> None:
    files = stranger.issue("hooks", dns=["hooks"])
    theirs = (files.cert.read_bytes(), files.key.read_bytes())
    router = Router(mutual.url, ca_pem=authority.ca_file.read_bytes(), client_pem=theirs)
    assert failure(cluster(router)) == NO_TLS


def encrypted(key: bytes) -> bytes:
    parsed = serialization.load_pem_private_key(key, None)
    return parsed.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a-password"),
    )


@pytest.mark.parametrize("kind", ["encrypted", "another", "none"])
def test_a_key_that_cannot_be_used_is_named(
    mutual: DruidServer, authority: Authority, kind: str
) -> None:
    files = authority.issue("hooks", dns=["hooks"])
    other = authority.issue("other", dns=["other"])
    keys = {
        "encrypted": encrypted(files.key.read_bytes()),
        "another": other.key.read_bytes(),
        "none": b"no key",
    }
    router = Router(
        mutual.url,
        ca_pem=authority.ca_file.read_bytes(),
        client_pem=(files.cert.read_bytes(), keys[kind]),
    )
    unusable = Untrusted("Druid", "the client certificate or its key cannot be used")
    assert failure(cluster(router)) == unusable


@pytest.mark.parametrize("ca_pem", [b"", b"no certificate", "kein Zertifikät".encode()])
def test_a_ca_that_is_none_is_named(secure: DruidServer, ca_pem: bytes) -> None:
    none = Untrusted("Druid", "the CA holds no certificate in PEM form")
    assert failure(cluster(Router(secure.url, ca_pem=ca_pem))) == none


def test_a_missing_ca_file_is_named(secure: DruidServer) -> None:
    asked = cluster(Router(secure.url), ca_file=Path("/nowhere"))
    assert failure(asked) == Untrusted("Druid", "the CA file of the hooks cannot be read")


def test_a_router_without_tls_is_not_trusted(server: DruidServer) -> None:
    url = server.url.replace("http:", "https:")
    assert failure(cluster(Router(url))) == NO_TLS
    assert server.seen == []


def test_a_router_with_tls_is_not_spoken_to_without(secure: DruidServer) -> None:
    url = secure.url.replace("https:", "http:")
    assert isinstance(failure(cluster(Router(url))), DruidUnavailable | ProtocolError)


def test_nobody_listens() -> None:
    nobody = cluster(Router(f"http://127.0.0.1:{free_port()}"))
    assert failure(nobody) == DruidUnavailable("Druid", "no connection")


def test_a_name_that_is_none() -> None:
    nobody = cluster(Router("http://router.no-such-namespace.invalid:8888"))
    assert failure(nobody) == DruidUnavailable("Druid", "no connection")


@pytest.mark.parametrize("url", ["router:8888", "http://", "ftp://router", "http://[::1"])
def test_an_address_that_is_none_is_named(url: str) -> None:
    assert failure(cluster(Router(url))) == ProtocolError("Druid", "its address is not a URL")


def test_a_password_may_hold_anything() -> None:
    with DruidServer(Conduct(users={LOGIN.username: User(LOGIN.password)})) as server:
        asked = clusters().bind(Deadline()).cluster(Router(server.url), LOGIN)
        assert asked.version() == "33.0.0"


def test_one_login_is_not_anothers(server: DruidServer) -> None:
    server.conduct.users = {LOGIN.username: User(LOGIN.password)}
    process = clusters().bind(Deadline())
    router = Router(server.url)
    assert process.cluster(router, LOGIN).version() == "33.0.0"
    wanted = Unauthorized("Druid", "it wants a user name and a password", code="401")
    assert failure(process.cluster(router, None)) == wanted


def test_the_environment_gives_no_login_and_no_proxy(
    server: DruidServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.conduct.users = {LOGIN.username: User("a-password")}
    netrc = tmp_path / "netrc"
    netrc.write_text(f"default login {LOGIN.username} password a-password\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    wanted = Unauthorized("Druid", "it wants a user name and a password", code="401")
    assert failure(cluster(Router(server.url))) == wanted


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_nobody_else_gets_what_was_meant_for_the_router(server: DruidServer, status: int) -> None:
    with DruidServer() as elsewhere:
        server.faults.append(
            Fault(status=status, headers={"Location": f"{elsewhere.url}/druid/indexer/v1/task"})
        )
        asked = clusters().bind(Deadline()).cluster(Router(server.url), LOGIN)
        with pytest.raises(Redirected) as raised:
            asked.submit("task", b"{}")
        assert raised.value == Redirected(
            "Druid",
            "it redirects, as an Overlord does: let the Service lead to the Router",
            code=str(status),
        )
        assert elsewhere.seen == []


def test_threads_share_the_connections_and_not_the_logins(server: DruidServer) -> None:
    logins = [Login(f"user-{number}", f"password-{number}") for number in range(8)]
    server.conduct.users = {
        login.username: User(login.password, write=login.username) for login in logins
    }
    process = clusters()

    def write(login: Login) -> list[str | None]:
        asked = process.bind(Deadline()).cluster(Router(server.url), login)
        return [asked.set_rules(login.username, []).id for _ in range(20)]

    with ThreadPoolExecutor(len(logins)) as pool:
        written = list(pool.map(write, logins))
    assert written == [[login.username] * 20 for login in logins]

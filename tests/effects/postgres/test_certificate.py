"""What the certificate of a server says, and what is wrong with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError, Misconfigured, Refused, Unavailable
from hooks.effects.ports import CertificateNames
from hooks.effects.postgres import PostgresServers
from hooks.sandbox.certificates import Authority, CertificateFiles
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import free_port
from tests.effects.postgres.conftest import World, ended
from tests.effects.postgres.relay import Relay

Present = Callable[[CertificateFiles], None]


@pytest.fixture
def present(server: PostgresServer, authority: Authority) -> Iterator[Present]:
    """Show another certificate until the test ends."""
    yield server.present
    server.present(authority.issue("postgres", dns=["localhost"], ips=["127.0.0.1", "::1"]))


def log_in(world: World) -> EffectError | None:
    return ended(lambda: world.bind().log_in(world.endpoint, world.login))


def test_both_kinds_of_names_are_read_and_compared(world: World) -> None:
    assert world.bind().certificate(world.endpoint) == CertificateNames(
        dns=frozenset({"localhost"}),
        ips=frozenset({"127.0.0.1", "::1"}),
        covers_host=True,
        covers_hostaddr=True,
    )


def test_a_certificate_without_the_address_is_told_though_libpq_accepts_it(
    world: World, authority: Authority, present: Present
) -> None:
    present(authority.issue("dns-only", dns=["localhost"]))
    assert world.bind().certificate(world.endpoint) == CertificateNames(
        dns=frozenset({"localhost"}), ips=frozenset(), covers_host=True, covers_hostaddr=False
    )
    assert log_in(world) is None


def test_a_certificate_without_the_host_is_told_and_refused(
    world: World, authority: Authority, present: Present
) -> None:
    present(authority.issue("ip-only", ips=["127.0.0.1"]))
    assert world.bind().certificate(world.endpoint) == CertificateNames(
        dns=frozenset(), ips=frozenset({"127.0.0.1"}), covers_host=False, covers_hostaddr=True
    )
    assert log_in(world) == Refused("PostgreSQL", "the server's certificate is not for this host")


def test_the_common_name_is_no_name(world: World, authority: Authority, present: Present) -> None:
    present(authority.issue("cn-only", common_name="localhost"))
    assert world.bind().certificate(world.endpoint) == CertificateNames(
        dns=frozenset(), ips=frozenset(), covers_host=False, covers_hostaddr=False
    )


@pytest.mark.parametrize(
    ("pattern", "host", "covered"),
    [
        ("*.db.example.com", "one.db.example.com", True),
        ("*.DB.example.com", "ONE.db.Example.com", True),
        ("*.db.example.com", "db.example.com", False),
        ("*.db.example.com", "a.one.db.example.com", False),
    ],
)
def test_a_wildcard_stands_for_the_left_most_label_alone(
    world: World,
    authority: Authority,
    present: Present,
    pattern: str,
    host: str,
    *,
    covered: bool,
) -> None:
    present(authority.issue("wildcard", dns=[pattern]))
    endpoint = replace(world.endpoint, host=host)
    assert world.bind().certificate(endpoint).covers_host is covered


def test_an_expired_certificate_is_refused(
    world: World, authority: Authority, present: Present
) -> None:
    expired = Refused("PostgreSQL", "the server's certificate has expired: renew it")
    present(authority.issue("expired", dns=["localhost"], ips=["127.0.0.1"], expired=True))
    assert ended(lambda: world.bind().certificate(world.endpoint)) == expired
    assert log_in(world) == expired


def test_a_certificate_of_another_authority_is_refused(world: World, tmp_path: Path) -> None:
    stranger = PostgresServers(ca_file=Authority(tmp_path).ca_file).bind(Deadline())
    untrusted = Refused(
        "PostgreSQL",
        "the server's certificate is not signed by the configured CA: check POSTGRES_CA_FILE",
    )
    assert ended(lambda: stranger.certificate(world.endpoint)) == untrusted
    assert ended(lambda: stranger.log_in(world.endpoint, world.login)) == untrusted


def test_below_verify_ca_any_certificate_will_do(world: World, tmp_path: Path) -> None:
    stranger = PostgresServers(ca_file=Authority(tmp_path).ca_file).bind(Deadline())
    endpoint = replace(world.endpoint, ssl_mode="require")
    assert stranger.log_in(endpoint, world.login).role == world.login.username


def test_verify_ca_does_not_compare_names(world: World) -> None:
    endpoint = replace(world.endpoint, ssl_mode="verify-ca", host="other.example.com")
    assert world.bind().log_in(endpoint, world.login).role == world.login.username


def test_a_server_without_tls_is_refused_unless_it_was_asked_for(world: World) -> None:
    no_tls = Refused("PostgreSQL", "the server does not offer TLS: turn ssl on there")
    with Relay(world.server.port) as relay:
        relay.refuse_tls()
        endpoint = replace(world.endpoint, port=relay.port)
        assert ended(lambda: world.bind().certificate(endpoint)) == no_tls
        assert ended(lambda: world.bind().log_in(endpoint, world.login)) == no_tls
        endpoint = replace(endpoint, ssl_mode="require")
        assert ended(lambda: world.bind().log_in(endpoint, world.login)) == no_tls
        endpoint = replace(endpoint, ssl_mode="disable")
        assert world.bind().log_in(endpoint, world.login).role == world.login.username


def test_a_port_where_nobody_listens_is_unavailable(world: World) -> None:
    endpoint = replace(world.endpoint, port=free_port())
    nobody = Unavailable(
        "PostgreSQL",
        "nobody listens there, or the network does not lead there: check spec.endpoint",
    )
    assert ended(lambda: world.bind().certificate(endpoint)) == nobody
    assert ended(lambda: world.bind().log_in(endpoint, world.login)) == nobody


def test_a_missing_ca_is_a_fault_of_the_deployment(world: World, tmp_path: Path) -> None:
    without = PostgresServers(ca_file=None).bind(Deadline())
    assert ended(lambda: without.log_in(world.endpoint, world.login)) == Misconfigured(
        "PostgreSQL", "sslMode verify-full needs a CA file in the controller's settings"
    )
    missing = PostgresServers(ca_file=tmp_path / "ca.pem").bind(Deadline())
    assert ended(lambda: missing.certificate(world.endpoint)) == Misconfigured(
        "PostgreSQL", "the controller's CA file cannot be read"
    )


def test_variables_of_the_environment_do_not_count(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variables = {
        "PGHOST": "example.com",
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGDATABASE": "nonesuch",
        "PGUSER": "nobody",
        "PGPASSWORD": "wrong",
        "PGPASSFILE": str(tmp_path / "pgpass"),
        "PGOPTIONS": "-c search_path=public",
        "PGSSLMODE": "disable",
        "PGSSLROOTCERT": os.devnull,
        "PGSSLCERT": os.devnull,
        "PGSSLCRL": str(tmp_path / "crl"),
        "PGREQUIREAUTH": "none",
        "PGTARGETSESSIONATTRS": "standby",
        "PGMINPROTOCOLVERSION": "latest",
        "PGDATESTYLE": "German",
        "PGTZ": "Asia/Tokyo",
    }
    with monkeypatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        with world.bind().administer(world.endpoint, world.login) as admin:
            admin.migrate()
            admin.record_sweep()
            info = admin.registry()
    assert info is not None
    assert info.sweep_age is not None
    assert 0 <= info.sweep_age < 60

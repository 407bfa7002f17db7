"""The servers of the sandbox are the real ones, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from cryptography import x509
from hvac.exceptions import Forbidden, InvalidRequest, VaultDown

from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import (
    MOUNT,
    OpenBaoServer,
    controller_policy,
    reader_policy,
)
from hooks.sandbox.postgres_server import Login, PostgresServer
from hooks.sandbox.processes import Process, ServerFailed, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE = "tenants"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def authority(directory: Path) -> Authority:
    return Authority(directory / "ca")


@pytest.fixture(scope="module")
def postgres(directory: Path, authority: Authority) -> Iterator[PostgresServer]:
    settings = {"log_statement": "all", "synchronous_commit": "on"}
    with PostgresServer.start(directory / "postgres", authority, settings=settings) as server:
        yield server


@pytest.fixture(scope="module")
def openbao(directory: Path, authority: Authority) -> Iterator[OpenBaoServer]:
    with OpenBaoServer.start(directory / "openbao", authority) as server:
        yield server


def log_in(parameters: dict[str, str], **changes: str) -> str:
    """Log in as an application would and say whether the connection is encrypted."""
    conninfo = psycopg.conninfo.make_conninfo(**{**parameters, **changes})
    with psycopg.connect(conninfo) as connection:
        return "TLS" if connection.pgconn.ssl_in_use else "plain"


def alive(pid: int) -> bool:
    """Whether the process runs: one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(*pids: int) -> list[int]:
    """Wait at most ten seconds and return those that are still there."""
    deadline, pause = time.monotonic() + 10, threading.Event()
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        pause.wait(0.02)
    return left


class TestPostgreSQL:
    def test_login_with_verify_full_works_with_the_authority_that_issued(
        self, postgres: PostgresServer
    ) -> None:
        assert log_in(postgres.parameters(postgres.admin)) == "TLS"

    def test_login_with_verify_full_fails_with_another_authority(
        self, postgres: PostgresServer, tmp_path: Path
    ) -> None:
        stranger = Authority(tmp_path)
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            log_in(postgres.parameters(postgres.admin), sslrootcert=str(stranger.ca_file))

    def test_login_without_tls_is_possible_and_a_wrong_password_is_not(
        self, postgres: PostgresServer
    ) -> None:
        parameters = postgres.parameters(postgres.admin)
        assert log_in(parameters, sslmode="disable") == "plain"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            log_in(parameters, password="wrong")

    def test_the_admin_is_no_superuser_but_creates_roles_databases_and_schemas(
        self, postgres: PostgresServer
    ) -> None:
        admin = postgres.admin
        attributes = "rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls"
        rights = f"SELECT {attributes} FROM pg_roles WHERE rolname = current_user"  # noqa: S608 - a constant
        assert postgres.sql(rights.encode(), login=admin) == [(False, True, True, False, False)]
        postgres.sql("CREATE ROLE acme", login=admin)
        postgres.sql("GRANT acme TO CURRENT_USER WITH SET TRUE", login=admin)
        postgres.sql("CREATE DATABASE acme OWNER acme", login=admin)
        postgres.sql("CREATE SCHEMA registry", login=admin)
        owners = "SELECT datdba::regrole::text FROM pg_database WHERE datname = %s"
        assert postgres.sql(owners, ["acme"]) == [("acme",)]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root has to give its rights up")
    def test_it_does_not_run_as_root_when_we_do(self, postgres: PostgresServer) -> None:
        status = Path(f"/proc/{postgres.pid}/status").read_text()
        ids = [line.split() for line in status.splitlines() if line.startswith(("Uid", "Groups"))]
        assert [len(set(line[1:])) for line in ids] == [1, 0]
        assert ids[0][1] != "0"

    def test_no_password_is_in_its_log_although_it_logs_statements(
        self, postgres: PostgresServer
    ) -> None:
        text = postgres.log_text()
        assert "CREATE ROLE" in text
        assert postgres.admin.password not in text
        assert postgres.superuser.password not in text

    def test_data_survive_a_crash(self, postgres: PostgresServer) -> None:
        postgres.sql("CREATE TABLE kept AS SELECT 42 AS answer")
        before = postgres.pid
        postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            postgres.sql("SELECT 1")
        postgres.restart()
        assert postgres.sql("SELECT answer FROM kept") == [(42,)]
        assert postgres.pid != before

    def test_it_shows_another_certificate_at_once(
        self, postgres: PostgresServer, authority: Authority
    ) -> None:
        parameters = postgres.parameters(postgres.admin)
        good = authority.issue("good", dns=["localhost"], ips=["127.0.0.1"])
        try:
            postgres.present(authority.issue("elsewhere", dns=["elsewhere.example"]))
            with pytest.raises(psycopg.OperationalError, match="does not match host name"):
                log_in(parameters)
            postgres.present(authority.issue("old", dns=["localhost"], expired=True))
            with pytest.raises(psycopg.OperationalError, match="certificate"):
                log_in(parameters)
            postgres.present(authority.issue("named", common_name="localhost"))
            assert log_in(parameters) == "TLS"
        finally:
            postgres.present(good)

    def test_settings_and_hba_lines_take_effect_and_stop_leaves_nothing(
        self, directory: Path, authority: Authority
    ) -> None:
        server = PostgresServer.start(
            directory / "second",
            authority,
            settings={"application_name": r"it's a \ test"},
            hba=["hostssl all all 127.0.0.1/32 reject"],
        )
        data, pid = Path(str(server.sql("SHOW data_directory")[0][0])), server.pid
        try:
            assert server.sql("SHOW application_name") == [(r"it's a \ test",)]
            with pytest.raises(psycopg.OperationalError, match=r"pg_hba\.conf rejects"):
                log_in(server.parameters(server.admin))
        finally:
            server.stop()
        assert server.pid is None
        assert pid is not None
        assert not alive(pid)
        assert not data.parent.exists()


class TestOpenBao:
    def test_the_controller_creates_once_and_the_reader_only_reads(
        self, openbao: OpenBaoServer
    ) -> None:
        controller = openbao.client(openbao.token(controller_policy(MOUNT, BASE))).secrets.kv.v2
        reader = openbao.client(openbao.token(reader_policy(MOUNT, BASE))).secrets.kv.v2
        path = f"{BASE}/acme/orders"
        controller.create_or_update_secret(path, {"password": "first"}, cas=0)
        with pytest.raises(InvalidRequest, match="check-and-set"):
            controller.create_or_update_secret(path, {"password": "second"}, cas=0)
        answer = reader.read_secret_version(path, raise_on_deleted_version=True)
        assert answer["data"]["data"] == {"password": "first"}
        with pytest.raises(Forbidden):
            reader.create_or_update_secret(path, {"password": "third"}, cas=1)

    def test_the_controller_has_no_right_outside_its_base_and_may_not_list(
        self, openbao: OpenBaoServer
    ) -> None:
        controller = openbao.client(openbao.token(controller_policy(MOUNT, BASE))).secrets.kv.v2
        with pytest.raises(Forbidden):
            controller.create_or_update_secret("elsewhere/x", {"a": "b"}, cas=0)
        with pytest.raises(Forbidden):
            controller.list_secrets(BASE)
        with pytest.raises(Forbidden):
            controller.delete_latest_version_of_secret(f"{BASE}/acme/x")
        controller.update_metadata(f"{BASE}/acme/x", custom_metadata={"tenant-uid": "1"})
        controller.delete_metadata_and_all_versions(f"{BASE}/acme/x")

    def test_sealing_makes_reads_fail_and_unsealing_heals(self, openbao: OpenBaoServer) -> None:
        kv = openbao.client(openbao.root_token).secrets.kv.v2
        kv.create_or_update_secret(f"{BASE}/sealed", {"a": "b"})
        openbao.seal()
        with pytest.raises(VaultDown, match="sealed"):
            kv.read_secret_version(f"{BASE}/sealed", raise_on_deleted_version=True)
        openbao.unseal()
        answer = kv.read_secret_version(f"{BASE}/sealed", raise_on_deleted_version=True)
        assert answer["data"]["data"] == {"a": "b"}

    def test_an_approle_logs_in_with_its_policies(self, openbao: OpenBaoServer) -> None:
        openbao.write_policy("controller", controller_policy(MOUNT, BASE))
        role = openbao.approle("hooks", policies=["controller"])
        client = openbao.client("")
        login = client.auth.approle.login(role.role_id, role.secret_id)
        assert login["auth"]["token_policies"] == ["controller", "default"]
        assert role.secret_id not in repr(role)

    def test_the_audit_log_has_the_requests_and_no_secret(self, openbao: OpenBaoServer) -> None:
        kv = openbao.client(openbao.root_token).secrets.kv.v2
        kv.create_or_update_secret(f"{BASE}/audited", {"password": "plain-as-day"})
        text = openbao.audit_file.read_text()
        assert f"{MOUNT}/data/{BASE}/audited" in text
        assert "plain-as-day" not in text + openbao.log_text()
        assert openbao.root_token not in text + openbao.log_text() + repr(openbao)

    def test_data_in_memory_refuse_a_restart_and_data_in_raft_survive_it(
        self, openbao: OpenBaoServer, directory: Path, authority: Authority
    ) -> None:
        with pytest.raises(ValueError, match="raft"):
            openbao.restart()
        with OpenBaoServer.start(directory / "raft", authority, storage="raft") as server:
            kv = server.client(server.root_token).secrets.kv.v2
            kv.create_or_update_secret("kept", {"a": "b"})
            first = server.pid
            server.restart()
            answer = kv.read_secret_version("kept", raise_on_deleted_version=True)
            assert answer["data"]["data"] == {"a": "b"}
            last = server.pid
        assert server.pid is None
        assert [pid for pid in (first, last) if pid is None or alive(pid)] == []


class TestCertificates:
    @pytest.mark.parametrize(
        ("dns", "ips", "expected"),
        [
            pytest.param(["db.example"], [], ["db.example"], id="dns"),
            pytest.param([], ["127.0.0.1"], ["127.0.0.1"], id="ip"),
            pytest.param(["db.example"], ["::1"], ["db.example", "::1"], id="both"),
            pytest.param([], [], None, id="common-name-only"),
        ],
    )
    def test_a_certificate_has_exactly_the_names_asked_for(
        self, tmp_path: Path, dns: list[str], ips: list[str], expected: list[str] | None
    ) -> None:
        files = Authority(tmp_path).issue("x", dns=dns, ips=ips, common_name="old.example")
        certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
        names = [
            str(name.value)
            for extension in certificate.extensions
            if isinstance(extension.value, x509.SubjectAlternativeName)
            for name in extension.value
        ]
        assert (names or None) == expected
        assert files.key.stat().st_mode & 0o777 == 0o600
        ssl.create_default_context().load_cert_chain(files.cert, files.key)

    def test_a_certificate_without_any_name_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="needs a DNS name"):
            Authority(tmp_path).issue("x")


class TestProcesses:
    def test_a_program_that_fails_says_why(self, tmp_path: Path) -> None:
        program = [sys.executable, "-c", "import sys; sys.exit('no such luck')"]
        with pytest.raises(ServerFailed, match=r"(?s)ended with 1.*no such luck"):
            Process(program, log=tmp_path / "log").finish()

    def test_a_server_that_ends_before_it_is_ready_is_not_waited_for(self, tmp_path: Path) -> None:
        process = Process([sys.executable, "-c", "print('bye')"], log=tmp_path / "log")
        with pytest.raises(ServerFailed, match=r"(?s)ended before it was ready.*bye"):
            process.wait_until(lambda: False)

    def test_a_child_that_ignores_the_stop_signal_is_killed(self, tmp_path: Path) -> None:
        stubborn = (
            "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)"
            "\nwhile True: signal.pause()"
        )
        process = Process([sys.executable, "-c", stubborn], log=tmp_path / "log")
        process.wait_until(lambda: "up" in process.tail())
        process.stop(timeout=0.05)
        assert not process.running

    def test_a_child_has_a_session_of_its_own_and_nothing_of_our_environment(
        self, tmp_path: Path
    ) -> None:
        code = "import os; print(os.getsid(0) == os.getpid(), sorted(os.environ))"
        process = Process([sys.executable, "-I", "-c", code], log=tmp_path / "log")
        process.finish()
        assert process.tail() in ("True []", "True ['LC_CTYPE']")  # Python's locale coercion

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the signal at stake")
    def test_a_child_outlives_the_thread_that_asked_for_it(self, tmp_path: Path) -> None:
        started: list[Process] = []
        code = (
            "import signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0));"
            "print('up', flush=True); signal.pause()"
        )

        def start() -> None:
            process = Process([sys.executable, "-c", code], log=tmp_path / "log")
            process.wait_until(lambda: "up" in process.tail())
            started.append(process)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        (process,) = started
        # The thread is joined a moment before the kernel ends it, which is what would tell.
        process.wait_until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())
        process.send(signal.SIGUSR1)
        process.finish()

    def test_free_ports_can_be_listened_on(self) -> None:
        assert free_port() in range(15_000, 32_000)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of this")
    def test_children_die_with_a_parent_that_is_killed(self, tmp_path: Path) -> None:
        code = f"""
import pathlib, signal
from hooks.sandbox.certificates import Authority
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
here = pathlib.Path({str(tmp_path)!r})
authority = Authority(here / "ca")
postgres = PostgresServer.start(here, authority)
data = postgres.sql("SHOW data_directory")[0][0]
print(postgres.pid, OpenBaoServer.start(here / "bao", authority).pid, data, flush=True)
signal.pause()
"""
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout
            postgres, openbao, data = parent.stdout.readline().split()
            assert [alive(int(postgres)), alive(int(openbao))] == [True, True]
            parent.send_signal(signal.SIGKILL)
        try:
            assert wait_until_gone(int(postgres), int(openbao)) == []
        finally:
            shutil.rmtree(Path(data).parent)


def test_a_login_hides_its_password() -> None:
    assert repr(Login("admin", "s3cret")) == "Login(name='admin')"

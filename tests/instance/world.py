"""An Instance before a real PostgreSQL: the API is the double, OpenBao is not there at all.

Every world has an admin role with a name that occurs nowhere else, and a registry schema of its
own. Whatever the hooks answer is searched for all names and passwords that the admin Secret ever
held, and for the words of the server.
"""

from __future__ import annotations

import base64
import secrets
import signal
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from psycopg import sql

from hooks.core import manifests
from hooks.core.contract import Request, Response, render
from hooks.core.deadline import Deadline
from hooks.core.manifests import Manifest
from hooks.effects.druid import DruidClusters
from hooks.effects.kubernetes import connect
from hooks.effects.openbao import OpenBao, TokenFile
from hooks.effects.ports import Services
from hooks.effects.postgres import PostgresServers
from hooks.instance.hooks import InstanceHooks
from hooks.instance.model import Config
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import SECRET, Kind, MemoryCluster
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import free_port
from hooks.sandbox.world import crds
from tests.builders import INSTANCE_FINALIZER, instance, merged
from tests.effects.postgres.relay import Relay

GROUP = "database.ddupan.top/v1alpha1"
INSTANCES = Kind(GROUP, "PostgreSQLInstance", "postgresqlinstances", namespaced=False)
TENANTS = Kind(GROUP, "PostgreSQLTenant", "postgresqltenants", namespaced=True)
CONTROLLER = "database-hooks"
NAMESPACES = ("team-a", "team-b")
SECRET_NAME = "shared-login"
WORDS_OF_THE_SERVER = ("FATAL", "ERROR:", "authentication failed for", "hba.conf entry", "psycopg")


class Server(PostgresServer):
    """A server that can be copied into a standby."""

    @property
    def programs(self) -> Path:
        """Return where its programs are."""
        return self._programs

    @classmethod
    def standby_of(cls, primary: Server, directory: Path) -> Self:
        """Start a hot standby, which never hears of the primary again."""
        directory.mkdir()
        server = cls(directory / "standby.log", primary.ca_file, primary.programs)
        server.superuser = primary.superuser
        server._copy(primary.port)
        server._run()
        return server

    def answer_nobody(self) -> None:
        """Start again as a server that recovers and lets nobody in meanwhile."""
        self._halt(signal.SIGINT)
        self._append("hot_standby = off")
        self._process = self._launch("postgres", "-D", str(self._data))
        self._process.wait_until(self._listens, despite=(OSError,))

    def _listens(self) -> bool:
        socket.create_connection((self.hostaddr, self.port)).close()
        return True

    def _copy(self, port: int) -> None:
        self._home.chmod(0o711)
        self._data.mkdir(mode=0o700)
        self._give(self._data)
        passfile = self._home / "pgpass"
        self._write(passfile, f"*:*:*:*:{self.superuser.password}".encode())
        source = f"host=127.0.0.1 port={port} user={self.superuser.name} passfile={passfile}"
        self._launch(
            "pg_basebackup",
            *("--pgdata", str(self._data), "--dbname", source),
            *("--checkpoint=fast", "--wal-method=fetch", "--no-sync"),
        ).finish()
        passfile.unlink()
        self._write(self._data / "standby.signal", b"")
        self._append(f"port = {self.port}")

    def _append(self, line: str) -> None:
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.write(f"\n{line}\n")


class Door(Relay):
    """A relay before the server that can be shut for some connections."""

    refusals = 0

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        if self.refusals and source.getsockname()[1] == self.port:
            self.refusals -= 1
            for one in (source, sink):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        else:
            super()._pump(source, sink)


def texts(value: object) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    else:
        yield str(value)


class InstanceWorld:
    """One API server, and the Instances and admin Secrets that a test makes in it."""

    def __init__(
        self,
        server: PostgresServer,
        authority: Authority,
        directory: Path,
        *,
        definitions: Sequence[Manifest] | None = None,
        sweep_seconds: float = 600,
    ) -> None:
        self.server = server
        self.schema = f"registry_{uuid.uuid4().hex[:12]}"
        self.now = datetime.now(UTC)  # noqa: TID251  where the test's clock starts
        self.hidden: set[str] = set()
        self.password = ""
        self.effects: list[tuple[object, str]] = []
        self.cluster = MemoryCluster(
            crds() if definitions is None else definitions,
            clock=lambda: self.now,
            namespaces=(CONTROLLER, *NAMESPACES),
        )
        self.hooks = InstanceHooks(
            Config(CONTROLLER, sweep_seconds), lambda *told: self.effects.append(told)
        )
        self.api = ApiServer(
            self.cluster,
            certificate=authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"]),
            ca_file=authority.ca_file,
            tokens={"a-token": CONTROLLER},
        ).__enter__()
        self._kubernetes = connect(self.api.kubeconfig(directory / "kubeconfig", "a-token"))
        self._servers = PostgresServers(ca_file=authority.ca_file, schema=self.schema)
        nowhere = f"http://127.0.0.1:{free_port()}"
        self._openbao = OpenBao(address=nowhere, mount="none", auth=TokenFile(directory / "none"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.close()

    def services(self, seconds: float = 20) -> Services:
        """Return the outside world for one call."""
        deadline = Deadline(seconds)
        return Services(
            kubernetes=self._kubernetes.bind(deadline),
            postgres=self._servers.bind(deadline),
            credentials=self._openbao.bind(deadline),
            druid=DruidClusters().bind(deadline),
            deadline=deadline,
            now=self.now,
        )

    def wait(self, seconds: float) -> None:
        """Let the clock of the hooks run on; the server has its own."""
        self.now += timedelta(seconds=seconds)

    # The admin

    def make_role(self, attributes: str = "CREATEDB CREATEROLE", *, prefix: str = "keeper") -> str:
        """Create a role that may administer, but for CREATE on a database; return its name."""
        name = f"{prefix}_{uuid.uuid4().hex[:10]}"
        self.superuser(f"CREATE ROLE {{}} LOGIN {attributes}", name)
        self.set_password(name, secrets.token_urlsafe(24))
        return name

    def make_admin(self, attributes: str = "CREATEDB CREATEROLE", *, prefix: str = "keeper") -> str:
        """Create a role that may do all, and put it into the Secret; return its name."""
        name = self.make_role(attributes, prefix=prefix)
        self.superuser("GRANT CREATE ON DATABASE postgres TO {}", name)
        self.use(name)
        return name

    def set_password(self, name: str, password: str) -> None:
        """Give the role a password, which `use` puts into the Secret."""
        statement = sql.SQL("ALTER ROLE {} PASSWORD {}")
        self.server.sql(statement.format(sql.Identifier(name), sql.Literal(password)))
        self.password = password

    def use(self, name: str) -> None:
        """Put the role and the password that was set last into the admin Secret."""
        self.write_secret({"username": name.encode(), "password": self.password.encode()})

    def write_secret(self, data: Mapping[str, bytes]) -> None:
        """Write the admin Secret, whatever was in it."""
        for value in data.values():
            with suppress(UnicodeDecodeError):
                self.hidden |= {value.decode()} - {""}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        meta = {"name": SECRET_NAME, "namespace": CONTROLLER}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}
        there = self.cluster.get(SECRET, CONTROLLER, SECRET_NAME)
        if there is None:
            self.cluster.create(secret)
        else:
            self.cluster.replace(there | {"data": encoded})

    def superuser(self, statement: str, *names: str) -> list[tuple[object, ...]]:
        """Run a statement as the superuser, with names quoted."""
        return self.server.sql(sql.SQL(statement).format(*map(sql.Identifier, names)))

    # Instances

    def make(self, name: str = "shared", **endpoint: object) -> Manifest:
        """Create an Instance of the server."""
        bare = instance(metadata={"name": name, "uid": None, "generation": None}, status=None)
        bare["metadata"]["finalizers"] = [INSTANCE_FINALIZER]
        here = {
            "host": self.server.host,
            "hostaddr": self.server.hostaddr,
            "port": self.server.port,
        }
        bare["spec"]["endpoint"] |= here | endpoint
        bare["spec"]["adminCredentialRef"]["name"] = SECRET_NAME
        return self.cluster.create(bare)

    def edit(self, name: str = "shared", **endpoint: object) -> None:
        """Change spec.endpoint."""
        self.cluster.replace(merged(self.get(name), {"spec": {"endpoint": endpoint}}))

    def get(self, name: str = "shared") -> Manifest:
        """Return an Instance as it is now."""
        found = self.cluster.get(INSTANCES, None, name)
        assert found is not None
        return found

    def ready(self, name: str = "shared") -> Manifest:
        """Return its Ready condition."""
        return manifests.condition(self.get(name), "Ready")

    def sync(self, name: str = "shared", *, seconds: float = 20) -> Response:
        """Call sync, write the status, and make sure that it tells nothing of the admin."""
        return self._called(self.hooks.sync, name, seconds, finalizing=False)

    def finalize(self, name: str = "shared", *, controller: str = INSTANCE_FINALIZER) -> Response:
        """Call finalize; the finalizer stays where it is."""
        return self._called(self.hooks.finalize, name, 20, finalizing=True, controller=controller)

    def _called(
        self,
        hook: Callable[[Request, Services], Response],
        name: str,
        seconds: float,
        *,
        finalizing: bool,
        controller: str = INSTANCE_FINALIZER,
    ) -> Response:
        parent = self.get(name)
        own = {"metadata": {"name": controller.partition("compositecontroller-")[2]}}
        request = Request(parent=parent, finalizing=finalizing, controller=own)
        response = hook(request, self.services(seconds))
        render(response, kinds=self.hooks.children, finalizing=finalizing)
        told = "\n".join(texts([response.status, *map(repr, self.effects)]))
        assert [word for word in (*self.hidden, *WORDS_OF_THE_SERVER) if word in told] == []
        live = self.get(name)
        if response.status:
            self.cluster.replace_status(live | {"status": response.status})
        return response

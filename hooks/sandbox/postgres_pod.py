"""A Pod of a PostgresCluster whose container `database` is a real server on this machine.

Idea: the Pod looks like one that PGO and Patroni made: labels, the annotation with the member's
role, container statuses. Commands in its container find psql, and reach the server over a Unix
socket without a password, as the superuser. A failover is real too: a demoted server is read-only.

Limits: psql runs as the server's account, which is not called postgres, so the container's PGUSER
says whom to be and the socket trusts; PGO has peer authentication. Members share no data.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from hooks.core import manifests
from hooks.sandbox.containers import Container
from hooks.sandbox.edits import edit, edit_status
from hooks.sandbox.kinds import POD, ApiError
from hooks.sandbox.postgres_server import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority
    from hooks.sandbox.exec_service import ExecService
    from hooks.sandbox.port import Cluster

Role = Literal["primary", "master", "replica", "standby_leader"]

LABEL = "postgres-operator.crunchydata.com"
DATABASE = "database"
_IMAGE = "registry.example.com/postgres:17"


class MemberServer(PostgresServer):
    """A server that also listens on a Unix socket, and can stop and start being the primary."""

    def __init__(self, log: Path, ca_file: Path, programs: Path | None) -> None:
        super().__init__(log, ca_file, programs)
        self.socket_directory = self._home / "socket"
        self.socket_directory.mkdir(mode=0o700)
        self._give(self.socket_directory)

    def demote(self) -> None:
        """Restart as a standby that follows nobody."""
        self._write(self._data / "standby.signal", b"")
        self.restart()

    def promote(self) -> None:
        """Leave recovery."""
        self.sql("SELECT pg_promote()")

    def container(self) -> Container:
        """Return where its psql runs."""
        environment = {
            "PATH": f"{self._programs}:{os.defpath}",
            "PGDATA": str(self._data),
            "PGHOST": str(self.socket_directory),
            "PGPORT": str(self.port),
            "PGUSER": self.superuser.name,
        }
        return Container(environment, self._account)

    def _configure(self, settings: Mapping[str, str], hba: Sequence[str]) -> None:
        sockets = {"unix_socket_directories": str(self.socket_directory)}
        super()._configure(
            {**settings, **sockets}, [f"local all {self.superuser.name} trust", *hba]
        )


@dataclass(frozen=True, slots=True)
class Where:
    """Where a Pod and its commands are."""

    cluster: Cluster
    execs: ExecService
    now: Callable[[], str]


class PostgresPod:
    """A member of a PostgresCluster; `with` stops it."""

    def __init__(
        self,
        where: Where,
        server: MemberServer,
        *,
        owner: tuple[str, str],
        instance: str = "instance1-abcd",
        role: Role = "primary",
    ) -> None:
        """Create the Pod of a server that runs.

        Args:
            where: the cluster to be in.
            server: what its container runs.
            owner: namespace and name of the PostgresCluster.
            instance: tells the members of a PostgresCluster apart.
            role: what Patroni says that it is.
        """
        self.server = server
        self._where = where
        self._pod = where.cluster.create(_manifest(*owner, instance, role))
        self.run()

    @classmethod
    def start(
        cls, where: Where, directory: Path, authority: Authority, *, owner: tuple[str, str]
    ) -> Self:
        """Start a server, which logs to the directory, and create its Pod: the primary."""
        server = MemberServer.start(directory, authority)
        try:
            return cls(where, server, owner=owner)
        except BaseException:
            server.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def name(self) -> str:
        """Return the name of the Pod."""
        return manifests.name(self._pod)

    def failover(self, *, to: PostgresPod) -> None:
        """Make this member a replica and another one the primary."""
        self.server.demote()
        self.say(role="replica")
        to.server.promote()
        to.say(role="primary")

    def say(self, *, role: Role) -> None:
        """Let Patroni's annotation and PGO's label say what this member is, true or not."""

        def change(pod: Manifest) -> None:
            pod["metadata"]["annotations"] |= _annotations(role)
            pod["metadata"]["labels"] |= _role_label(role)

        edit(self._where.cluster, POD, self._pod, change)

    def kill(self) -> None:
        """End the container in the middle of everything, and the server with it."""
        self._container.kill()
        self._where.execs.containers.pop(self._key, None)
        self.server.kill()
        terminated = {"exitCode": 137, "reason": "Error", "finishedAt": self._where.now()}
        self._report("Running", {"terminated": terminated})

    def run(self) -> None:
        """Start the container, again after `kill`."""
        if self.server.pid is None:
            self.server.restart()
        self._container = self.server.container()
        self._where.execs.containers[self._key] = self._container
        self._report("Running", {"running": {"startedAt": self._where.now()}})

    def stop(self) -> None:
        """Stop the server and end the container; the Pod stays as it is."""
        self._container.kill()
        self._where.execs.containers.pop(self._key, None)
        self.server.stop()

    def remove(self) -> None:
        """Stop the server and delete the Pod."""
        self.stop()
        with contextlib.suppress(ApiError):
            self._where.cluster.delete(POD, manifests.namespace(self._pod), self.name)

    @property
    def _key(self) -> tuple[str, str]:
        return manifests.uid(self._pod), DATABASE

    def _report(self, phase: str, state: Manifest) -> None:
        ready = "running" in state

        def change(status: Manifest) -> None:
            container = {"name": DATABASE, "image": _IMAGE, "state": state, "ready": ready}
            container |= {"restartCount": 0, "started": ready}
            condition = {"type": "Ready", "status": str(ready)}
            status |= {
                "phase": phase,
                "containerStatuses": [container],
                "conditions": [condition],
            }

        edit_status(self._where.cluster, POD, self._pod, change)


def _manifest(namespace: str, cluster: str, instance: str, role: Role) -> Manifest:
    name = f"{cluster}-{instance}"
    labels = {
        f"{LABEL}/cluster": cluster,
        f"{LABEL}/data": "postgres",
        f"{LABEL}/instance": name,
        f"{LABEL}/instance-set": instance.partition("-")[0],
        f"{LABEL}/patroni": f"{cluster}-ha",
        "statefulset.kubernetes.io/pod-name": f"{name}-0",
    }
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {
            "name": f"{name}-0",
            "namespace": namespace,
            "labels": labels | _role_label(role),
            "annotations": _annotations(role),
        },
        "spec": {
            "containers": [
                {"name": DATABASE, "image": _IMAGE},
                {"name": "replication-cert-copy", "image": _IMAGE},
            ]
        },
    }


def _annotations(role: Role) -> dict[str, str]:
    """Return what Patroni tells of its member, as compact as Patroni writes it."""
    member = {"role": role, "state": "running", "version": "4.0.6", "timeline": 1}
    return {"status": json.dumps(member, separators=(",", ":"))}


def _role_label(role: Role) -> dict[str, str]:
    """Return PGO's label, which calls the leader of a standby cluster master as well."""
    return {f"{LABEL}/role": "replica" if role == "replica" else "master"}

"""The objects that the user's files ask for: applied, followed, and logged in to."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox import world
from hooks.sandbox.cluster import SECRET, ApiError, Kind
from hooks.sandbox.druids import INGESTION
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER
from hooks.sandbox.postgres_server import program
from hooks.sandbox.samples import Samples, localized
from hooks.sandbox.world import World

GROUPS = ("database.ddupan.top", POSTGRES_CLUSTER.group, "druid.apache.org")
TENANT = "PostgreSQLTenant"
CONDITIONS = {POSTGRES_CLUSTER.kind: "DatabaseInitSQLApplied"}
"""What says that an object is as it was asked for, where that is not Ready."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is shown of one object."""

    kind: str
    name: str
    phase: str
    ready: str
    reason: str
    message: str

    @classmethod
    def of(cls, manifest: Manifest) -> Line:
        """Read an object's status."""
        kind = str(manifest["kind"])
        ready = manifests.condition(manifest, CONDITIONS.get(kind, "Ready"))
        reason = str(ready.get("reason") or "")
        namespace = manifests.namespace(manifest)
        return cls(
            kind=kind,
            name=f"{namespace}/{manifests.name(manifest)}".lstrip("/"),
            phase=_phase(manifest.get("status") or {}) or reason,
            ready=str(ready.get("status") or ""),
            reason=reason,
            message=str(ready.get("message") or ""),
        )


def _phase(status: Manifest) -> str:
    return str(status.get("phase") or status.get("state") or "")


@dataclass(slots=True)
class Session:
    """What the files ask for, and what the API server refused of it."""

    world: World
    samples: Samples
    refused: dict[str, str] = field(default_factory=dict)
    _wanted: dict[tuple[str, str, str], Kind] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    def apply(self) -> dict[str, str]:
        """Apply all files and delete what left them.

        Returns:
            What is refused now and was not before, or for another reason: object to message.
        """
        objects, problems = self.samples.read()
        refused = {str(problem.path): problem.text for problem in problems}
        fitted = localized(objects, self.world.local_server, world.NAMESPACE)
        objects = [*fitted, *self.world.druids.needed(fitted)]
        for manifest in sorted(objects, key=lambda each: each.get("kind") == INGESTION):
            try:
                self.world.cluster.apply(manifest)
            except ApiError as error:
                refused[f"{manifest.get('kind')} {manifests.name(manifest)}"] = str(error)
        if not problems:
            refused |= self._delete_others(fitted)
        news = {what: why for what, why in refused.items() if self.refused.get(what) != why}
        self.refused = refused
        return news

    def _delete_others(self, fitted: list[Manifest]) -> dict[str, str]:
        wanted = {
            (kind.kind, manifests.namespace(manifest), manifests.name(manifest)): kind
            for manifest in fitted
            for kind in self._kinds()
            if kind.kind == manifest.get("kind")
        }
        refused = {}
        for key in self._wanted.keys() - wanted.keys():
            try:
                self.world.cluster.delete(self._wanted[key], key[1] or None, key[2])
            except ApiError as error:
                refused[f"deletion of {key[0]} {key[2]}"] = str(error)
        self._wanted = wanted
        return refused

    def _kinds(self) -> list[Kind]:
        return [kind for kind in self.world.cluster.kinds if kind.group in GROUPS]

    def lines(self) -> list[Line]:
        """Return what there is to see, Instances first."""
        found = [
            Line.of(manifest)
            for kind in self._kinds()
            for manifest in self.world.cluster.list(kind)
        ]
        return sorted(found, key=lambda line: (line.kind, line.name))

    def ready(self) -> bool:
        """Say whether everything that was asked for is Ready."""
        lines = self.lines()
        complete = bool(lines) and len(lines) >= len(self._wanted) and not self.refused
        return complete and all(line.ready == "True" for line in lines)

    def failed(self) -> bool:
        """Say whether something was refused, or is not Ready for a reason."""
        return bool(self.refused) or any(line.ready == "False" for line in self.lines())

    def logins(self) -> Iterator[tuple[str, str]]:
        """Yield each database that became ready, with a command that logs in, once."""
        commands = {TENANT: self._login, POSTGRES_CLUSTER.kind: self._member_login}
        for kind in self._kinds():
            for found in self.world.cluster.list(kind) if kind.kind in commands else ():
                line = Line.of(found)
                if line.ready == "True" and manifests.uid(found) not in self._told:
                    self._told.add(manifests.uid(found))
                    yield line.name, commands[kind.kind](found)

    def _member_login(self, cluster: Manifest) -> str:
        """Return a psql command for the member of a PostgresCluster, over its socket."""
        namespace, name = manifests.namespace(cluster), manifests.name(cluster)
        server = self.world.clusters.member(namespace, name).server
        conninfo = f"host={server.socket_directory} port={server.port} dbname=postgres"
        return shlex.join([str(program("psql")), f"{conninfo} user={server.superuser.name}"])

    def _login(self, tenant: Manifest) -> str:
        """Return a psql command; the password is in a file, which the Secret's pgpass fills."""
        name = tenant["status"]["credential"]["secretRef"]["name"]
        secret = self.world.cluster.get(SECRET, manifests.namespace(tenant), name) or {}
        data = {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
        passfile = self.world.directory / f"{manifests.uid(tenant)}.pgpass"
        passfile.touch(mode=0o600)
        passfile.write_text(data["pgpass"] + "\n")
        conninfo = (
            f"host={data['host']} hostaddr={self.world.postgres.hostaddr} port={data['port']}"
            f" dbname={data['database']} user={data['username']} sslmode={data['sslmode']}"
            f" sslrootcert={self.world.authority.ca_file} passfile={passfile}"
        )
        return shlex.join([str(program("psql")), conninfo])

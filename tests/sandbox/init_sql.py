"""A PostgresCluster with real members, our hooks, and the runner and Jobs between them."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from werkzeug.serving import WSGIRequestHandler, make_server

from hooks.app import create_app
from hooks.core import manifests
from hooks.effects.kubernetes import connect
from hooks.initsql.hooks import InitSqlHooks
from hooks.initsql.model import APPLIED, FROM, STATE, Config
from hooks.initsql.pgo import InitSqlPgoHooks
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.cluster import CONFIG_MAP, MemoryCluster
from hooks.sandbox.jobs import Jobs
from hooks.sandbox.kinds import JOB, ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from hooks.sandbox.metacontroller import Connection, Runner, Time
from hooks.sandbox.postgres_clusters import POSTGRES_CLUSTER
from hooks.sandbox.postgres_pod import MemberServer, PostgresPod, Where
from hooks.sandbox.postgres_pod import Role as MemberRole
from hooks.sandbox.shipped import controllers, crds
from hooks.telemetry import Metrics
from tests.app import stubs
from tests.sandbox.widgets import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from hooks.core.deadline import Deadline
    from hooks.core.manifests import Manifest
    from hooks.effects.ports import Services
    from hooks.sandbox.certificates import Authority
    from hooks.sandbox.cluster import Kind

Mode = Literal["composite", "decorator"]

TEAM, HIPPO, SOURCE = "team-a", "hippo", "hippo-init-sql"
MODE_LABEL = "database.ddupan.top/init-sql"
CONFIG = Config(
    image="registry.example.com/database-hooks:1",
    pull_policy="IfNotPresent",
    pull_secrets=(),
    deadline_seconds=120,
    cpu="100m",
    memory="256Mi",
)
OURS = (JOB, SERVICE_ACCOUNT, ROLE, ROLE_BINDING)


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


@dataclass
class InitSqlWorld:
    """Everything; nothing moves until `settle`. Time passes only when it is skipped."""

    authority: Authority
    directory: Path
    mode: Mode = "composite"
    definitions: Sequence[Manifest] = field(default_factory=crds)

    def __post_init__(self) -> None:
        self.time = Time(lambda: 0.0)
        self.cluster = MemoryCluster(self.definitions, self.now, namespaces=("default", TEAM))
        certificate = self.authority.issue("kubernetes", ips=["127.0.0.1"])
        self.api = ApiServer(
            self.cluster,
            certificate=certificate,
            ca_file=self.authority.ca_file,
            tokens={"hooks-token": "database-hooks"},
        )
        self.api.__enter__()
        self._kubernetes = connect(
            self.api.kubeconfig(self.directory / "kubeconfig", "hooks-token")
        )
        files = self.directory / "jobs"
        files.mkdir()
        self.jobs = Jobs(self.cluster, self.api, files, self.now)
        self._app = self._serve()
        mine = [one for one in controllers() if "init-sql" in manifests.name(one)]
        url = f"http://127.0.0.1:{self._app.server_port}"
        self.runner = Runner(
            self.cluster, mine, connect=Connection(url, stubs.TOKEN), time=self.time
        )

    def close(self) -> None:
        self.jobs.stop()
        if self.runner.crash is None:
            self.runner.stop()
        self._app.shutdown()
        self._thread.join()
        self._app.server_close()
        self.api.close()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=int(self.time.now()))

    def member(
        self, server: MemberServer, instance: str = "instance1-abcd", role: MemberRole = "primary"
    ) -> PostgresPod:
        """Make the Pod of a server."""
        where = Where(self.cluster, self.api.exec, lambda: f"{self.now():%Y-%m-%dT%H:%M:%SZ}")
        return PostgresPod(where, server, owner=(TEAM, HIPPO), instance=instance, role=role)

    def ask(self, sql: str, *, field: bool | None = None) -> Manifest:
        """Create the ConfigMap, and the cluster that asks for its SQL.

        It asks in its field, or else by annotation; the mode has a usual way.
        """
        self.write(sql)
        by_field = self.mode == "composite" if field is None else field
        asked = {"databaseInitSQL": {"name": SOURCE, "key": "init.sql"}}
        meta = {
            "name": HIPPO,
            "namespace": TEAM,
            "labels": {MODE_LABEL: self.mode},
            "annotations": {} if by_field else {FROM: f"{SOURCE}/init.sql"},
        }
        return self.cluster.create(
            {
                "apiVersion": POSTGRES_CLUSTER.api_version,
                "kind": "PostgresCluster",
                "metadata": meta,
                "spec": asked if by_field else {},
            }
        )

    def write(self, sql: str, key: str = "init.sql") -> None:
        """Write the ConfigMap, new or again."""
        meta = {"name": SOURCE, "namespace": TEAM}
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: sql}}
        if self.cluster.get(CONFIG_MAP, TEAM, SOURCE) is None:
            self.cluster.create(obj)
        else:
            self.cluster.replace(obj)

    def settle(self, *, within: float = 0.0) -> None:
        """Let the runner and the Jobs work until neither has anything left to do."""
        self.runner.settle(within=within)
        while self.jobs.settle():
            self.runner.settle()

    def change(self, **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
        return self.cluster.replace(self.hippo() | fields)

    def hippo(self) -> Manifest:
        found = self.cluster.get(POSTGRES_CLUSTER, TEAM, HIPPO)
        assert found is not None
        return found

    def record(self) -> str | None:
        """Return where it is written that the SQL was applied."""
        parent = self.hippo()
        if self.mode == "composite":
            return (parent.get("status") or {}).get("databaseInitSQL")
        return manifests.annotations(parent).get(APPLIED)

    def told(self) -> tuple[str, str]:
        """Return reason and message of what is told to people."""
        if self.mode == "composite":
            found = manifests.condition(self.hippo(), "DatabaseInitSQLApplied")
            return found.get("reason", ""), found.get("message", "")
        reason, _, message = manifests.annotations(self.hippo()).get(STATE, "").partition(": ")
        return reason, message

    def left(self, kind: Kind) -> list[str]:
        return [manifests.name(obj) for obj in self.cluster.list(kind, TEAM)]

    def visible(self) -> str:
        """Return everything that can be read in the cluster and its logs, but ConfigMaps."""
        objects = [obj for kind in self.cluster.kinds for obj in self.cluster.list(kind)]
        others = [obj for obj in objects if obj["kind"] != CONFIG_MAP.kind]
        return json.dumps(others) + self.jobs.logs()

    def forget_job(self) -> None:
        """Take the finished Jobs away, as somebody who tidies up does."""
        for name in self.left(JOB):
            self.cluster.delete(JOB, TEAM, name)

    def _serve(self) -> Any:  # noqa: ANN401 - werkzeug's server has no public type
        effects: list[object] = []

        def services(deadline: Deadline) -> Services:
            kubernetes = self._kubernetes.bind(deadline)
            return replace(stubs.services(deadline), kubernetes=kubernetes, now=self.now())

        def on_effect(action: object, _outcome: str) -> None:
            effects.append(action)

        app = create_app(
            [InitSqlHooks(CONFIG, on_effect), InitSqlPgoHooks(CONFIG, on_effect)],
            services,
            tokens=lambda: [stubs.TOKEN.encode()],
            ready=lambda: True,
            metrics=Metrics(),
        )
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Quiet)
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return server

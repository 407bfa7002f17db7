"""A real Druid on loopback: ZooKeeper and a process for each service, gone after the run."""

from __future__ import annotations

import base64
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import requests

from hooks.effects.ports import Login
from hooks.sandbox.processes import Process, ServerFailed, free_port
from tests.e2e.druid import configuration, jvm
from tests.e2e.druid.configuration import ADMIN, INTERNAL, Site
from tests.e2e.druid.releases import COORDINATOR, SERVICES, Release
from tests.e2e.druid.waiting import NotInTime, until

_START_TIMEOUT = 180.0
_ZOOKEEPER = "org.apache.zookeeper.server.ZooKeeperServerMain"


class DruidServer:
    """A running Druid; `with` stops it."""

    def __init__(self, release: Release, directory: Path) -> None:
        """Use `start`, which also waits until it takes work."""
        parts = (*SERVICES, "zookeeper", "derby")
        self.release = release
        self._passwords = {user: secrets.token_hex(12) for user in (ADMIN, INTERNAL)}
        self._directory = directory
        self._site = Site(directory, {part: free_port() for part in parts})
        self._processes: dict[str, Process] = {}
        self._session = requests.Session()
        self._session.trust_env = False

    @classmethod
    def start(cls, release: Release, directory: Path) -> Self:
        """Start every service and wait until tasks and queries are taken.

        Args:
            release: Which Druid.
            directory: Where its files and its logs go.
        """
        server = cls(release, directory)
        try:
            server._start_zookeeper()
            for service in SERVICES:
                configuration.write(release, server._site, service, server._passwords)
                server._start(service)
            server._wait_until_ready()
            server._warm_up()
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Return where its Router listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Return the port of its Router."""
        return self._site.ports["router"]

    def call(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  JSON
        """Call its API through the Router, with every right, and return the answer.

        Raises:
            requests.RequestException: No answer, or another one than 2xx.
        """
        answer = self._ask(method, path, body, Login(INTERNAL, self._passwords[INTERNAL]))
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def lets_in(self, login: Login) -> bool:
        """Say whether Router and Broker know a user by this password."""
        answer = self._ask("POST", "/druid/v2/sql", {"query": "SELECT 1"}, login)
        return bool(answer.status_code != requests.codes.unauthorized)

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Run a query and return its rows."""
        rows = self.call("POST", "/druid/v2/sql", {"query": sql})
        assert isinstance(rows, list)
        return rows

    def rows(self, datasource: str) -> int:
        """Count the rows that queries see, 0 before there are any."""
        tables = self.query(
            f"SELECT * FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME = '{datasource}'"  # noqa: S608  a test's own name
        )
        if not tables:
            return 0
        [counted] = self.query(f'SELECT COUNT(*) AS n FROM "{datasource}"')  # noqa: S608  the same
        return int(counted["n"])

    def tasks(self, datasource: str) -> dict[str, str]:
        """Return the state of every task that ever was of a datasource, by its id."""
        found = self.call("GET", f"/druid/indexer/v1/tasks?datasource={datasource}")
        return {task["id"]: task["statusCode"] for task in found}

    @contextmanager
    def silent_overlord(self) -> Iterator[None]:
        """Keep the Overlord from reading and answering; afterwards it goes on where it was."""
        process = self._processes[COORDINATOR]
        process.send(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send(signal.SIGCONT)

    def stop_overlord(self, *, how: signal.Signals = signal.SIGTERM) -> None:
        """End the only Coordinator and Overlord, in order or with SIGKILL."""
        self._processes.pop(COORDINATOR).stop(how=how, timeout=30)

    def start_overlord(self) -> None:
        """Start it again, with the same metadata, and wait until tasks are taken."""
        self._start(COORDINATOR)
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop it, ZooKeeper last. Its files stay."""
        self._session.close()
        services = [self._processes.pop(name) for name in SERVICES if name in self._processes]
        for process in services:
            process.send(signal.SIGTERM)
        for process in services:
            jvm.stop_in_order(process)
        while self._processes:
            jvm.stop_in_order(self._processes.popitem()[1])

    def _ask(self, method: str, path: str, body: object, login: Login) -> requests.Response:
        credentials = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
        return self._session.request(
            method,
            f"{self.url}{path}",
            json=body,
            headers={"Authorization": f"Basic {credentials}"},
            timeout=30,
        )

    def _start_zookeeper(self) -> None:
        port = self._site.ports["zookeeper"]
        self._processes["zookeeper"] = jvm.start(
            [_ZOOKEEPER, str(port), str(self._directory / "zookeeper")],
            classpath=[f"{self.release.jars}/*"],
            heap="96m",
            log=self._directory / "zookeeper.log",
            flags=["-Dzookeeper.admin.enableServer=false", "-DclientPortAddress=127.0.0.1"],
        )

    def _start(self, service: str) -> None:
        temporary = self._directory / "tmp" / service
        temporary.mkdir(parents=True, exist_ok=True)
        self._processes[service] = jvm.start(
            ["org.apache.druid.cli.Main", "server", service],
            classpath=[self._directory / "conf" / service, f"{self.release.jars}/*"],
            heap=self.release.heap(service),
            log=self._directory / f"{service}.log",
            flags=[*configuration.FLAGS, f"-Djava.io.tmpdir={temporary}"],
        )

    def _wait_until_ready(self) -> None:
        try:
            until(self._ready, within=_START_TIMEOUT)
        except NotInTime as error:
            message = f"Druid {self.release.version} is not ready; see {self._directory}/*.log"
            raise ServerFailed(message) from error

    def _warm_up(self) -> None:
        """Run a task: the first one takes longer than a call of the hooks waits."""
        task = {"type": "noop", "id": "warming-up", "runTime": 0}
        self.call("POST", "/druid/indexer/v1/task", task)
        status = "/druid/indexer/v1/task/warming-up/status"
        until(lambda: self.call("GET", status)["status"]["statusCode"] == "SUCCESS")

    def _ready(self) -> bool:
        """Say whether work is taken; the health that a service reports comes long before."""
        for name, process in self._processes.items():
            if not process.running:
                raise ServerFailed(f"{name} ended\n{process.tail()}")
        try:
            workers = self.call("GET", "/druid/indexer/v1/workers")
            return bool(workers) and bool(self.query("SELECT 1"))
        except requests.RequestException:
            return False

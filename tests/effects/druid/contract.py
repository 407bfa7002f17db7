"""What the contract tests of Druid ask of a server, and the specifications that they send.

`contract_*.py` are tests without a server. A package that has one imports them and gives them
`druid`, a `World`: here the double, in the end-to-end tests real servers. Each works on names of
its own, so that they may share a server.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any, Protocol

from hooks.effects.ports.druid import Cluster
from hooks.effects.ports.server import Login

ADMIN = Login("admin", 'an admin\'s pässword "one"')
READER = Login("reader", "a reader's password")
WRITER = Login("writer", "a writer's password")
INSIDE = Login("inside", "a password without EXTERN")
NOBODY = Login("nobody", "a password without rights")

LOGINS: dict[Login, set[str]] = {
    ADMIN: {"admin", "reader", "writer", "external"},
    READER: {"reader"},
    WRITER: {"writer", "external"},
    INSIDE: {"reader", "writer"},
    NOBODY: set(),
}
"""Users that must exist where `contract_login` runs: reader and writer are READ and WRITE of
every DATASOURCE, external is READ of EXTERNAL, admin is everything."""


class World(Protocol):
    """A running Druid."""

    version: str
    """As it says itself."""

    def cluster(self, login: Login | None = ADMIN) -> Cluster:
        """Return it as this user sees it; servers without users ignore the login."""
        ...

    def until(self, good: Callable[[], bool]) -> None:
        """Wait until something holds; fail when it never does."""
        ...

    def spoil(self, task_id: str, error: str, row: str) -> None:
        """Tell a double how a task with bad data fails; real servers find out by themselves."""
        ...


def name() -> str:
    """Return a name that nobody has used."""
    return f"contract_{secrets.token_hex(6)}"


def native(datasource: str, *rows: str, task_id: str = "", **tuning: object) -> bytes:
    """Return a batch of CSV rows "time,dock"."""
    schema = {
        "dataSource": datasource,
        "timestampSpec": {"column": "time", "format": "iso"},
        "dimensionsSpec": {"dimensions": ["dock"]},
        "granularitySpec": {"segmentGranularity": "DAY", "rollup": False},
    }
    source = {"type": "inline", "data": "\n".join(["time,dock", *rows])}
    io = {
        "type": "index_parallel",
        "inputSource": source,
        "inputFormat": {"type": "csv", "findColumnsFromHeader": True},
    }
    return _json(
        {
            "type": "index_parallel",
            **({"id": task_id} if task_id else {}),
            "spec": {
                "dataSchema": schema,
                "ioConfig": io,
                "tuningConfig": {"type": "index_parallel", **tuning},
            },
        }
    )


def noop(task_id: str) -> bytes:
    """Return a task that runs for a minute and does nothing."""
    return _json({"type": "noop", "id": task_id, "runTime": 60000})


def sql(datasource: str, query_id: str, *, partitioned: str = "PARTITIONED BY DAY") -> bytes:
    """Return a statement that replaces a datasource by two rows."""
    data = json.dumps(
        {"type": "inline", "data": "time,dock\n2026-03-01T00:00:00Z,A\n2026-03-01T01:00:00Z,B"}
    )
    how = json.dumps({"type": "csv", "findColumnsFromHeader": True})
    query = (
        f'REPLACE INTO "{datasource}" OVERWRITE ALL '  # noqa: S608  our own names
        f'SELECT TIME_PARSE("time") AS __time, "dock" '
        f"FROM TABLE(EXTERN('{data}', '{how}')) "
        f'EXTEND ("time" VARCHAR, "dock" VARCHAR) {partitioned}'
    )
    return _json({"query": query, "context": {"maxNumTasks": 2, "sqlQueryId": query_id}})


def kafka(datasource: str, *, task_count: int = 1, **more: Any) -> bytes:  # noqa: ANN401  JSON
    """Return a supervisor whose brokers nobody reaches."""
    io = {
        "topic": "contract",
        "inputFormat": {"type": "json"},
        "consumerProperties": {"bootstrap.servers": "127.0.0.1:1"},
        "taskCount": task_count,
        "taskDuration": "PT30M",
        "startDelay": "PT1S",
        "period": "PT5S",
    }
    schema = {
        "dataSource": datasource,
        "timestampSpec": {"column": "time", "format": "iso"},
        "dimensionsSpec": {"dimensions": ["dock"]},
        "granularitySpec": {"segmentGranularity": "DAY", "rollup": False},
    }
    tuning = {"type": "kafka", "shutdownTimeout": "PT1S"}
    spec = {"dataSchema": schema, "ioConfig": io, "tuningConfig": tuning}
    return _json({"type": "kafka", "spec": spec, **more})


def _json(what: object) -> bytes:
    return json.dumps(what).encode()

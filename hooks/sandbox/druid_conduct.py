"""How the double of Druid behaves: its version, what is down, who may do what.

All of it may be changed at any time, from any thread.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from hooks.sandbox.druid_replies import Document

Overlord = Literal["up", "starting", "down", "killed"]
Hadoop = Literal["runs", "disabled", "removed", "unknown"]

_OWN_IDS_SINCE = 34
_SKIPS_RESTARTS_SINCE = 33
_NO_HADOOP_SINCE = 37


@dataclass(frozen=True, slots=True)
class User:
    """A user and the permissions of the basic-security extension.

    Attributes:
        read, write: regular expressions of the datasources.
        external: may read what EXTERN names.
        config: may change the automatic compaction.
        state: may ask who leads.
    """

    password: str = field(repr=False)
    read: str = ".*"
    write: str = ".*"
    external: bool = True
    config: bool = True
    state: bool = True

    def may(self, action: Literal["read", "write"], datasource: str) -> bool:
        """Say whether a datasource may be read or written."""
        pattern = self.read if action == "read" else self.write
        return re.fullmatch(pattern, datasource) is not None


@dataclass(slots=True)
class Conduct:
    """What this Druid does, and what it fails at.

    Attributes:
        version: decides whether supervisors have ids of their own and may change their stream,
            and what becomes of Hadoop tasks.
        users: by name; none at all means that nobody is asked who he is.
        overlord: "starting" leads and is not ready, "down" was stopped, "killed" was not noticed.
        management_proxy: whether the Router forwards to Coordinator and Overlord.
        sql: whether the multi-stage-query extension is loaded.
        queue: how many tasks may run before the next is refused with 429.
        lingering: whether a task that is shut down runs on until it is told to end.
        creation_error: what the next supervisors throw when they are made; empty for nothing.
        hadoop: what becomes of index_hadoop; None: what the version says.
        seconds: after how many of them tasks and supervisors go on by themselves; None: never.
        now: seconds since 1970.
    """

    version: str = "33.0.0"
    users: dict[str, User] = field(default_factory=dict)
    overlord: Overlord = "up"
    management_proxy: bool = True
    sql: bool = True
    queue: int = 1_000_000
    lingering: bool = False
    creation_error: str = ""
    hadoop: Hadoop | None = None
    seconds: float | None = None
    now: Callable[[], float] = time.time

    @property
    def honours_ids(self) -> bool:
        """A supervisor may have an id besides its datasource, and keeps its stream for life."""
        return self._release >= _OWN_IDS_SINCE

    @property
    def skips_restarts(self) -> bool:
        """An unchanged supervisor can be sent again without a restart."""
        return self._release >= _SKIPS_RESTARTS_SINCE

    @property
    def hadoop_tasks(self) -> Hadoop:
        """What becomes of an index_hadoop task."""
        if self.hadoop:
            return self.hadoop
        if self._release >= _NO_HADOOP_SINCE:
            return "removed"
        return "disabled" if self._release >= _OWN_IDS_SINCE else "runs"

    def time(self) -> str:
        """Return now as Druid writes it."""
        text = datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")
        return text.replace("+00:00", "Z")

    def due(self, since: float) -> bool:
        """Say whether something that began then has gone on by itself."""
        return self.seconds is not None and self.now() - since >= self.seconds

    @property
    def _release(self) -> int:
        return int(self.version.split(".")[0])


@dataclass(frozen=True, slots=True)
class Submission:
    """A specification that this Druid took, with the id under which it did."""

    endpoint: Literal["task", "sql", "supervisor"]
    id: str
    document: Document = field(repr=False)

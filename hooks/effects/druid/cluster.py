"""One Druid cluster, as one request may use it: the port, path by path.

A 404 means "there is none" only in Druid's own words; any other is a Router that does not forward,
and a client that took it for absence would submit again what runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import simplejson

from hooks.core.errors import EffectError
from hooks.effects.druid import reports, states
from hooks.effects.druid.asking import SHORT, Asker, Question, not_found, part
from hooks.effects.druid.submitting import PATHS, RIGHTS, submitted, taken, written
from hooks.effects.druid.text import document, string, value
from hooks.effects.druid.transport import Reply
from hooks.effects.druid.trust import SYSTEM
from hooks.effects.ports.druid import (
    Answer,
    Document,
    DruidUnavailable,
    Endpoint,
    ProtocolError,
    Report,
    Supervisor,
    Task,
)

_TASK, _SUPERVISOR = "/druid/indexer/v1/task/", "/druid/indexer/v1/supervisor/"
_COMPACTION = "/druid/coordinator/v1/config/compaction"
_RULES = "/druid/coordinator/v1/rules/"
_READ, _WRITE = "DATASOURCE READ", "DATASOURCE WRITE"
_BAD_REQUEST, _NOT_FOUND, _THROWN = 400, 404, 500
_NONE = (
    b"Cannot find any task with id",
    b"Cannot find any supervisor with id",
    b"No task reports were found",
    b"No history for [",
)
_TOMBSTONES = frozenset({"noop", "NoopSupervisorSpec"})


class DruidCluster:
    """The port `Cluster` over HTTP."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def version(self) -> str:
        """Read the Router's version."""
        found = string((self._read("/status", "STATE READ") or {}).get("version"))
        if not found:
            raise ProtocolError(SYSTEM, "it does not say its version")
        return found

    def submit(self, endpoint: Endpoint, body: bytes, *, id: str = "") -> Answer:  # noqa: A002  the port's
        """Send a specification, once."""
        question = Question("POST", PATHS[endpoint], RIGHTS[endpoint], body, SHORT)
        return submitted(endpoint, self._asker.ask(question), id)

    def task(self, id: str) -> Task | None:  # noqa: A002  the port's
        """Read a task's state."""
        shown = self._read(f"{_TASK}{part(id)}/status", _READ)
        return states.task(shown) if shown is not None else None

    def payload(self, id: str) -> Document | None:  # noqa: A002  the port's
        """Read a task as Druid holds it."""
        shown = self._read(f"{_TASK}{part(id)}", _READ)
        if shown is None or ("payload" in shown and shown["payload"] is None):
            return None
        if not isinstance(shown.get("payload"), dict):
            raise ProtocolError(SYSTEM, "no task came back")
        return _object(shown["payload"])

    def report(self, id: str) -> Report | None:  # noqa: A002  the port's
        """Read an ended task's report; one that is too long has no counts and no errors."""
        reply = self._asker.ask(Question("GET", f"{_TASK}{part(id)}/reports", _READ))
        if taken(reply) and not reply.whole:
            return Report()
        shown = _found(reply)
        return reports.report(shown) if shown is not None else None

    def shut_down(self, id: str) -> None:  # noqa: A002  the port's
        """Ask a task to end."""
        self._tell(f"{_TASK}{part(id)}/shutdown")

    def supervisor(self, id: str) -> Supervisor | None:  # noqa: A002  the port's
        """Read a supervisor's state."""
        shown = self._read(f"{_SUPERVISOR}{part(id)}/status", _READ)
        return states.supervisor(shown) if shown is not None else None

    def supervisor_spec(self, id: str) -> Document | None:  # noqa: A002  the port's
        """Read a supervisor's specification as Druid holds it."""
        shown = self._read(f"{_SUPERVISOR}{part(id)}", _READ)
        if shown is not None and not string(shown.get("type")):
            raise ProtocolError(SYSTEM, "no supervisor came back")
        return shown

    def past_specs(self, id: str) -> tuple[Document, ...]:  # noqa: A002  the port's
        """Read the specifications that a supervisor had, newest first."""
        reply = self._asker.ask(Question("GET", f"{_SUPERVISOR}{part(id)}/history", _READ))
        if not taken(reply) and _found(reply) is None:
            return ()
        specs = [_object(one).get("spec") for one in _list(reply)]
        return tuple(
            spec for spec in specs if isinstance(spec, dict) and spec.get("type") not in _TOMBSTONES
        )

    def suspend(self, id: str) -> None:  # noqa: A002  the port's
        """Suspend a supervisor."""
        self._tell(f"{_SUPERVISOR}{part(id)}/suspend", done="already suspended")

    def resume(self, id: str) -> None:  # noqa: A002  the port's
        """Resume a supervisor."""
        self._tell(f"{_SUPERVISOR}{part(id)}/resume", done="already running")

    def terminate(self, id: str) -> None:  # noqa: A002  the port's
        """End a supervisor."""
        self._tell(f"{_SUPERVISOR}{part(id)}/terminate")

    def compaction(self, datasource: str) -> Document | None:
        """Read the automatic compaction of a datasource.

        All are read: for a datasource that has none the 404 of older Druids is empty, as is that
        of a Router which does not forward.
        """
        configs = (self._read(_COMPACTION, "CONFIG READ") or {}).get("compactionConfigs")
        if not isinstance(configs, list):
            raise ProtocolError(SYSTEM, "no list of compaction configurations came back")
        return next((one for one in configs if _object(one).get("dataSource") == datasource), None)

    def set_compaction(self, config: Mapping[str, object]) -> Answer:
        """Write the automatic compaction of a datasource."""
        question = Question("POST", _COMPACTION, "CONFIG WRITE", _json(config), SHORT)
        return written(self._asker.ask(question), string(config.get("dataSource")))

    def delete_compaction(self, datasource: str) -> None:
        """Remove the automatic compaction of a datasource; any 404 is success as well."""
        path = f"{_COMPACTION}/{part(datasource)}"
        reply = self._asker.ask(Question("DELETE", path, "CONFIG WRITE", limit=SHORT))
        if not taken(reply) and reply.status != _NOT_FOUND:
            raise _unexpected(reply)

    def rules(self, datasource: str) -> list[Document]:
        """Read the retention rules of a datasource."""
        reply = self._asker.ask(Question("GET", f"{_RULES}{part(datasource)}", _READ))
        if reply.status == _NOT_FOUND:
            raise not_found(reply)
        return [_object(one) for one in _list(reply)]

    def set_rules(self, datasource: str, rules: Sequence[Mapping[str, object]]) -> Answer:
        """Write the retention rules of a datasource."""
        path = f"{_RULES}{part(datasource)}"
        question = Question("POST", path, _WRITE, _json(list(rules)), SHORT)
        return written(self._asker.ask(question), datasource)

    def _read(self, path: str, right: str) -> Document | None:
        return _found(self._asker.ask(Question("GET", path, right)))

    def _tell(self, path: str, *, done: str = "") -> None:
        """Have something ended or changed; `done` is how Druid says that it is so already.

        Without it, a task or supervisor that is not there is as it should be.
        """
        reply = self._asker.ask(Question("POST", path, _WRITE, b"", SHORT))
        if taken(reply):
            return
        if reply.status == _NOT_FOUND and _found(reply) is None:
            if done:
                raise DruidUnavailable(SYSTEM, "the supervisor is gone: look again", code="404")
            return
        told = string((document(reply) or {}).get("error"))
        if not (done and reply.status == _BAD_REQUEST and told.endswith(done)):
            raise _unexpected(reply)


def _found(reply: Reply) -> Document | None:
    """Return the object of a good answer; None when Druid says that there is none."""
    shown = document(reply)
    if taken(reply) and shown is not None:
        return shown
    if reply.status == _NOT_FOUND:
        if _says_none(reply, shown):
            return None
        raise not_found(reply)
    raise _unexpected(reply)


def _says_none(reply: Reply, shown: Document | None) -> bool:
    if any(words in reply.content for words in _NONE):
        return True
    if shown is None:
        return False
    null = "task" in shown and shown.get("status") is None and shown.get("payload") is None
    return null or "does not exist" in string(shown.get("error"))


def _unexpected(reply: Reply) -> EffectError:
    code = str(reply.status)
    if reply.status == _THROWN:
        return DruidUnavailable(SYSTEM, "it failed inside", code=code)
    return ProtocolError(SYSTEM, "the answer is none of Druid's: check the Router", code=code)


def _list(reply: Reply) -> list[Any]:
    found = value(reply)
    if not taken(reply) or not isinstance(found, list):
        raise _unexpected(reply)
    return found


def _object(found: object) -> Document:
    if not isinstance(found, dict):
        raise ProtocolError(SYSTEM, "no list of objects came back")
    return found


def _json(what: object) -> bytes:
    return simplejson.dumps(what, use_decimal=True, ensure_ascii=False).encode()

"""The paths of the double of Druid: who may ask, who answers, and what a task or supervisor is.

Idea: one request in, one reply out, no sockets. The order of the refusals is that of a real
Router and Overlord: login, leader, media type, JSON, type, permission.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hooks.sandbox import druid_specs as specs
from hooks.sandbox import druid_sql
from hooks.sandbox.druid_conduct import Conduct, Submission, User
from hooks.sandbox.druid_coordinator import Coordinator
from hooks.sandbox.druid_login import who
from hooks.sandbox.druid_replies import (
    Document,
    Refusal,
    Reply,
    error,
    given,
    page,
    plain,
    thrown,
)
from hooks.sandbox.druid_supervisors import Supervisors, unknown_type
from hooks.sandbox.druid_tasks import Tasks, unknown

_TASK = "org.apache.druid.indexing.common.task.Task"
_TYPES = ("compact", "index", "index_hadoop", "index_parallel", "kill", "noop")
_ONE = re.compile(r"/druid/indexer/v1/(task|supervisor)/([^/]+)(?:/([a-z]+))?")
_PARSE = "javax.servlet.ServletException: com.fasterxml.jackson.core.JsonParseException"
_NULL = 'java.lang.NullPointerException: Cannot invoke "getDestinationResource()"'
_OPEN = frozenset({"/status/health", "/status/ready"})


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; the path's parts are still percent-encoded."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


class Api:
    """A Druid behind its REST API."""

    def __init__(self, conduct: Conduct) -> None:
        self.conduct = conduct
        self.tasks = Tasks(conduct)
        self.supervisors = Supervisors(conduct)
        self.coordinator = Coordinator()
        self.submissions: list[Submission] = []

    def answer(self, request: Request) -> Reply:
        """Return what a Router would answer."""
        self.tasks.go_on()
        self.supervisors.go_on()
        try:
            if request.path in _OPEN:
                return given(True)  # noqa: FBT003  the whole body
            user = who(self.conduct.users, request.headers.get("Authorization", ""))
            return self._routed(request, user)
        except Refusal as refusal:
            return refusal.reply

    def _routed(self, request: Request, user: User | None) -> Reply:
        match (request.method, request.path):
            case ("GET", "/status"):
                return given({"version": self.conduct.version, "modules": [], "memory": {}})
            case ("GET", "/proxy/enabled"):
                return given({"enabled": self.conduct.management_proxy})
            case ("POST", "/druid/v2/sql/task"):
                _check_media_type(request)
                reply = druid_sql.submit(self.conduct, self.tasks, user, request.body)
                return self._noted("sql", request, reply, "taskId")
            case _:
                return self._forwarded(request, user)

    def _forwarded(self, request: Request, user: User | None) -> Reply:
        """Answer what a Router hands on to Coordinator and Overlord."""
        if request.path.startswith(("/druid/indexer/", "/druid/coordinator/")):
            self._check_leader(request.path)
            return self._managed(request, user)
        return Reply(404)

    def _managed(self, request: Request, user: User | None) -> Reply:
        match (request.method, request.path):
            case ("GET", "/druid/indexer/v1/leader" | "/druid/coordinator/v1/leader"):
                if user and not user.state:
                    return _forbidden()
                return plain(200, "http://127.0.0.1:8081")
            case ("POST", "/druid/indexer/v1/task"):
                reply = self._submit_task(request, user)
                return self._noted("task", request, reply, "task")
            case ("POST", "/druid/indexer/v1/supervisor"):
                reply = self._submit_supervisor(request, user)
                return self._noted("supervisor", request, reply, "id")
            case _:
                pass
        if match := _ONE.fullmatch(request.path):
            return self._one(request, user, match)
        return self.coordinator.answer(request.method, request.path, user, request.body)

    def _one(self, request: Request, user: User | None, match: re.Match[str]) -> Reply:
        named, what = specs.decoded(match[2]), match[3] or ""
        action: Literal["read", "write"] = "read" if request.method == "GET" else "write"
        if match[1] == "task":
            if named not in self.tasks:
                return unknown(named)
            if user and not user.may(action, self.tasks[named].datasource):
                return _forbidden()
            return self.tasks.answer(request.method, named, what)
        if user and not user.may(action, self.supervisors.datasource(named)):
            return _forbidden()
        return self.supervisors.answer(request.method, named, what)

    def _submit_task(self, request: Request, user: User | None) -> Reply:
        document = _document(request, _TASK)
        if document is None:
            return thrown(_NULL)
        kind, datasource = str(document["type"]), specs.datasource(document)
        types = [known for known in _TYPES if known != "index_hadoop" or self._knows_hadoop]
        if kind not in types:
            return unknown_type(kind, _TASK, types)
        if kind == "noop":
            datasource = datasource or "none"
        specs.check_id("dataSource", datasource, within="org.apache.druid.segment.DataSchema")
        stamp = self.conduct.time()
        named = document.get("id") or f"{kind}_{datasource}_{len(self.tasks):08d}_{stamp}"
        specs.check_id(
            "task ID", named, within="org.apache.druid.indexing.common.task.AbstractTask"
        )
        _check_input(kind, document)
        if user and not user.may("write", datasource):
            return _forbidden()
        payload = {**document, "id": named, "groupId": named, "dataSource": datasource}
        self.tasks.add(named, kind, datasource, payload)
        return given({"task": named})

    def _submit_supervisor(self, request: Request, user: User | None) -> Reply:
        document = _document(
            request, "org.apache.druid.indexing.overlord.supervisor.SupervisorSpec"
        )
        if document is None:
            return thrown(_NULL)
        if user and not user.may("write", specs.datasource(document)):
            return _forbidden()
        skips = request.query.get("skipRestartIfUnmodified") == "true"
        return self.supervisors.submit(document, skip_unmodified=skips)

    @property
    def _knows_hadoop(self) -> bool:
        return self.conduct.hadoop_tasks != "unknown"

    def _noted(
        self,
        endpoint: Literal["task", "sql", "supervisor"],
        request: Request,
        reply: Reply,
        key: str,
    ) -> Reply:
        """Write down a submission that was taken."""
        if reply.status in (200, 202):
            answer, document = json.loads(reply.body), json.loads(request.body)
            if isinstance(answer, dict):
                self.submissions.append(Submission(endpoint, answer[key], document))
        return reply

    def _check_leader(self, path: str) -> None:
        if not self.conduct.management_proxy:
            raise Refusal(Reply(404))
        match self.conduct.overlord:
            case "starting":
                raise Refusal(Reply(503))
            case "down":
                text = f"Unable to determine destination[{path}]; "
                body = json.dumps({"error": f"{text}is your coordinator/overlord running?"})
                raise Refusal(Reply(503, body.encode()))
            case "killed":
                raise Refusal(page(502, "Bad Gateway"))
            case "up":
                pass


def _document(request: Request, known_as: str) -> Document | None:
    """Return the JSON object that was sent; None for nothing and for null."""
    _check_media_type(request)
    if not request.body.strip():
        return None
    try:
        found: Any = json.loads(request.body)
    except (ValueError, RecursionError) as wrong:
        raise Refusal(thrown(f"{_PARSE}: {wrong}")) from wrong
    if found is None:
        return None
    if not isinstance(found, dict) or "type" not in found:
        text = f"Could not resolve subtype of [simple type, class {known_as}]"
        raise Refusal(error(400, f"{text}: missing type id property 'type'"))
    return found


def _check_media_type(request: Request) -> None:
    if not request.headers.get("Content-Type", "").startswith("application/json"):
        raise Refusal(Reply(415))


def _check_input(kind: str, document: Document) -> None:
    inside = document.get("spec")
    io = inside.get("ioConfig") if isinstance(inside, dict) else None
    if kind == "index_parallel" and not (isinstance(io, dict) and io.get("inputSource")):
        name = "org.apache.druid.indexing.common.task.batch.parallel.ParallelIndexIngestionSpec"
        text = f"Cannot construct instance of `{name}`, problem: inputSource must not be null"
        raise Refusal(error(400, text))


def _forbidden() -> Reply:
    return given({"Access-Check-Result": "Unauthorized"}, status=403)

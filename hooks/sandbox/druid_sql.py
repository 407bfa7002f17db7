"""SQL-based ingestion at the double of Druid: a statement becomes a task, or a refusal.

Idea: the statement is not parsed. Its first word, its target and its PARTITIONED BY decide, which
is what the answers that clients meet depend on.
"""

from __future__ import annotations

import json
import re
import uuid

from hooks.sandbox.druid_conduct import Conduct, User
from hooks.sandbox.druid_replies import Document, Refusal, Reply, exception, given
from hooks.sandbox.druid_tasks import SQL, SimulatedTask, Tasks

_TARGET = re.compile(r'\s*(INSERT|REPLACE)\s+INTO\s+("(?:[^"]|"")+"|\w+)', re.IGNORECASE)
_QUERY = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
_PARTITIONED = re.compile(r"\bPARTITIONED\s+BY\b", re.IGNORECASE)
_EXTERN = re.compile(r"\bEXTERN\s*\(", re.IGNORECASE)
_NO_LEADER = (
    "org.apache.druid.rpc.ServiceNotAvailableException: Service [overlord] is not available"
)
_DEVELOPER = {"category": "UNCATEGORIZED", "persona": "DEVELOPER"}


def submit(conduct: Conduct, tasks: Tasks, user: User | None, body: bytes) -> Reply:
    """Answer POST /druid/v2/sql/task."""
    if not conduct.sql:
        return Reply(405)
    document = _parsed(body)
    query, context = document["query"], document.get("context") or {}
    chosen = str(context.get("sqlQueryId") or uuid.uuid4())
    if _EXPLAIN.match(query):
        return given([{"PLAN": "[]", "RESOURCES": "[]", "ATTRIBUTES": "{}"}])
    target = _target(query, chosen)
    _authorize(user, target, query)
    if conduct.overlord != "up":
        return _failed(500, chosen, _NO_LEADER, **_DEVELOPER)
    task = _begun(tasks, chosen, target, document)
    return given({"taskId": task.id, "state": "RUNNING"}, status=202)


def _begun(tasks: Tasks, chosen: str, target: str, document: Document) -> SimulatedTask:
    task_id = f"query-{chosen}"
    payload = {
        "type": SQL,
        "id": task_id,
        "sqlQuery": document["query"],
        "sqlQueryContext": {**(document.get("context") or {}), "sqlQueryId": chosen},
        "groupId": task_id,
        "dataSource": target,
    }
    try:
        return tasks.add(task_id, SQL, target, payload)
    except Refusal as refusal:
        # The Broker quotes the Overlord.
        quoted = f"[{refusal.reply.status} Bad Request]; body: {refusal.reply.body.decode()}"
        text = f"org.apache.druid.rpc.HttpResponseException: Server error {quoted}"
        raise Refusal(_failed(500, chosen, text, **_DEVELOPER)) from refusal


def _parsed(body: bytes) -> Document:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Refusal(
            _unknown(str(error), "com.fasterxml.jackson.core.JsonParseException")
        ) from error
    if not isinstance(document, dict) or not isinstance(document.get("query"), str):
        text = "Cannot construct instance of `org.apache.druid.sql.http.SqlQuery`, problem: query"
        raise Refusal(
            _unknown(text, "com.fasterxml.jackson.databind.exc.ValueInstantiationException")
        )
    return document


def _target(query: str, chosen: str) -> str:
    match = _TARGET.match(query)
    if match is None:
        if _QUERY.match(query):
            return "__query_select"
        text = "Unable to parse the SQL, unrecognized error from calcite: [not a statement]"
        raise Refusal(_failed(500, chosen, text, **_DEVELOPER))
    if not _PARTITIONED.search(query):
        operation = match[1].upper()
        text = f"Operation [{operation}] requires a PARTITIONED BY to be explicitly defined"
        raise Refusal(_failed(400, chosen, f"{text}, but none was found.", code="invalidInput"))
    return match[2].strip('"').replace('""', '"')


def _authorize(user: User | None, target: str, query: str) -> None:
    if user is None:
        return
    if not user.may("write", target) or (_EXTERN.search(query) and not user.external):
        raise Refusal(_failed(403, "forbidden", "Unauthorized", category="FORBIDDEN"))


def _failed(status: int, query_id: str, text: str, **how: str) -> Reply:
    """Answer a refusal; its taskId is a query's and no task's."""
    return given(
        {"taskId": query_id, "state": "FAILED", "error": exception(text, **how)}, status=status
    )


def _unknown(text: str, kind: str) -> Reply:
    shown = {"error": "Unknown exception", "errorMessage": text, "errorClass": kind, "host": None}
    return given(shown, status=400)

"""What Druid says to a specification: taken, refused for its content, or neither.

Refusals come with 400 and, for JSON that cannot be read and for supervisors that cannot be made,
with 500. A 500 that tells of trouble between Druid's own processes says nothing about the
specification.
"""

from __future__ import annotations

from hooks.effects.druid.asking import NO_SQL, not_found
from hooks.effects.druid.text import document, readable, string, title
from hooks.effects.druid.transport import Reply
from hooks.effects.druid.trust import SYSTEM
from hooks.effects.ports.druid import Answer, DruidUnavailable, Endpoint, ProxyDisabled

PATHS: dict[Endpoint, str] = {
    "task": "/druid/indexer/v1/task",
    "sql": "/druid/v2/sql/task",
    "supervisor": "/druid/indexer/v1/supervisor?skipRestartIfUnmodified=true",
}
RIGHTS: dict[Endpoint, str] = {
    "task": "DATASOURCE WRITE",
    "sql": "DATASOURCE WRITE, and EXTERNAL READ for EXTERN",
    "supervisor": "DATASOURCE WRITE",
}
_IDS: dict[Endpoint, str] = {"task": "task", "sql": "taskId", "supervisor": "id"}
_OK, _FIRST_REDIRECT = 200, 300
_NOT_FOUND, _NOT_ALLOWED, _THROWN = 404, 405, 500
_TROUBLE = (
    "ServiceNotAvailableException",
    "ServiceClosedException",
    "UnableToObtainConnectionException",
    "java.net.ConnectException",
    "java.util.concurrent.TimeoutException",
    "Encountered metadata exception",
)


def taken(reply: Reply) -> bool:
    """Say whether Druid says yes."""
    return _OK <= reply.status < _FIRST_REDIRECT


def submitted(endpoint: Endpoint, reply: Reply, chosen: str) -> Answer:
    """Return what the answer to a submission says.

    Raises:
        EffectError: nobody who could judge it has seen it.
    """
    if endpoint == "sql" and reply.status in {_NOT_FOUND, _NOT_ALLOWED}:
        raise ProxyDisabled(SYSTEM, NO_SQL, code=str(reply.status))
    if taken(reply):
        named = string((document(reply) or {}).get(_IDS[endpoint]))
        return Answer(reply.status, named or None, readable(reply))
    return _refused(reply, exists=bool(chosen) and f"[{chosen}] already exists" in _unquoted(reply))


def written(reply: Reply, datasource: str) -> Answer:
    """Return what the answer to a configuration of a datasource says.

    Older Coordinators refuse with an empty 500 what they cannot read, which could as well be
    trouble of theirs.

    Raises:
        EffectError: nobody who could judge it has seen it, or nobody can tell.
    """
    if taken(reply):
        return Answer(reply.status, datasource, readable(reply))
    if reply.status == _THROWN and not reply.content:
        text = "it failed inside, or cannot read what was sent: see the Coordinator's log"
        raise DruidUnavailable(SYSTEM, text, code=str(reply.status))
    return _refused(reply)


def _refused(reply: Reply, *, exists: bool = False) -> Answer:
    if reply.status == _NOT_FOUND:
        raise not_found(reply)
    text = readable(reply)
    if reply.status == _THROWN and not _is_druids(reply, text):
        raise DruidUnavailable(SYSTEM, "it failed inside", code=str(reply.status))
    return Answer(reply.status, None, text, exists)


def _is_druids(reply: Reply, text: str) -> bool:
    """Say whether a 500 is Druid's judgement of what was sent."""
    shown = document(reply) is not None or title(reply).startswith("Error 500 ")
    return shown and not any(name in text for name in _TROUBLE)


def _unquoted(reply: Reply) -> str:
    """Return all strings of the answer, without JSON's quoting."""
    found: list[object] = [document(reply)]
    strings = []
    while found:
        one = found.pop()
        if isinstance(one, dict):
            found.extend(one.values())
        elif isinstance(one, str):
            strings.append(one)
    return "\n".join(strings)

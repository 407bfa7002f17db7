"""A task and a supervisor as Druid shows them, as values."""

from __future__ import annotations

from typing import Any, get_args

from hooks.effects.druid.text import string, traceless
from hooks.effects.druid.trust import SYSTEM
from hooks.effects.ports.druid import ProtocolError, Supervisor, Task, TaskState


def task(shown: dict[str, Any]) -> Task | None:
    """Return the task of GET /task/{id}/status; None when it shows that there is none.

    Raises:
        ProtocolError: it shows something else.
    """
    status = shown.get("status")
    if "task" in shown and status is None:
        return None
    if not isinstance(status, dict) or not string(status.get("id")):
        raise ProtocolError(SYSTEM, "no task's status came back")
    duration = status.get("duration")
    return Task(
        id=status["id"],
        state=_state(status),
        type=string(status.get("type")),
        datasource=string(status.get("dataSource")),
        error=traceless(string(status.get("errorMsg"))),
        created=string(status.get("createdTime")),
        # Druid writes -1 for what it does not know.
        duration_ms=duration if isinstance(duration, int) and duration >= 0 else None,
    )


def supervisor(shown: dict[str, Any]) -> Supervisor:
    """Return the supervisor of GET /supervisor/{id}/status.

    Raises:
        ProtocolError: it shows something else.
    """
    payload = shown.get("payload")
    if not isinstance(payload, dict) or not string(shown.get("id")):
        raise ProtocolError(SYSTEM, "no supervisor's status came back")
    healthy = payload.get("healthy")
    return Supervisor(
        id=shown["id"],
        state=string(payload.get("state")),
        detailed_state=string(payload.get("detailedState")),
        healthy=healthy if isinstance(healthy, bool) else None,
        suspended=payload.get("suspended") is True,
        datasource=string(payload.get("dataSource")),
        stream=string(payload.get("stream")),
        errors=_errors(payload.get("recentErrors")),
    )


def _state(status: dict[str, Any]) -> TaskState:
    found = status.get("statusCode", status.get("status"))
    for state in get_args(TaskState):
        if found == state:
            return state  # type: ignore[no-any-return]  # one of the literals
    raise ProtocolError(SYSTEM, "a task is in a state that is none of Druid's")


def _errors(recent: object) -> tuple[str, ...]:
    """Return the messages newest first; Druid lists the oldest first."""
    events = recent if isinstance(recent, list) else []
    messages = [traceless(string(one.get("message"))) for one in events if isinstance(one, dict)]
    return tuple(message for message in reversed(messages) if message)

"""What a Job says about its end, in its Pod's termination message.

The message is small JSON, written by the Job's program and read by the hook. It holds a code and
a line, and no word of the SQL.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

from hooks.core.errors import EffectError
from hooks.effects.ports.pods import OutcomeUnknown, ScriptFailed

Result = Literal["applied", "failed", "unknown", "again"]

EXIT_CODES: dict[Result, int] = {"applied": 0, "failed": 1, "unknown": 1, "again": 75}

_SQLSTATE = re.compile(r"[0-9A-Z]{5}\Z")
_MAX_DETAIL = 512


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended.

    Attributes:
        result: "again" means that nothing was executed; "unknown" that all may have been.
        detail: for people.
        sqlstate: of the statement that failed, empty when there is none.
        line: on which that statement ends, 0 when it is not known.
    """

    result: Result
    detail: str
    sqlstate: str = ""
    line: int = 0

    def write(self) -> str:
        """Return it as a termination message, which Kubernetes cuts off at 4 KiB."""
        short = replace(self, detail=self.detail[:_MAX_DETAIL])
        return json.dumps(asdict(short), separators=(",", ":"))


def of(error: EffectError) -> Outcome:
    """Say what an error means."""
    if isinstance(error, ScriptFailed | OutcomeUnknown):
        result: Result = "failed" if isinstance(error, ScriptFailed) else "unknown"
        return Outcome(result, error.detail, error.code or "", error.line or 0)
    return Outcome("again", str(error))


def read(message: object) -> Outcome | None:
    """Read a termination message, None when it is none of ours."""
    try:
        found = json.loads(message) if isinstance(message, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("result") not in get_args(Result):
        return None
    sqlstate, line = str(found.get("sqlstate")), found.get("line")
    return Outcome(
        result=found["result"],
        detail=str(found.get("detail"))[:_MAX_DETAIL],
        sqlstate=sqlstate if _SQLSTATE.match(sqlstate) else "",
        line=line if isinstance(line, int) else 0,
    )

"""Call a hook as Metacontroller does.

Idea: a status other than 200 fails the sync; what a 200 says is read by runner_answer.py.

Limits: a time-out counts each wait for bytes, not the whole call; redirects are not
followed, and a Retry-After that is a date counts as none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import requests

from hooks.sandbox import runner_answer
from hooks.sandbox.runner_state import SyncError, TooManyRequests

if TYPE_CHECKING:
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.runner_answer import Decoration, Reply
    from hooks.sandbox.runner_config import Hook, HookName
    from hooks.sandbox.runner_state import Faults

_TOO_MANY, _OK = 429, 200


@dataclass(frozen=True, slots=True)
class Connection:
    """How the hooks are reached.

    Attributes:
        base_url: replaces scheme, host and port of every hook; empty to use what manifests say.
        token: the bearer token; empty for none.
        ca_file: who signed the server's certificate; None for those that the system trusts.
    """

    base_url: str = ""
    token: str = field(default="", repr=False)
    ca_file: Path | None = None


class Webhooks:
    """The HTTP client of a runner."""

    def __init__(self, connection: Connection, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def reply(self, name: HookName, hook: Hook, request: Manifest) -> Reply:
        """Call sync or finalize of a CompositeController.

        Raises:
            SyncError: There is no usable answer.
            TooManyRequests: The answer is 429.
            RunnerCrashed: A child is null.
        """
        return runner_answer.reply(name, self._body(name, hook, request), strict=hook.strict)

    def decoration(self, name: HookName, hook: Hook, request: Manifest) -> Decoration:
        """Call sync or finalize of a DecoratorController.

        Raises:
            SyncError: There is no usable answer.
            TooManyRequests: The answer is 429.
            RunnerCrashed: An attachment is null.
        """
        return runner_answer.decoration(name, self._body(name, hook, request), strict=hook.strict)

    def rules(self, hook: Hook, request: Manifest) -> list[Manifest]:
        """Call customize.

        Raises:
            SyncError: There is no usable answer.
            TooManyRequests: The answer is 429.
            RunnerCrashed: A rule is null.
        """
        return runner_answer.rules(self._body("customize", hook, request), strict=hook.strict)

    def _body(self, name: HookName, hook: Hook, request: Manifest) -> bytes:
        body = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
        if self._faults.take("duplicate_call"):
            self._post(hook, body)
        answer = self._post(hook, body)
        if self._faults.take("lost_answer"):
            raise SyncError(f"{name} hook failed: http error: Client.Timeout exceeded")
        if answer.status_code == _TOO_MANY:
            raise TooManyRequests(_retry_after(answer.headers.get("Retry-After", "")))
        if answer.status_code != _OK:
            raise SyncError(
                f"{name} hook failed: unsupported status code: {answer.status_code} "
                f"body: {answer.text}"
            )
        return answer.content

    def _post(self, hook: Hook, body: bytes) -> requests.Response:
        headers = {"Content-Type": "application/json"}
        if self._connection.token:
            headers["Authorization"] = f"Bearer {self._connection.token}"
        url = (self._connection.base_url or hook.address).rstrip("/") + hook.path
        ca_file = self._connection.ca_file
        with requests.Session() as session:
            # Neither a proxy nor a .netrc of whoever runs this has a say.
            session.trust_env = False
            try:
                return session.post(
                    url,
                    data=body,
                    headers=headers,
                    timeout=hook.timeout,
                    verify=str(ca_file) if ca_file else True,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                raise SyncError(f"http error: Post {url}: {type(error).__name__}") from error


def _retry_after(text: str) -> float:
    """Read seconds; anything else is now, so the caller loops."""
    try:
        return float(int(text))
    except ValueError:
        return 0.0

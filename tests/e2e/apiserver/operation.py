"""An installation at work: everything that the manifests describe, as processes on this machine.

Real: the control plane, PostgreSQL, OpenBao with its Kubernetes auth, the program under its own
ServiceAccount. Doubles, unless a real program is given: Metacontroller and External Secrets.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from hooks.core.manifests import Manifest
from tests.app.running import until
from tests.e2e.apiserver import others, pod
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.installation import NAMESPACE, Installation

GROUP = "database.ddupan.top"
_looks = count(1)


@dataclass(frozen=True)
class Operation:
    """An installation at work."""

    installation: Installation
    pod: pod.Pod

    @property
    def administrator(self) -> Administrator:
        """Return who may do everything."""
        return self.installation.administrator

    def secret(self, namespace: str, name: str) -> dict[str, str]:
        """Return the decoded values of a Secret."""
        found = self.administrator.get("secret", name, "-n", namespace)
        return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}

    def get(self, kind: str, name: str, namespace: str = "default") -> Manifest:
        """Return an object."""
        return self.administrator.get(f"{kind}/{name}", "-n", namespace)

    def syncs(self, name: str) -> int:
        """Return how many calls of `sync` for an object the program has answered."""
        calls = [json.loads(line) for line in self.pod.lines().splitlines() if '"hook"' in line]
        return sum(call.get("name") == name and call.get("hook") == "sync" for call in calls)

    def status_writes(self) -> int:
        """Return how often somebody wrote a status of our kinds, changed or not."""
        asked = self.installation.control_plane.audited()
        return sum(
            event["verb"] == "update"
            and event["objectRef"].get("subresource") == "status"
            and event["objectRef"].get("apiGroup") == GROUP
            for event in asked
            if "objectRef" in event
        )

    def looks_again(self, kind: str, name: str, namespace: str = "default") -> None:
        """Have an object looked at, as the manual says, and wait for the answer."""
        before = self.syncs(name)
        words = (kind, name, "-n", namespace, f"look={next(_looks)}", "--overwrite")
        self.administrator.kubectl("annotate", *words)
        until(lambda: self.syncs(name) > before)

    def becomes_ready(self, kind: str, name: str, namespace: str = "default") -> Manifest:
        """Wait as the manual says, and return the object."""
        words = ("-n", namespace, f"{kind}/{name}", "--for=condition=Ready", "--timeout=60s")
        self.administrator.kubectl("wait", *words)
        return self.get(kind, name, namespace)


@contextmanager
def operating(made: Installation) -> Iterator[Operation]:
    """Run what the installation describes: the program, Metacontroller, External Secrets."""
    directory = Path(mkdtemp(prefix="running-", dir=made.directory))
    who = made.administrator
    deployment = who.get("deployment", NAMESPACE, "-n", NAMESPACE)
    with (
        pod.running(deployment, directory, made) as program,
        others.metacontroller(made, directory),
        others.external_secrets(made, directory),
    ):
        yield Operation(made, program)

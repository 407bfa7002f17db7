"""databaseInitSQL on a real API server, where a test plays Patroni, PGO and the kubelet.

Nothing runs in the Pods: how a Job ends, the test writes into its Pod's status. What follows from
it is for the real Job controller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.initsql.model import APPLIED, STATE, Mode
from hooks.initsql.outcome import EXIT_CODES, Outcome
from tests.app.running import until
from tests.docs.pages import ROOT
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.apiserver.init_sql_objects import (
    LABEL,
    TEAM,
    config_map,
    instance,
    postgres_cluster,
    running,
)

_beats = count(1)


@dataclass(frozen=True)
class World:
    """One way to install at work."""

    mode: Mode
    who: Administrator
    control_plane: ControlPlane
    directory: Path

    def ask(self, name: str, sql: str) -> Manifest:
        """Let a cluster with one running instance ask for SQL; return the cluster."""
        self.start(name)
        return self.wants(name, sql)

    def start(self, name: str) -> None:
        """Make the one instance of a cluster, running."""
        self.who.apply(instance(name))
        self._says("pod", f"{name}-00-0", running())

    def wants(self, name: str, sql: str) -> Manifest:
        """Make a cluster that asks for SQL, and return it."""
        self.write(name, sql)
        self.who.apply(postgres_cluster(name, self.mode))
        return self.cluster(name)

    def write(self, name: str, sql: str) -> None:
        """Write the SQL into the cluster's ConfigMap."""
        self.who.apply(config_map(name, sql))

    def cluster(self, name: str) -> Manifest:
        return self.who.get(f"postgrescluster/{name}", "-n", TEAM)

    def told(self, name: str) -> str:
        """Return what is told to people, as one text."""
        found = self.cluster(name)
        if self.mode == "decorator":
            return manifests.annotations(found).get(STATE, "")
        said = manifests.condition(found, "DatabaseInitSQLApplied")
        return f"{said.get('reason')}: {said.get('message')}"

    def record(self, name: str) -> str | None:
        found = self.cluster(name)
        if self.mode == "decorator":
            return manifests.annotations(found).get(APPLIED)
        return (found.get("status") or {}).get("databaseInitSQL")

    def made(self, name: str, what: str) -> list[Manifest]:
        """Return what was made for a cluster."""
        selector = f"{LABEL}-uid={manifests.uid(self.cluster(name))}"
        found: list[Manifest] = self.who.get(what, "-n", TEAM, "-l", selector)["items"]
        return found

    def events(self, kind: str) -> list[Manifest]:
        """Return the Events about objects of a kind."""
        words = ("events", "-n", TEAM, f"--field-selector=involvedObject.kind={kind}")
        found: list[Manifest] = self.who.get(*words)["items"]
        return found

    def attempt(self, name: str, *, other_than: str = "") -> Manifest:
        """Wait for the Pod of a Job, and return it."""
        found: list[Manifest] = []

        def there() -> bool:
            pods = self.made(name, "pods")
            found[:] = [pod for pod in pods if manifests.name(pod) != other_than]
            return bool(found)

        until(there, seconds=60)
        return found[0]

    def ends(self, pod: Manifest, outcome: Outcome) -> None:
        """Let the container of a Job's Pod have ended, with its last words."""
        code = EXIT_CODES[outcome.result]
        entry = {
            "name": "init-sql",
            "image": "any",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": {"exitCode": code, "message": outcome.write()}},
        }
        phase = "Failed" if code else "Succeeded"
        status = {"phase": phase, "containerStatuses": [entry]}
        self._says("pod", manifests.name(pod), status)

    def rests(self, name: str) -> None:
        """Have the cluster looked at twice: Patroni writes into its Pod every ten seconds."""
        for beat in (next(_beats), next(_beats)):
            awaited = self._syncs(name) + 1
            words = ("annotate", "pod", f"{name}-00-0", "-n", TEAM, f"beat={beat}", "--overwrite")
            self.who.kubectl(*words)
            until(partial(self._has_synced, name, awaited))

    def pgo_says(self, name: str, status: Manifest) -> None:
        """Write status as PGO does."""
        self._says("postgrescluster", name, status, "--field-manager=postgrescluster-controller")

    def runs(self, pod: Manifest) -> tuple[int, Outcome]:
        """Run the program of a Job's Pod with its own account; return how it ended."""
        (container,) = pod["spec"]["containers"]
        account = pod["spec"]["serviceAccountName"]
        token = self.who.kubectl("create", "token", account, "-n", TEAM).strip()
        kubeconfig = self.control_plane.kubeconfig_of(self.directory / account, token)
        words = self.directory / f"{account}.words"
        arguments = [part for part in container["args"] if "termination-log" not in part]
        ended = subprocess.run(
            [sys.executable, "-m", "hooks", *arguments, f"--termination-log={words}"],
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            check=False,
        )
        return ended.returncode, Outcome(**json.loads(words.read_text()))

    def _has_synced(self, name: str, times: int) -> bool:
        return self._syncs(name) >= times

    def _syncs(self, name: str) -> int:
        lines = (self.directory / "app.log").read_text().splitlines()
        calls = [json.loads(line) for line in lines if '"hook"' in line]
        return sum(call.get("name") == name and call.get("hook") == "sync" for call in calls)

    def _says(self, kind: str, name: str, status: Manifest, *words: str) -> None:
        patch = json.dumps({"status": status})
        self.who.kubectl(
            *("patch", kind, name, "-n", TEAM, "--subresource=status", "--type=merge"),
            *("-p", patch, *words),
        )

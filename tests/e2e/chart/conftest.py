"""A control plane for each module that wants one, with the kinds of other projects."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hooks.sandbox.certificates import Authority
from tests.e2e.apiserver import control_plane, others
from tests.e2e.tools.programs import program
from tests.manifests.manifests import Manifest


@dataclass(frozen=True)
class Admin:
    """Somebody with all rights, at a terminal."""

    kubeconfig: Path

    def attempt(self, name: str, *arguments: str | Path, stdin: str = "") -> tuple[int, str]:
        """Run kubectl or helm; return its exit code and all that it printed."""
        command = [str(program(name)), f"--kubeconfig={self.kubeconfig}", *map(str, arguments)]
        ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def run(self, name: str, *arguments: str | Path, stdin: str = "") -> str:
        """Run kubectl or helm, which must succeed."""
        code, said = self.attempt(name, *arguments, stdin=stdin)
        assert code == 0, said
        return said

    def get(self, *arguments: str) -> Manifest:
        """Return what kubectl gets, as an object."""
        found: Manifest = yaml.safe_load(self.run("kubectl", "get", *arguments, "-o", "yaml"))
        return found

    def established(self) -> None:
        """Wait until every kind is served."""
        self.run("kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Admin]:
    """Start the control plane."""
    with control_plane.started(tmp_path_factory.mktemp("helm-control-plane"), authority) as started:
        found = Admin(started.kubeconfig)
        for path in others.crds():
            found.run("kubectl", "apply", "--server-side", "-f", path)
        found.established()
        yield found

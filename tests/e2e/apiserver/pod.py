"""A Pod's container as a process on this machine: what a kubelet makes of a Deployment.

Environment, volumes, arguments and the ServiceAccount's token are those of the object that the API
server holds. Volumes become directories, so their paths in variables are replaced.

Limits: one container, plain values and the namespace as variables, no probes, no limits.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.processes import Process
from tests.docs.pages import ROOT
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.apiserver.installation import Installation


@dataclass(frozen=True)
class Pod:
    """The running program."""

    url: str
    log: Path
    environment: Mapping[str, str]

    def lines(self) -> str:
        """Return what it logged."""
        return self.log.read_text()


@contextmanager
def running(deployment: Manifest, directory: Path, made: Installation) -> Iterator[Pod]:
    """Run the container of a Deployment until the block is left."""
    who = made.administrator
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    namespace = manifests.namespace(deployment)
    places = _mounted(spec, container, directory, who, namespace)
    environment = _variables(container, namespace, places) | {
        "LISTEN_ADDRESS": made.address,
        "PATH": os.defpath,
        "PYTHONPATH": str(ROOT),
        **_identity(spec["serviceAccountName"], namespace, directory, made.control_plane, who),
    }
    log, url = directory / "app.log", f"http://{made.address}"
    process = Process([sys.executable, "-m", "hooks", *container["args"]], log=log, env=environment)
    try:
        process.wait_until(
            lambda: requests.get(f"{url}/readyz", timeout=5).ok,
            despite=(requests.RequestException,),
        )
        yield Pod(url, log, environment)
    finally:
        process.stop(timeout=60)


def _identity(
    account: str, namespace: str, directory: Path, control_plane: ControlPlane, who: Administrator
) -> Mapping[str, str]:
    """Ask for the ServiceAccount's token; the program finds it where in a Pod it would be."""
    token = directory / "token"
    token.touch(mode=0o600)
    token.write_text(who.kubectl("create", "token", account, "-n", namespace).strip())
    kubeconfig = control_plane.kubeconfig_of(directory / "kubeconfig", token)
    return {"KUBECONFIG": str(kubeconfig), "OPENBAO_JWT_FILE": str(token)}


def _variables(container: Manifest, namespace: str, places: Mapping[str, Path]) -> dict[str, str]:
    values = {entry["name"]: str(entry.get("value", namespace)) for entry in container["env"]}
    return {
        name: ",".join(_moved(part, places) for part in value.split(","))
        for name, value in values.items()
    }


def _moved(value: str, places: Mapping[str, Path]) -> str:
    """Return where a file is here; anything else is as it was."""
    for path, place in places.items():
        if value.startswith(f"{path}/"):
            return str(place) + value.removeprefix(path)
    return value


def _mounted(
    spec: Manifest, container: Manifest, directory: Path, who: Administrator, namespace: str
) -> Mapping[str, Path]:
    """Make a directory of each volume, and return them by where they are mounted."""
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    places = {}
    for mount in container["volumeMounts"]:
        place = directory / "volumes" / mount["name"]
        place.mkdir(mode=0o700, parents=True)
        places[mount["mountPath"]] = place
        for name, content in _files(volumes[mount["name"]], who, namespace).items():
            (place / name).write_bytes(content)
    return places


def _files(volume: Manifest, who: Administrator, namespace: str) -> Mapping[str, bytes]:
    if "secret" in volume:
        found = who.get("secret", volume["secret"]["secretName"], "-n", namespace)
        return {name: base64.b64decode(text) for name, text in found["data"].items()}
    if "configMap" in volume:
        found = who.get("configmap", volume["configMap"]["name"], "-n", namespace)
        return {name: text.encode() for name, text in found["data"].items()}
    return {}

"""The Pod of a Job, and its container as a process of this machine.

Idea: the container's command, arguments and environment are the Job's own. The image stands for
this program, so `python` is the interpreter that runs us. What a kubelet mounts, the token of the
ServiceAccount and the file for the termination message, is elsewhere on this machine: KUBECONFIG
and the container's own settings point there.

Limits: one container; of `valueFrom` only fields of metadata; volumes and limits are ignored.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.kinds import POD
from hooks.sandbox.processes import Process
from hooks.sandbox.runner_writes import controller_reference
from hooks.sandbox.shipped import ROOT

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest
    from hooks.sandbox.api_server import ApiServer

_ENTRYPOINT = ("python", "-m", "hooks")
_TERMINATION_LOG = "/dev/termination-log"
_MESSAGE_BYTES = 4096


def pod_of(job: Manifest) -> Manifest:
    """Return the Pod to create for a Job."""
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": {
            "generateName": f"{manifests.name(job)}-",
            "namespace": manifests.namespace(job),
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [controller_reference(job)],
        },
        "spec": dict(template["spec"]),
    }


def account_of(job: Manifest) -> str:
    """Return the name of the ServiceAccount that a Job's Pod runs under."""
    return str(job["spec"]["template"]["spec"].get("serviceAccountName") or "default")


@dataclass(frozen=True, slots=True)
class PodProcess:
    """The running container of a Pod."""

    process: Process
    files: Path
    token: str

    @property
    def message(self) -> str:
        """Return what the program left as its termination message."""
        path = self.files / "termination-log"
        return path.read_bytes()[:_MESSAGE_BYTES].decode(errors="replace")


def start(pod: Manifest, account: str, api: ApiServer, directory: Path) -> PodProcess:
    """Start the container of a Pod with the rights of a ServiceAccount."""
    namespace, name = manifests.namespace(pod), manifests.name(pod)
    files = directory / f"{namespace}-{name}"
    files.mkdir(mode=0o700)
    (files / "termination-log").touch()
    token = api.issue_token(namespace, account)
    kubeconfig = api.kubeconfig(files / "kubeconfig", token, namespace=namespace)
    container = pod["spec"]["containers"][0]
    here = {container.get("terminationMessagePath") or _TERMINATION_LOG: f"{files}/termination-log"}
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(kubeconfig),
        **{one["name"]: _value(one, pod) for one in container.get("env") or ()},
    }
    command = [*(container.get("command") or _ENTRYPOINT), *(container.get("args") or ())]
    command[0] = sys.executable if command[0] == "python" else command[0]
    process = Process(
        [_moved(argument, here) for argument in command],
        log=files / "log",
        env={key: _moved(value, here) for key, value in environment.items()},
    )
    return PodProcess(process, files, token)


def _value(variable: Manifest, pod: Manifest) -> str:
    if "value" in variable:
        return str(variable["value"])
    path = variable["valueFrom"]["fieldRef"]["fieldPath"]
    return str(pod["metadata"][path.removeprefix("metadata.")])


def _moved(text: str, here: dict[str, str]) -> str:
    """Return a text with paths of the container as they are on this machine."""
    for path, moved in here.items():
        text = text.replace(path, moved)
    return text

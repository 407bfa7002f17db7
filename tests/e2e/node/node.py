"""A whole Kubernetes node on this machine: control plane, container runtime, kubelet, names.

It listens on loopback and on a bridge of its own. Needs root. There is one at a time.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import yaml

from hooks.core.manifests import Manifest
from hooks.sandbox.processes import Process
from tests.e2e.node import containers, control_plane, identities, network, traces, worker
from tests.e2e.node.places import LOGS, NAME, RUN
from tests.e2e.node.programs import Failed, run
from tests.e2e.tools.programs import program


class Node:
    """A running node; `with` stops it, and removes all that it left on the machine."""

    def __init__(self) -> None:
        """Use `start`."""
        self._claim = traces.Claim()
        self._processes: dict[str, Process] = {}
        self._containerd: Process | None = None

    @classmethod
    def start(cls, archives: Sequence[Path]) -> Self:
        """Start a node that has these images; it is Ready.

        Raises:
            Occupied: There is one already.
        """
        node = cls()
        traces.clear()
        traces.record()
        try:
            node._start(archives)
        except BaseException as error:
            error.add_note(f"the logs are in {LOGS}")
            node.stop()
            raise
        return node

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Return what kubectl prints to an administrator."""
        options = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={RUN / 'kubectl'}")
        return run(program("kubectl"), *options, *words, stdin=stdin)

    def apply(self, *objects: Manifest) -> None:
        """Apply objects, in this order."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def expose(self, port: int) -> None:
        """Let pods reach a port of 127.0.0.1, at the node's address; here it is there too."""
        network.expose(port)

    def stop(self) -> None:
        """Stop everything; what the machine was before, it is again."""
        for process in reversed(self._processes.values()):
            process.stop()
        if self._containerd:
            containers.remove_all()
            self._containerd.stop()
        traces.clear()
        self._claim.release()

    def _start(self, archives: Sequence[Path]) -> None:
        shutil.rmtree(LOGS, ignore_errors=True)
        LOGS.mkdir()
        network.up()
        known = identities.make()
        self.ca_file, self.kubeconfig = known.ca, known.kubeconfig("admin")
        self._processes = control_plane.start(known)
        self._containerd = containers.start(archives)
        self.apply(*worker.DNS_RIGHTS)
        workers = worker.start(known)
        self._processes |= workers
        workers["kubelet"].wait_until(self._ready, despite=(Failed,), timeout=60)

    def _ready(self) -> bool:
        """Whether pods may be made: the node takes them, and they find their account."""
        self.kubectl("get", "serviceaccount", "default")
        self.kubectl("wait", "--for=condition=Ready", "--timeout=10s", f"node/{NAME}")
        return True

"""What a node leaves on the machine: seen, and removed.

Idea: before a node starts, the state of the machine is written to its run directory. Whatever
differs later is the node's. So a node that was killed is cleared away by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.e2e.node import network
from tests.e2e.node.containers import NETWORK
from tests.e2e.node.places import CACHE, RUN, SOCKET
from tests.e2e.node.programs import Failed, run

# Set by us, by the kubelet and by kube-proxy.
_SYSCTLS = (
    "kernel.keys.root_maxbytes",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "net.bridge.bridge-nf-call-iptables",
    "net.ipv4.conf.all.route_localnet",
    "net.ipv4.ip_forward",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
)
# Where containerd, the CNI plugins and the kubelet write, whatever their configuration says.
_DIRECTORIES = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
)
_BEFORE = RUN / "before.json"
_LOCK = CACHE / "node" / "lock"


class Occupied(Exception):
    """There is a node on this machine already."""


class Claim:
    """The right to run a node here; it ends with the process that has it."""

    def __init__(self) -> None:
        """Take it.

        Raises:
            Occupied: Another process has it.
        """
        _LOCK.parent.mkdir(parents=True, exist_ok=True)
        self._file = _LOCK.open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise Occupied("another process runs the node") from None

    def release(self) -> None:
        """Give it back. Twice is harmless."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Traces:
    """What can be seen of a node on the machine."""

    sysctls: dict[str, str | None]
    directories: list[str]
    mounts: list[str]
    links: list[str]
    tables: list[str]
    cgroups: list[str]
    shims: list[int]


def seen() -> Traces:
    """Look at the machine."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    return Traces(
        sysctls={name: network.sysctl(name) for name in _SYSCTLS},
        directories=[name for name in _DIRECTORIES if Path(name).exists()],
        mounts=[name for name in mounts if name.startswith((str(RUN), "/run/netns"))],
        links=[line.split(": ")[1] for line in run("ip", "-o", "link", "show").splitlines()],
        tables=network.tables(),
        cgroups=[str(path) for path in _cgroups()],
        shims=list(_shims()),
    )


def record() -> None:
    """Note how the machine is before a node starts.

    Raises:
        Occupied: It is a node already.
    """
    before = seen()
    if before.cgroups:
        raise Occupied(f"another kubelet runs its pods here: {before.cgroups[0]}")
    RUN.mkdir(mode=0o700)
    _BEFORE.write_text(json.dumps(asdict(before)))


def clear() -> None:
    """Remove everything that came since `record`. Nothing to do if there was none.

    Raises:
        Occupied: The run directory is not ours, so nothing in it can be believed.
    """
    if not RUN.exists():
        return
    if RUN.stat().st_uid != os.getuid():
        raise Occupied(f"{RUN} belongs to somebody else")
    before = Traces(**json.loads(_BEFORE.read_text()))
    _kill()
    _remove_networks(before)
    _unmount(before)
    network.down()
    for group in _cgroups():
        for directory, _, _ in os.walk(group, topdown=False):
            Path(directory).rmdir()
    _restore(before)
    shutil.rmtree(RUN)


def _restore(before: Traces) -> None:
    """Set the kernel's parameters back, and remove the directories that are new."""
    for name, value in before.sysctls.items():
        if value is not None and network.sysctl(name) != value:
            network.set_sysctl(name, value)
    for name in _DIRECTORIES:
        if name not in before.directories:
            shutil.rmtree(name, ignore_errors=True)


def _kill() -> None:
    """Kill the shims of our containerd and what runs in the pods, and see them gone.

    Raises:
        Occupied: Something does not go.
    """
    pause = threading.Event()
    for _ in range(200):
        # The shims first: they would note the end of their container.
        left = [*_shims(), *_in_pods()]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pause.wait(0.05)
    raise Occupied(f"these processes of pods do not end: {left}")


def _in_pods() -> Iterator[int]:
    for group in _cgroups():
        for file in group.rglob("cgroup.procs"):
            yield from map(int, file.read_text().split())


def _shims() -> Iterator[int]:
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            words = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if words[0].endswith("containerd-shim-runc-v2") and str(SOCKET) in words:
                yield int(directory.name)


def _unmount(before: Traces) -> None:
    """Unmount what is new, the deepest first."""
    for mount in sorted(seen().mounts, reverse=True):
        if mount not in before.mounts:
            run("umount", "--lazy", mount)


def _remove_networks(before: Traces) -> None:
    """Remove the network namespaces of pods, and what the plugins noted of them."""
    for file in Path("/run/netns").glob("cni-*"):
        if str(file) not in before.mounts:
            with suppress(Failed):  # not mounted any more
                run("umount", "--lazy", str(file))
            file.unlink()
    for file in Path("/var/lib/cni/results").glob(f"{NETWORK}-*"):
        file.unlink()


def _cgroups() -> list[Path]:
    """Return the groups that a kubelet makes for pods, in either version of cgroups."""
    root = Path("/sys/fs/cgroup")
    return [path for path in (root / "kubepods", *root.glob("*/kubepods")) if path.exists()]

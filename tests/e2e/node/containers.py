"""containerd: the programs in the pods, and the images that they are made from.

Limits: Debian's containerd, runc and CNI plugins. Nothing is ever pulled: an image is there
because it was imported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hooks.sandbox.processes import Process
from tests.e2e.node import oci
from tests.e2e.node.images import PAUSE
from tests.e2e.node.places import ADDRESS, BRIDGE, FIRST_POD, LOGS, PODS, RUN, SOCKET, STORE
from tests.e2e.node.programs import Failed, find, run

NETWORK = "database-hooks-node"
_CNI = RUN / "cni"

# restrict_oom_score_adj: where root lacks CAP_SYS_RESOURCE, as in many sandboxes, no pod starts
# without it, and the message of runc does not say why.
_CONFIG = f"""
version = 2
root = "{STORE}"
state = "{RUN}/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{SOCKET}"
[ttrpc]
  address = "{SOCKET}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{RUN}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{_CNI}"
"""

_PLUGIN = {
    "type": "bridge",
    "bridge": BRIDGE,
    "isGateway": True,
    "ipMasq": False,
    "hairpinMode": True,  # a pod may reach itself by its Service
    "ipam": {
        "type": "host-local",
        "dataDir": f"{RUN}/addresses",
        "ranges": [[{"subnet": PODS, "rangeStart": FIRST_POD, "gateway": ADDRESS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    },
}


def start(archives: Sequence[Path]) -> Process:
    """Start containerd and import the images that it has not yet."""
    config = RUN / "containerd.toml"
    config.write_text(_CONFIG)
    _CNI.mkdir()
    network = {"cniVersion": "1.0.0", "name": NETWORK, "plugins": [_PLUGIN]}
    (_CNI / "bridge.conflist").write_text(json.dumps(network))
    containerd = Process(
        [str(find("containerd")), "--config", str(config)],
        log=LOGS / "containerd.log",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    containerd.wait_until(_answers, despite=(Failed,))
    _remove_containers()
    there = _images()
    for archive in archives:
        if oci.read(archive) not in there:
            _ctr("images", "import", str(archive))
    return containerd


def remove_all() -> None:
    """End and remove whatever runs; nothing if containerd is not there any more."""
    with suppress(Failed):
        for task in _ctr("tasks", "list", "--quiet").split():
            with suppress(Failed):
                _ctr("tasks", "delete", "--force", task)
        _remove_containers()


def _remove_containers() -> None:
    for container in _ctr("containers", "list", "--quiet").split():
        with suppress(Failed):
            _ctr("containers", "delete", container)


def _answers() -> bool:
    return bool(_ctr("version"))


def _images() -> set[tuple[str, str]]:
    lines = _ctr("images", "list").splitlines()[1:]
    return {(line.split()[0], line.split()[2]) for line in lines}


def _ctr(*arguments: str) -> str:
    return run("ctr", "--address", str(SOCKET), "--namespace", "k8s.io", *arguments)

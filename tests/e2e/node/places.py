"""Where the node keeps what, and the addresses it uses.

They are fixed: there is one node at a time, and the next one finds what a killed one left.
"""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "database-hooks"  # noqa: TID251  where caches go, by convention
COREDNS = CACHE / "node" / "coredns"
IMAGES = CACHE / "node" / "images"
# What containerd keeps of images, so that they are unpacked once.
STORE = CACHE / "node" / "containerd"

RUN = Path("/tmp/database-hooks-node")  # noqa: S108  ours alone: mode 0700, and removed at the end
SOCKET = RUN / "containerd.sock"
# Kept until the next node starts.
LOGS = CACHE / "node" / "log"

NAME = "node"
# The bridge's address is also the node's, the API server's and the name server's.
BRIDGE = "hooks-node"
ADDRESS = "10.219.88.1"
PODS = "10.219.88.0/24"
FIRST_POD = "10.219.88.10"
SERVICES = "10.219.89.0/24"
API_SERVICE = "10.219.89.1"
API_PORT = 6443
DNS_PORT = 53
API = f"https://{ADDRESS}:{API_PORT}"

"""The names of Services, for a program of this machine.

The program gets a mount namespace of its own, in which /etc/resolv.conf is that of a pod.
"""

from __future__ import annotations

from tests.e2e.node.places import ADDRESS, RUN
from tests.e2e.node.programs import find

_RESOLV = f"""search svc.cluster.local cluster.local
nameserver {ADDRESS}
options ndots:5
"""
_SCRIPT = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


def with_cluster_names(*command: str) -> list[str]:
    """Return a command that runs this one with the names of the cluster."""
    file = RUN / "services.conf"
    file.write_text(_RESOLV)
    options = ("--mount", "--propagation", "private", "/bin/sh", "-c", _SCRIPT, str(file))
    return [str(find("unshare")), *options, *command]

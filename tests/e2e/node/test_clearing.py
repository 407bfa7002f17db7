"""A node leaves nothing, however it ends; how it ends well is checked where it is shared."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.node import traces
from tests.e2e.node.images import APP
from tests.e2e.node.places import ROOT
from tests.e2e.node.traces import Occupied

_PROGRAM = """
import sys
from pathlib import Path
from tests.e2e.node.node import Node

node = Node.start([Path(name) for name in sys.argv[2:]])
node.kubectl("run", "sleeper", f"--image={sys.argv[1]}", "--command", "--", "sleep", "infinity")
node.kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/sleeper")
print("there is a pod", flush=True)
sys.stdin.read()
"""


def test_a_node_that_was_killed_is_cleared_away(archives: list[Path]) -> None:
    before = traces.seen()
    arguments = [sys.executable, "-c", _PROGRAM, APP, *map(str, archives)]
    with subprocess.Popen(
        arguments, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == "there is a pod\n"
        with pytest.raises(Occupied):
            traces.Claim()
        node.send_signal(signal.SIGKILL)
    left = traces.seen()
    assert (left.shims, left.cgroups, left.tables) != (before.shims, before.cgroups, before.tables)
    claim = traces.Claim()
    traces.clear()
    claim.release()
    assert traces.seen() == before

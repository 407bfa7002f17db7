"""What Linux says of the app's processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hooks.sandbox.world import ROOT

_LIBRARIES = (
    "flask, gunicorn.workers.gthread, hvac, kubernetes.client.api_client, kubernetes.config,"
    " prometheus_client, psycopg, pydantic, requests, structlog, yaml"
)
_PRINT = "print(open('/proc/self/status').read())"


def worker_of(pid: int) -> int:
    """Return the process that serves, the only child of gunicorn's first one."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    return _megabytes(Path(f"/proc/{pid}/status").read_text(), "VmRSS")


def peak_mb(pid: int) -> float:
    """Return the most that it has ever been."""
    return _megabytes(Path(f"/proc/{pid}/status").read_text(), "VmHWM")


def own_mb(*pids: int) -> float:
    """Return the memory of processes together, what they share counted once."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(_megabytes(text, "Pss") for text in texts)


def libraries_mb() -> float:
    """Return the memory of a program that only imports what the app imports."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {_LIBRARIES}; {_PRINT}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return _megabytes(done.stdout, "VmRSS")


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used, in hundredths."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _megabytes(text: str, name: str) -> float:
    line = next(line for line in text.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024

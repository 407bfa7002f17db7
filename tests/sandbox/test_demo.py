"""`make demo` as a person runs it: real processes, real output."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hooks.sandbox.world import ROOT
from tests.app.running import until

COMMAND = [sys.executable, "-m", "hooks", "sandbox", "up"]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Copies of the samples, to edit."""
    return Path(shutil.copytree(ROOT / "samples", tmp_path / "samples"))


def demo_once(*paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "--once", *map(str, paths)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


class Demo:
    """A demo that stays up, and the lines that it has printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def says(self, text: str, *, after: int = 0) -> bool:
        return any(text in line for line in self.lines[after:])

    def until(self, text: str, *, after: int = 0, seconds: float = 60) -> None:
        until(lambda: self.says(text, after=after), seconds=seconds)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self._reader.join(10)
        return code


@contextmanager
def demo(path: Path) -> Iterator[Demo]:
    process = subprocess.Popen(
        [*COMMAND, str(path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield Demo(process)
    finally:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def children_of(pid: int) -> list[int]:
    """Return all processes below one, by asking the kernel."""
    found = []
    # A process may end while it is asked.
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children_of(int(child))]
    return found


def test_once_every_sample_becomes_ready_and_every_tenant_logs_in() -> None:
    done = demo_once(ROOT / "samples")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PostgresCluster team-a/hippo: Applied" in done.stdout
    assert "PostgresCluster team-b/rhino: Applied" in done.stdout
    assert "logged in as orders in database orders" in done.stdout
    assert "logged in as monthly_reports_owner in database monthly_reports" in done.stdout
    assert "everything is Ready" in done.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        pytest.param(
            "postgresqltenant-full.yaml",
            "hstore]",
            "nonesuch]",
            "InvalidSpec: spec.extensions: nonesuch cannot be installed on this server: remove it,"
            " or have its package installed there",
            id="extension-that-does-not-exist",
        ),
        pytest.param(
            "postgresqltenant-full.yaml",
            "monthly_reports_owner",
            "Monthly-Reports",
            "spec.loginRole: Invalid value",
            id="name-that-the-api-server-refuses",
        ),
        pytest.param(
            "postgresqltenant-minimal.yaml",
            "instanceRef: shared",
            "instanceRef: nowhere",
            "InstanceNotReady: PostgreSQLInstance nowhere does not exist",
            id="instance-that-does-not-exist",
        ),
    ],
)
def test_once_a_broken_sample_is_explained_and_exits_1(
    samples: Path, name: str, old: str, new: str, message: str
) -> None:
    text = (samples / name).read_text()
    assert old in text
    (samples / name).write_text(text.replace(old, new))
    done = demo_once(samples)
    assert (done.returncode, message in done.stdout) == (1, True), done.stdout + done.stderr


def test_a_path_that_does_not_exist_exits_2() -> None:
    done = demo_once(Path("nowhere"))
    assert (done.returncode, done.stdout) == (2, "there is no file or directory nowhere\n")


def test_it_stays_up_prints_a_login_that_works_and_follows_edits(samples: Path) -> None:
    with demo(samples) as running:
        running.until("log in to team-a/orders with:")
        running.until("log in to team-b/monthly-reports with:")
        # The printed command logs in as it stands.
        command = next(line for line in running.lines if "dbname=orders" in line)
        done = subprocess.run(
            [*shlex.split(command), "-XAtwc", "SELECT current_user, current_database()"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("orders|orders\n", "")
        # An edit shows within two seconds.
        path = samples / "postgresqltenant-full.yaml"
        before = len(running.lines)
        path.write_text(path.read_text().replace("[pg_trgm, hstore]", "[pg_trgm]"))
        running.until("ImmutableField", after=before, seconds=2)
        # A file that goes takes its object away.
        (samples / "postgresqltenant-minimal.yaml").unlink()
        running.until("PostgreSQLTenant team-a/orders: gone", after=before)
        # Ctrl-C stops everything that was started.
        started = children_of(running.process.pid)
        assert len(started) >= 3
        assert running.stop() == 0
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))

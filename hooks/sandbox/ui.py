"""`hooks sandbox up`: start a world, apply the user's files, and show what becomes of them.

On a terminal it is a live table; elsewhere one line for each change. An edited file is applied
again, an object that left the files is deleted.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from hooks.sandbox import world
from hooks.sandbox.samples import Samples
from hooks.sandbox.session import Line, Session
from hooks.sandbox.world import World

POLL_SECONDS = 0.2
QUIET_SECONDS = 3.0
"""With --once: nothing moved for so long, so what has failed stays so."""
ONCE_SECONDS = 120.0

_STYLES = {"True": "green", "False": "red"}


def main(paths: list[Path], *, once: bool, druid_url: str = "") -> int:
    """Run until Ctrl-C, or with `once` until everything is Ready or cannot be.

    With the URL of a real Druid's Router, ingestions go there and not to the double.

    Returns:
        0, or with `once` 1 when something is not Ready, or 2 when a path does not exist.
    """
    console = Console(soft_wrap=True, highlight=False)
    missing = [path for path in paths if not path.exists()]
    for path in missing:
        console.print(f"there is no file or directory {path}")
    if missing:
        return 2
    with (
        _interruptible() as stopped,
        tempfile.TemporaryDirectory(prefix="database-hooks-") as directory,
    ):
        console.print("starting PostgreSQL, OpenBao and the app")
        with world.started(Path(directory), druid_url=druid_url) as running:
            _introduce(running, console)
            view = View(Session(running, Samples(tuple(paths))), console)
            try:
                return view.watch(stopped, once=once)
            finally:
                console.print("stopping everything that was started")


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn SIGINT and SIGTERM into an event, so that servers stop in order."""
    stopped = threading.Event()
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, lambda *_: stopped.set()) for kind in kinds}
    try:
        yield stopped
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _introduce(running: World, console: Console) -> None:
    (version,) = running.postgres.sql("SHOW server_version")[0]
    server = f"{running.postgres.host}:{running.postgres.port}"
    console.print(f"  real    PostgreSQL {version} at {server}")
    console.print(f"  real    OpenBao at {running.openbao.address}")
    console.print(f"  real    the app under gunicorn at {running.app_url}, log {running.app_log}")
    real = "double" if running.druids.double else "real  "
    console.print(f"  {real}  Druid at {running.druids.url}")
    console.print(f"  double  Druid with TLS and a login at {running.druids.secured.url}")
    console.print(f"  double  Kubernetes API, KUBECONFIG={running.kubeconfig}")
    console.print(
        "  double  Metacontroller, External Secrets, Jobs, and the Pods of PostgresClusters,"
    )
    console.print("          in which a real PostgreSQL runs")
    console.print("Instances are pointed at the local PostgreSQL; edited files are applied again.")


@dataclass(slots=True)
class View:
    """What a person sees of a session."""

    session: Session
    console: Console
    _lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    _logins: dict[str, str] = field(default_factory=dict)

    def watch(self, stopped: threading.Event, *, once: bool) -> int:
        """Follow the session until it is stopped, or with `once` decided; return an exit code."""
        started = moved = time.monotonic()
        with self._live() as live:
            while not stopped.wait(POLL_SECONDS):
                if self._step(live):
                    moved = time.monotonic()
                if not once:
                    continue
                if self.session.ready():
                    return self._prove()
                now = time.monotonic()
                settled = self.session.failed() and now - moved > QUIET_SECONDS
                if settled or now - started > ONCE_SECONDS:
                    return self._explain()
        return 1 if once else 0

    @contextmanager
    def _live(self) -> Iterator[Live | None]:
        if not self.console.is_terminal:
            yield None
            return
        with Live(console=self.console, auto_refresh=False) as live:
            yield live

    def _step(self, live: Live | None) -> bool:
        """Look once; say whether anything moved."""
        moved = self.session.samples.changed()
        if moved:
            for what, why in self.session.apply().items():
                self.console.print(f"[red]refused[/red] {escape(what)}: {escape(why)}")
        lines = {(line.kind, line.name): line for line in self.session.lines()}
        news = [line for key, line in lines.items() if self._lines.get(key) != line]
        gone = self._lines.keys() - lines.keys()
        self._lines = lines
        if live is None:
            for line in news:
                self.console.print(_sentence(line))
            for kind, name in sorted(gone):
                self.console.print(f"{kind} {name}: gone")
        elif news or gone:
            live.update(_table(lines.values()), refresh=True)
        for name, command in self.session.logins():
            self._logins[name] = command
            self.console.print(f"[green]log in[/green] to {name} with:\n  {escape(command)}")
        return bool(moved or news or gone)

    def _prove(self) -> int:
        """Log in to every database with the printed command."""
        query = "SELECT current_user || ' in database ' || current_database()"
        for name, command in self._logins.items():
            done = subprocess.run(
                [*shlex.split(command), "-XAtwc", query],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                self.console.print(f"[red]no login[/red] to {name}: {escape(done.stderr.strip())}")
                return 1
            self.console.print(f"[green]logged in[/green] as {escape(done.stdout.strip())}")
        self.console.print("[green]everything is Ready[/green]")
        return 0

    def _explain(self) -> int:
        for what, why in self.session.refused.items():
            self.console.print(f"[red]refused[/red] {escape(what)}: {escape(why)}")
        for line in self.session.lines():
            if line.ready != "True":
                self.console.print(f"[red]not Ready[/red] {_sentence(line)}")
        return 1


def _sentence(line: Line) -> str:
    if not line.ready:
        return escape(f"{line.kind} {line.name}: applied, no status yet")
    text = f"{line.kind} {line.name}: {line.phase}, Ready={line.ready}"
    return escape(text if line.ready == "True" else f"{text}, {line.reason}: {line.message}")


def _table(lines: Iterable[Line]) -> Table:
    table = Table("Kind", "Name", "Phase", "Ready", "Reason", "Message", box=None, expand=True)
    for line in lines:
        style = _STYLES.get(line.ready, "yellow")
        cells = (line.kind, line.name, line.phase, line.ready, line.reason, line.message)
        table.add_row(*map(escape, cells), style=style)
    return table

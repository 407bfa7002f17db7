"""A database container on this machine: commands are run here, against a real server."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hooks.effects.pods.psql import Container, Ended
from hooks.sandbox.postgres_server import PostgresServer, program

Sink = Callable[[bytes], None]


@dataclass
class LocalContainer:
    """Runs commands as subprocesses, with the environment of a `database` container.

    Attributes:
        env: over the container's environment.
        cut: bytes of standard input that arrive; None for all.
        argv, environments: what was started, for tests of what may not be in it.
    """

    server: PostgresServer
    env: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    lose_end: bool = False
    argv: list[Sequence[str]] = field(default_factory=list)

    def run(
        self,
        container: Container,  # noqa: ARG002  there is one container
        argv: Sequence[str],
        stdin: bytes,
        outputs: tuple[Sink, Sink],
    ) -> Ended:
        self.argv.append(argv)
        process = subprocess.Popen(
            argv,
            env={**environment(self.server), **self.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        readers = [
            threading.Thread(target=_copy, args=(stream, sink))
            for stream, sink in zip((process.stdout, process.stderr), outputs, strict=True)
        ]
        for reader in readers:
            reader.start()
        sent = stdin if self.cut is None else stdin[: self.cut]
        delivered = True
        try:
            try:
                process.stdin.write(sent)
                process.stdin.flush()
            except BrokenPipeError:
                delivered = False
            if self.cut is not None:
                process.stdin.close()
            code = process.wait(60)
            for reader in readers:
                reader.join()
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.stdin.close()
        return Ended(None if self.lose_end else code, delivered=delivered)


def environment(server: PostgresServer) -> dict[str, str]:
    """Return what psql finds in a database container: a socket, a port, the superuser."""
    return {
        "PATH": f"{program('psql').parent}:{os.defpath}",
        "PGHOST": str(server.sql("SHOW unix_socket_directories")[0][0]),
        "PGPORT": str(server.port),
        "PGUSER": server.superuser.name,
    }


def _copy(stream: object, sink: Sink) -> None:
    while chunk := stream.read1(65536):  # type: ignore[attr-defined]  # a BufferedReader
        sink(chunk)
    stream.close()  # type: ignore[attr-defined]

"""What real Druids answered, and a server that answers it again.

The recordings are whole answers of 0.20, 27, 33 and 37, some with basic authentication; headers
that do not matter are left out, and very long texts are cut.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from hooks.core.deadline import Deadline
from hooks.effects.druid import DruidClusters
from hooks.effects.ports.druid import Cluster, Router

_FOLDER = Path(__file__).parents[2] / "fixtures" / "druid"


@dataclass(frozen=True)
class Recording:
    """A request and what it was answered."""

    method: str
    path: str
    status: int
    headers: dict[str, str]
    body: str


def recording(name: str) -> Recording:
    """Read one, by version and name: "33/k-status"."""
    return Recording(**json.loads((_FOLDER / f"{name}.json").read_text()))


class Replay:
    """A server that knows one request, and answers 599 to every other."""

    def __init__(self, known: Recording) -> None:
        replay = self
        self._known = known

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                replay.answer(self)

            do_GET = do_POST = do_DELETE = answer  # noqa: N815  http.server's names

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        known = self._known
        asked = (handler.command, handler.path.partition("?")[0])
        if asked != (known.method, known.path.partition("?")[0]):
            handler.send_error(599)
            return
        content = known.body.encode()
        handler.send_response(known.status)
        for name, text in {**known.headers, "Content-Length": str(len(content))}.items():
            handler.send_header(name, text)
        handler.end_headers()
        handler.wfile.write(content)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def cluster(self) -> Cluster:
        """A client of this server without a login."""
        return DruidClusters().bind(Deadline()).cluster(Router(self.url), None)

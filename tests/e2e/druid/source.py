"""Where a batch reads its rows from: a file that is not handed out before it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_LONGEST = 300.0


class HeldSource:
    """An HTTP server with one file of JSON rows; `with` stops it and lets go of it."""

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Prepare it; tasks that read it run until `release`."""
        content = "\n".join(map(json.dumps, rows)).encode()
        released = self._released = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                released.wait(_LONGEST)
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Be silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def input_source(self) -> dict[str, Any]:
        """Return it as Druid names it."""
        return {"type": "http", "uris": [f"http://127.0.0.1:{self._server.server_port}/rows.json"]}

    def release(self) -> None:
        """Hand the file out."""
        self._released.set()

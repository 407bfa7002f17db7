"""Hooks that are functions, behind a real HTTP server, and the kinds that they are asked about."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hooks.core.manifests import Manifest
from hooks.sandbox.cluster import Kind

THING = Kind("example.com/v1", "Thing", "things", namespaced=True)
PART = Kind("example.com/v1", "Part", "parts", namespaced=True)
Answer = Manifest | bytes | tuple[int, dict[str, str], str]
Handler = Callable[[Manifest], Answer]


class HookServer:
    """A real HTTP server whose hooks are functions; it keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Manifest]] = []
        self.tokens: set[str | None] = set()
        self.handlers: dict[str, Handler] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.01))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def asked(self, hook: str) -> list[Manifest]:
        return [body for path, body in self.requests if path == f"/{hook}"]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hooks = self

        class Handling(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hooks.requests.append((self.path, body))
                hooks.tokens.add(self.headers["Authorization"])
                answer = hooks.handlers[self.path.lstrip("/")](body)
                code, headers, text = answer if isinstance(answer, tuple) else (200, {}, answer)
                content = text if isinstance(text, bytes) else _encoded(text)
                self.send_response(code)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                # A client that did not want to wait is gone.
                with suppress(ConnectionError):
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handling


def _encoded(answer: Manifest | str) -> bytes:
    return answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()


def crd(kind: Kind) -> Manifest:
    status = {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "properties": status},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind.kind, "plural": kind.plural}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"spec": spec}

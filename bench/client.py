"""Post to the hooks as Metacontroller does: over connections that are kept, from a few workers."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from hooks.sandbox.metacontroller import Connection

TIMEOUT_SECONDS = 60
OK = 200


@dataclass(frozen=True, slots=True)
class Call:
    """A request; without a body it is a GET."""

    path: str
    body: bytes = b""


class Client:
    """One connection to the app."""

    def __init__(self, connection: Connection) -> None:
        context = ssl.create_default_context(cafile=str(connection.ca_file))
        self._http = http.client.HTTPSConnection(
            urlsplit(connection.base_url).netloc, timeout=TIMEOUT_SECONDS, context=context
        )
        self._headers = {
            "Authorization": f"Bearer {connection.token}",
            "Content-Type": "application/json",
        }

    def send(self, call: Call) -> tuple[int, bytes]:
        """Send a request and return status and body of the answer."""
        method = "POST" if call.body else "GET"
        self._http.request(method, call.path, call.body or None, self._headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def timed(self, call: Call) -> float:
        """Return the seconds until the whole answer is there, which must be a good one."""
        began = time.perf_counter()
        status, body = self.send(call)
        seconds = time.perf_counter() - began
        assert status == OK, (status, body[:500])
        return seconds

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class Workers:
    """Several clients that share work."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self._clients = clients

    def run(self, calls: Iterable[Call]) -> tuple[float, Counter[int]]:
        """Send all calls; return the seconds until the last answer, and the statuses."""
        shared = _Shared(iter(calls))
        statuses: list[Counter[int]] = [Counter() for _ in self._clients]
        threads = [
            threading.Thread(target=_work, args=(client, shared, seen), daemon=True)
            for client, seen in zip(self._clients, statuses, strict=True)
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began, sum(statuses, Counter())


class _Shared:
    """An iterator for several threads."""

    def __init__(self, calls: Iterator[Call]) -> None:
        self._calls = calls
        self._lock = threading.Lock()

    def next(self) -> Call | None:
        with self._lock:
            return next(self._calls, None)


def _work(client: Client, calls: _Shared, statuses: Counter[int]) -> None:
    while (call := calls.next()) is not None:
        statuses[client.send(call)[0]] += 1


@contextmanager
def workers(connection: Connection, count: int) -> Iterator[Workers]:
    """Open so many connections."""
    clients = [Client(connection) for _ in range(count)]
    try:
        yield Workers(clients)
    finally:
        for client in clients:
            client.close()

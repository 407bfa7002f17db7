"""A kind is followed whatever becomes of the watch: a server plays lists and watches."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hooks.core.manifests import Manifest
from hooks.sandbox.kinds import CONFIG_MAP, ApiError
from hooks.sandbox.kube_cluster import KubeCluster
from tests.effects.kubernetes.conftest import kubeconfig

SECONDS = 20.0

Told = tuple[str, str, str, int]
"""The change, the kind, the name and the version."""


class Stage:
    """A server with lists to answer one after the other, and watches to play."""

    def __init__(self) -> None:
        self.lists: queue.SimpleQueue[Manifest | int] = queue.SimpleQueue()
        self.watches: queue.SimpleQueue[list[Manifest] | int] = queue.SimpleQueue()
        self.asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._over = threading.Event()
        stage = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                if "watch" in query:
                    stage.play(self, query["resourceVersion"][0])
                else:
                    stage.answer(self, stage.lists.get())

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler, body: Manifest | int) -> None:
        status = body if isinstance(body, int) else 200
        content = json.dumps({"code": status} if isinstance(body, int) else body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def play(self, handler: BaseHTTPRequestHandler, version: str) -> None:
        """Play the next watch; when there is none, this one stays open without a word."""
        self.asked.put(version)
        try:
            events = self.watches.get_nowait()
        except queue.Empty:
            self._begin(handler)
            self._over.wait(SECONDS)
            return
        if isinstance(events, int):
            self.answer(handler, events)
            return
        self._begin(handler)
        for event in events:
            line = json.dumps(event).encode() + b"\n"
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        handler.wfile.write(b"0\r\n\r\n")

    def _begin(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()

    def close(self) -> None:
        self._over.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


@pytest.fixture
def cluster(stage: Stage, tmp_path: Path) -> Iterator[KubeCluster]:
    file = kubeconfig(tmp_path / "kubeconfig", stage.address, {"token": "token"})
    with KubeCluster(file, lambda: datetime(2026, 1, 1, tzinfo=UTC)) as cluster:
        yield cluster


@pytest.fixture
def told(cluster: KubeCluster) -> queue.SimpleQueue[Told]:
    told: queue.SimpleQueue[Told] = queue.SimpleQueue()

    def listen(change: str, obj: Manifest) -> None:
        meta = obj["metadata"]
        told.put((change, obj["kind"], meta["name"], int(meta["resourceVersion"])))

    cluster.subscribe(listen)
    return told


def config(name: str, version: int) -> Manifest:
    """Return an item of a list, which has no kind, as in lists of built-in kinds."""
    return {"metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)}}


def listed(version: int, *items: Manifest) -> Manifest:
    return {"metadata": {"resourceVersion": str(version)}, "items": list(items)}


def event(change: str, name: str, version: int) -> Manifest:
    return {"type": change, "object": {"kind": "ConfigMap", **config(name, version)}}


def follow(stage: Stage, cluster: KubeCluster, first: Manifest) -> None:
    """List twice: once to follow from, once for who asks."""
    stage.lists.put(first)
    stage.lists.put(first)
    cluster.list(CONFIG_MAP)


def test_changes_after_the_list_are_told_in_order(
    stage: Stage, cluster: KubeCluster, told: queue.SimpleQueue[Told]
) -> None:
    stage.watches.put([event("ADDED", "b", 6), event("MODIFIED", "a", 7), event("DELETED", "b", 8)])
    follow(stage, cluster, listed(5, config("a", 3)))
    assert [told.get(timeout=SECONDS) for _ in range(3)] == [
        ("ADDED", "ConfigMap", "b", 6),
        ("MODIFIED", "ConfigMap", "a", 7),
        ("DELETED", "ConfigMap", "b", 8),
    ]


def test_a_watch_that_ended_goes_on_where_it_was(
    stage: Stage, cluster: KubeCluster, told: queue.SimpleQueue[Told]
) -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}
    stage.watches.put([event("ADDED", "b", 6)])
    stage.watches.put([bookmark])
    stage.watches.put(503)
    stage.watches.put([event("ADDED", "c", 21)])
    follow(stage, cluster, listed(5))
    assert [told.get(timeout=SECONDS) for _ in range(2)] == [
        ("ADDED", "ConfigMap", "b", 6),
        ("ADDED", "ConfigMap", "c", 21),
    ]
    asked = [stage.asked.get(timeout=SECONDS) for _ in range(5)]
    assert asked == ["5", "6", "20", "20", "21"]


@pytest.mark.parametrize("said", ["before", "within"])
def test_a_forgotten_place_is_made_up_for_by_a_list(
    stage: Stage, cluster: KubeCluster, told: queue.SimpleQueue[Told], said: str
) -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    stage.watches.put(410 if said == "before" else [gone])
    follow(stage, cluster, listed(5, config("kept", 1), config("changed", 2), config("lost", 3)))
    stage.lists.put(503)
    stage.lists.put(listed(30, config("kept", 1), config("changed", 25), config("new", 26)))
    assert {told.get(timeout=SECONDS) for _ in range(3)} == {
        ("DELETED", "ConfigMap", "lost", 30),
        ("MODIFIED", "ConfigMap", "changed", 25),
        ("ADDED", "ConfigMap", "new", 26),
    }
    assert [stage.asked.get(timeout=SECONDS) for _ in range(2)] == ["5", "30"]


def test_who_listens_no_more_is_told_nothing(stage: Stage, cluster: KubeCluster) -> None:
    first: list[str] = []
    second: queue.SimpleQueue[str] = queue.SimpleQueue()
    leave = cluster.subscribe(lambda change, _: first.append(change))
    cluster.subscribe(lambda change, _: second.put(change))
    leave()
    stage.watches.put([event("ADDED", "a", 6)])
    follow(stage, cluster, listed(5))
    assert second.get(timeout=SECONDS) == "ADDED"
    assert first == []


def test_nothing_is_followed_while_nobody_listens(stage: Stage, cluster: KubeCluster) -> None:
    stage.lists.put(listed(5, config("a", 3)))
    (found,) = cluster.list(CONFIG_MAP)
    assert found == {"apiVersion": "v1", "kind": "ConfigMap", **config("a", 3)}
    assert stage.asked.empty()


def test_pages_make_one_list(stage: Stage, cluster: KubeCluster) -> None:
    page = listed(5, config("b", 3))
    page["metadata"]["continue"] = "more"
    stage.lists.put(page)
    stage.lists.put(listed(5, config("a", 4)))
    assert [obj["metadata"]["name"] for obj in cluster.list(CONFIG_MAP)] == ["a", "b"]


def test_a_silent_watch_ends_when_it_is_closed(
    stage: Stage, cluster: KubeCluster, told: queue.SimpleQueue[Told]
) -> None:
    before = set(threading.enumerate())
    follow(stage, cluster, listed(5))
    assert stage.asked.get(timeout=SECONDS) == "5"
    new = set(threading.enumerate()) - before
    (watching,) = (thread for thread in new if thread.name.startswith("watch "))
    cluster.close()
    assert not watching.is_alive()
    assert told.empty()


def test_a_kind_that_cannot_be_listed_is_not_followed(
    stage: Stage, cluster: KubeCluster, told: queue.SimpleQueue[Told]
) -> None:
    stage.lists.put(403)
    with pytest.raises(ApiError) as refused:
        cluster.list(CONFIG_MAP)
    assert refused.value.status == 403
    assert (stage.asked.empty(), told.empty()) == (True, True)

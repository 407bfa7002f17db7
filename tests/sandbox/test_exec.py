"""Commands in Pods: a real WebSocket, real processes, and the rights that the real server wants."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream
from kubernetes.stream.ws_client import ERROR_CHANNEL, STDIN_CHANNEL, WSClient
from websocket import WebSocketConnectionClosedException

from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.containers import Container
from hooks.sandbox.kinds import POD, ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from tests.sandbox.test_api_server import connected
from tests.sandbox.widgets import NOW

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hooks.core.manifests import Manifest
    from hooks.sandbox.certificates import Authority
    from hooks.sandbox.exec_stream import Fault

TOKEN = "a-token"
RBAC = "rbac.authorization.k8s.io"
SUCCESS: Manifest = {"metadata": {}, "status": "Success"}


@dataclass(frozen=True)
class Ended:
    """What a client knows when the connection is over; no status when nothing was said."""

    stdout: bytes = b""
    stderr: bytes = b""
    status: Manifest | None = None


@dataclass
class Pods:
    """A cluster, and a client of its Pods; by default it means the container main of box."""

    cluster: MemoryCluster
    server: ApiServer
    directory: Path

    def opened(self, *command: str, token: str = TOKEN, **options: Any) -> WSClient:  # noqa: ANN401 - query parameters
        wanted = {"stdin": True, "stdout": True, "stderr": True, "container": "main"} | options
        api = client.CoreV1Api(connected(self.server, self.directory, token))
        pod = wanted.pop("pod", "box")
        call = api.connect_get_namespaced_pod_exec
        found: WSClient = stream(
            call,
            pod,
            "default",
            command=list(command),
            _preload_content=False,
            binary=True,
            **wanted,
        )
        return found

    def ran(self, *command: str, stdin: bytes = b"", token: str = TOKEN, **options: Any) -> Ended:  # noqa: ANN401 - as above
        session = self.opened(*command, token=token, **options)
        for start in range(0, len(stdin), 65536):
            session.write_stdin(stdin[start : start + 65536])  # type: ignore[no-untyped-call]  # as above
        session.close_channel(STDIN_CHANNEL)  # type: ignore[no-untyped-call]  # as above
        return ended(session)

    def refused(self, *command: str, token: str = TOKEN, **options: Any) -> str:  # noqa: ANN401 - as above
        with pytest.raises(ApiException) as caught:
            self.opened(*command, token=token, **options)
        return str(caught.value.reason)


def ended(session: WSClient) -> Ended:
    with suppress(WebSocketConnectionClosedException):
        session.run_forever(timeout=20)  # type: ignore[no-untyped-call]  # as above
        assert not session.is_open()  # type: ignore[no-untyped-call]  # as above
    out, err = session.read_channel(1), session.read_channel(2)  # type: ignore[no-untyped-call]  # as above
    status = session.read_channel(ERROR_CHANNEL)  # type: ignore[no-untyped-call]  # as above
    session.sock.shutdown()  # close() does nothing once the server has closed
    return Ended(out, err, json.loads(status) if status else None)


@pytest.fixture
def pods(authority: Authority, tmp_path: Path) -> Iterator[Pods]:
    cluster = MemoryCluster([], lambda: NOW)
    spec = {"containers": [{"name": "main"}, {"name": "sidecar"}]}
    pod = cluster.create(object_("v1", "Pod", "box", spec=spec))
    certificate = authority.issue("kubernetes", ips=["127.0.0.1"])
    with ApiServer(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={TOKEN: "admin"}
    ) as server:
        container = Container({"PATH": "/usr/bin:/bin", "GREETING": "hello"})
        server.exec.containers[pod["metadata"]["uid"], "main"] = container
        yield Pods(cluster, server, tmp_path)


def object_(api_version: str, kind: str, name: str, **fields: Any) -> Manifest:  # noqa: ANN401 - manifests are untyped
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def failure(code: int) -> Manifest:
    text = f"command terminated with non-zero exit code: command terminated with exit code {code}"
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "NonZeroExitCode",
        "details": {"causes": causes},
    }


def test_a_command_runs_in_the_containers_environment_only(pods: Pods) -> None:
    assert pods.ran("bash", "-c", "echo $GREETING ${HOME-none}; echo oops >&2") == Ended(
        b"hello none\n", b"oops\n", SUCCESS
    )


def test_the_error_channel_tells_the_exit_code(pods: Pods) -> None:
    assert pods.ran("bash", "-c", "exit 3") == Ended(status=failure(3))


def test_a_mebibyte_goes_in_and_comes_back_whole(pods: Pods) -> None:
    data = bytes(range(256)) * 4096
    assert pods.ran("cat", stdin=data) == Ended(data, b"", SUCCESS)


def test_input_that_nobody_reads_is_no_failure(pods: Pods) -> None:
    assert pods.ran("true", stdin=b"x" * 1024 * 1024) == Ended(status=SUCCESS)


def test_the_newest_protocol_is_spoken_and_ends_the_input(pods: Pods) -> None:
    session = pods.opened("cat")
    session.close_channel(STDIN_CHANNEL)  # type: ignore[no-untyped-call]  # the client is half typed
    assert (session.subprotocol, ended(session)) == ("v5.channel.k8s.io", Ended(status=SUCCESS))


def test_with_the_older_protocol_the_input_never_ends(pods: Pods) -> None:
    pods.server.exec.protocols = ("v4.channel.k8s.io",)
    session = pods.opened("bash", "-c", "head -c 5; read -r more && echo $more")
    session.write_stdin(b"hello and\n")  # type: ignore[no-untyped-call]  # the client is half typed
    session.close_channel(STDIN_CHANNEL)  # type: ignore[no-untyped-call]  # as above
    assert (session.subprotocol, ended(session)) == (
        "v4.channel.k8s.io",
        Ended(b"helloand\n", b"", SUCCESS),
    )


def test_without_a_common_protocol_there_is_no_handshake(pods: Pods) -> None:
    pods.server.exec.protocols = ("v9.channel.k8s.io",)
    assert "unable to negotiate protocol" in pods.refused("true")


def test_a_program_that_is_not_there_is_no_exit_code(pods: Pods) -> None:
    status = pods.ran("no-such-program").status
    text = "OCI runtime exec failed: exec failed: unable to start container process: "
    text += 'exec: "no-such-program": executable file not found in $PATH: unknown'
    assert status == {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: error executing command in container: {text}",
        "reason": "InternalError",
        "details": {"causes": [{"message": text}]},
        "code": 500,
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param({"pod": "other"}, 'pods \\"other\\" not found', id="no-pod"),
        pytest.param({"container": "x"}, "container x is not valid for pod box", id="no-container"),
        pytest.param({"container": ""}, "choose one of: [main sidecar]", id="which-container"),
        pytest.param(
            {"container": "sidecar"}, 'container not found (\\"sidecar\\")', id="not-running"
        ),
        pytest.param(
            {"stdin": False, "stdout": False, "stderr": False}, "at least 1 of", id="no-stream"
        ),
        pytest.param({"tty": True}, "terminals", id="terminal"),
    ],
)
def test_what_makes_no_sense_is_refused(pods: Pods, options: dict[str, Any], text: str) -> None:
    assert text in pods.refused("true", **options)


def test_a_stranger_is_refused(pods: Pods) -> None:
    assert "401 Unauthorized" in pods.refused("true", token="stolen")


def grant(pods: Pods, *verbs: str, names: list[str] | None = None) -> str:
    """Give a ServiceAccount verbs on pods/exec and return its token."""
    pods.cluster.create(object_("v1", "ServiceAccount", "runner"))
    rule = {"verbs": list(verbs), "apiGroups": [""], "resources": ["pods/exec"]}
    rule |= {"resourceNames": names} if names else {}
    pods.cluster.create(object_(ROLE.api_version, "Role", "runner", rules=[rule]))
    subject = {"kind": "ServiceAccount", "name": "runner", "namespace": "default"}
    reference = {"apiGroup": RBAC, "kind": "Role", "name": "runner"}
    pods.cluster.create(
        object_(
            ROLE_BINDING.api_version,
            "RoleBinding",
            "runner",
            roleRef=reference,
            subjects=[subject],
        )
    )
    return pods.server.issue_token("default", "runner")


@pytest.mark.parametrize(
    ("verbs", "text"),
    [
        pytest.param(["get"], 'pods \\"box\\" is forbidden: "', id="get-only"),
        pytest.param(["create"], 'cannot get resource \\"pods/exec\\"', id="create-only"),
    ],
)
def test_get_and_create_are_both_needed(pods: Pods, verbs: list[str], text: str) -> None:
    assert text in pods.refused("true", token=grant(pods, *verbs))


def test_a_serviceaccount_may_what_its_role_says(pods: Pods) -> None:
    token = grant(pods, "get", "create", names=["box"])
    assert pods.ran("true", token=token) == Ended(status=SUCCESS)


def test_a_role_for_other_pods_is_none_for_this_one(pods: Pods) -> None:
    token = grant(pods, "get", "create", names=["other"])
    assert "cannot get resource" in pods.refused("true", token=token)


def test_a_role_goes_with_its_serviceaccount(pods: Pods) -> None:
    token = grant(pods, "get", "create")
    pods.cluster.delete(SERVICE_ACCOUNT, "default", "runner")
    assert "cannot get resource" in pods.refused("true", token=token)


def test_a_revoked_token_opens_nothing(pods: Pods) -> None:
    token = grant(pods, "get", "create")
    pods.server.revoke_token(token)
    assert "401 Unauthorized" in pods.refused("true", token=token)


def fault(pods: Pods, what: Fault) -> None:
    pods.server.exec.faults = lambda _request: what


def test_cut_before_the_command_nothing_runs(pods: Pods, tmp_path: Path) -> None:
    fault(pods, "cut_before")
    mark = tmp_path / "mark"
    assert ended(pods.opened("touch", str(mark))) == Ended()
    assert not mark.exists()


def test_cut_after_the_command_it_has_run_and_nobody_knows(pods: Pods, tmp_path: Path) -> None:
    fault(pods, "cut_after")
    mark = tmp_path / "mark"
    assert ended(pods.opened("bash", "-c", f"echo done; touch {mark}")) == Ended()
    assert mark.exists()


def test_cut_in_the_input_half_of_it_arrives_and_then_its_end(pods: Pods, tmp_path: Path) -> None:
    fault(pods, "cut_in_stdin")
    got, done = tmp_path / "got", tmp_path / "done"
    os.mkfifo(done)
    session = pods.opened("bash", "-c", f"cat > {got}; echo > {done}")
    session.write_stdin(b"DELETE FROM t WHERE id = 1;")  # type: ignore[no-untyped-call]  # the client is half typed
    assert ended(session) == Ended()
    assert (done.read_text(), got.read_bytes()) == ("\n", b"DELETE FROM t")


def test_without_a_status_everything_else_arrives(pods: Pods) -> None:
    fault(pods, "no_status")
    assert pods.ran("echo", "hello") == Ended(b"hello\n")


def test_a_killed_container_ends_the_command_and_its_children(pods: Pods) -> None:
    session = pods.opened("bash", "-c", "echo started; sleep 60 | cat")
    assert session.readline_stdout(timeout=20) == b"started"  # type: ignore[no-untyped-call]  # the client is half typed
    (container,) = pods.server.exec.containers.values()
    container.kill()
    assert ended(session) == Ended(status=failure(137))


def test_a_client_that_leaves_does_not_stop_the_command(pods: Pods, tmp_path: Path) -> None:
    done = tmp_path / "done"
    os.mkfifo(done)
    session = pods.opened("bash", "-c", f"echo started; cat; echo > {done}")
    assert session.readline_stdout(timeout=20) == b"started"  # type: ignore[no-untyped-call]  # the client is half typed
    session.close()  # type: ignore[no-untyped-call]  # as above
    assert done.read_text() == "\n"


def test_a_pod_is_no_place_for_other_websockets(pods: Pods) -> None:
    assert pods.cluster.get(POD, "default", "box") is not None
    api = client.CoreV1Api(connected(pods.server, pods.directory))
    with pytest.raises(ApiException) as caught:
        stream(api.connect_get_namespaced_pod_attach, "box", "default", container="main")
    assert "404 Not Found" in str(caught.value.reason)

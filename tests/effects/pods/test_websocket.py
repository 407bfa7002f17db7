"""pods/exec over a real WebSocket, to a real psql in a double of a container."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from psycopg import sql

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, EffectError, Misconfigured, Refused, Unavailable
from hooks.effects import kubernetes
from hooks.effects.pods import PodReader, Psql, WebSocketExec
from hooks.effects.pods.websocket import exit_code
from hooks.effects.ports.pods import NotFound, NotNow, OutcomeUnknown, ScriptFailed
from hooks.sandbox.api_server import ApiServer
from hooks.sandbox.certificates import Authority
from hooks.sandbox.cluster import MemoryCluster
from hooks.sandbox.exec_request import PROTOCOLS
from hooks.sandbox.exec_stream import Fault
from hooks.sandbox.postgres_pod import PostgresPod, Where

TOKEN = "a-token-in-no-text"
BORN = "2026-01-01T00:00:00Z"


@dataclass
class Remote:
    """An API server with one Pod, and psql in it; every run has a table of its own."""

    server: ApiServer
    pod: PostgresPod
    directory: Path
    table: str

    def exec(self, script: str, *, pod: str = "", container: str = "database") -> None:
        api = kubernetes.client(self.server.kubeconfig(self.directory / "kubeconfig", TOKEN))
        deadline = Deadline(90)
        psql = Psql(WebSocketExec(api, deadline), deadline, application="init-sql-test")
        psql.exec("default", pod or self.pod.name, container=container, stdin=script)

    def create(self, *, then: str = "") -> None:
        self.exec(f"CREATE TABLE {self.table} AS SELECT 1 AS n;\n{then}")

    def rows(self) -> list[tuple[object, ...]] | None:
        """Return what the table holds, None when there is none."""
        found = self.pod.server.sql("SELECT to_regclass(%s)", [self.table])
        if found == [(None,)]:
            return None
        query = sql.SQL("SELECT n FROM {}").format(sql.Identifier(self.table))
        return self.pod.server.sql(query)

    def fail(self, fault: Fault | None) -> None:
        self.server.exec.faults = lambda _request: fault


@pytest.fixture(scope="module")
def cluster() -> MemoryCluster:
    return MemoryCluster([], lambda: datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def serving(cluster: MemoryCluster, authority: Authority) -> Iterator[ApiServer]:
    certificate = authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"])
    with ApiServer(
        cluster, certificate=certificate, ca_file=authority.ca_file, tokens={TOKEN: "job"}
    ) as server:
        yield server


@pytest.fixture(scope="module")
def member(
    serving: ApiServer,
    cluster: MemoryCluster,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PostgresPod]:
    where = Where(cluster, serving.exec, lambda: BORN)
    directory = tmp_path_factory.mktemp("member")
    with PostgresPod.start(where, directory, authority, owner=("default", "hippo")) as pod:
        yield pod


@pytest.fixture
def remote(serving: ApiServer, member: PostgresPod, tmp_path: Path) -> Iterator[Remote]:
    yield Remote(serving, member, tmp_path, f"t{uuid.uuid4().hex[:12]}")
    serving.exec.faults = lambda _request: None
    serving.exec.protocols = PROTOCOLS
    serving.api.allow = lambda *_: True


@pytest.mark.parametrize("protocols", [PROTOCOLS, PROTOCOLS[1:]], ids=["v5", "v4"])
@pytest.mark.parametrize("size", [0, 32 * 1024, 1024 * 1024])
def test_a_script_of_any_size_runs_with_either_protocol(
    remote: Remote, protocols: tuple[str, ...], size: int
) -> None:
    remote.server.exec.protocols = protocols
    remote.create(then="-- filler line\n" * (size // 15))
    assert remote.rows() == [(1,)]


def test_a_script_that_fails_is_told_by_its_code(remote: Remote) -> None:
    with pytest.raises(ScriptFailed) as caught:
        remote.create(then="SELECT 1/0;")
    assert (caught.value.code, caught.value.line, remote.rows()) == ("22012", 2, [(1,)])


def test_much_output_is_taken_and_not_kept(remote: Remote) -> None:
    remote.create(then="SELECT repeat('x', 1000) FROM generate_series(1, 20000);")
    assert remote.rows() == [(1,)]


@pytest.mark.parametrize("fault", ["cut_before", "cut_in_stdin"])
def test_a_connection_that_is_cut_early_executes_nothing(remote: Remote, fault: Fault) -> None:
    remote.fail(fault)
    with pytest.raises((NotNow, OutcomeUnknown)):
        remote.create(then="-- filler\n" * 20_000)
    assert remote.rows() is None


@pytest.mark.parametrize("fault", ["cut_after", "no_status"])
def test_an_end_that_is_not_told_is_unknown_and_never_success(remote: Remote, fault: Fault) -> None:
    remote.fail(fault)
    with pytest.raises(OutcomeUnknown) as caught:
        remote.create()
    assert caught.value.detail == "the connection was lost before the end was seen"
    assert remote.rows() == [(1,)]


def test_a_container_that_is_killed_in_the_middle_has_an_unknown_outcome(remote: Remote) -> None:
    remote.create()
    script = f"UPDATE {remote.table} SET n = 2;\n\\! kill -KILL 0\n"  # noqa: S608  its own
    with pytest.raises(OutcomeUnknown):
        remote.exec(script)
    assert remote.rows() == [(2,)]


@pytest.mark.parametrize(
    ("pod", "container", "error"),
    [
        pytest.param("nobody", "database", NotFound("Kubernetes", "there is no Pod nobody")),
        pytest.param("", "other", Misconfigured("Kubernetes", "no usable answer to create pods")),
    ],
)
def test_a_pod_or_container_that_is_not_there_is_named(
    remote: Remote, pod: str, container: str, error: EffectError
) -> None:
    with pytest.raises(type(error)) as caught:
        remote.exec("SELECT 1;", pod=pod, container=container)
    assert caught.value.detail.startswith(error.detail)


@pytest.mark.parametrize("missing", ["get", "create"])
def test_both_verbs_are_needed_and_their_lack_is_a_refusal(remote: Remote, missing: str) -> None:
    remote.server.api.allow = lambda _user, verb, *_: verb != missing
    with pytest.raises(Denied):
        remote.create()
    assert remote.rows() is None


def test_a_token_that_is_not_accepted_is_refused(remote: Remote) -> None:
    remote.server.tokens = {}
    try:
        with pytest.raises(Refused):
            remote.create()
    finally:
        remote.server.tokens = {TOKEN: "job"}


def test_a_server_that_is_not_there_is_unavailable(remote: Remote, tmp_path: Path) -> None:
    text = remote.server.kubeconfig(tmp_path / "other", TOKEN).read_text()
    (tmp_path / "other").write_text(text.replace(remote.server.url, "https://127.0.0.1:1"))
    deadline = Deadline(90)
    websocket = WebSocketExec(kubernetes.client(tmp_path / "other"), deadline)
    with pytest.raises(Unavailable) as caught:
        Psql(websocket, deadline, application="x").exec(
            "default", "hippo-0", container="database", stdin="SELECT 1;"
        )
    assert TOKEN not in repr(caught.value) + repr(caught.value.__context__)


def test_a_certificate_of_another_authority_is_not_trusted(
    remote: Remote, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Authority(tmp_path_factory.mktemp("other"))
    kubeconfig = remote.server.kubeconfig(tmp_path / "kubeconfig", TOKEN)
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"] = {
        "server": remote.server.url,
        "certificate-authority": str(other.ca_file),
    }
    kubeconfig.write_text(yaml.safe_dump(config))
    deadline = Deadline(90)
    with pytest.raises(Refused):
        Psql(
            WebSocketExec(kubernetes.client(kubeconfig), deadline), deadline, application="x"
        ).exec("default", remote.pod.name, container="database", stdin="SELECT 1;")


def test_pods_are_listed_by_label_and_namespace(remote: Remote, tmp_path: Path) -> None:
    api = kubernetes.client(remote.server.kubeconfig(tmp_path / "kubeconfig", TOKEN))
    reader = PodReader(api, Deadline())
    cluster = "postgres-operator.crunchydata.com/cluster"
    found = {
        (namespace, selector): [pod["metadata"]["name"] for pod in reader.list(namespace, selector)]
        for namespace in ("default", "other")
        for selector in (f"{cluster}=hippo", f"{cluster}=rhino")
    }
    assert found == {
        ("default", f"{cluster}=hippo"): [remote.pod.name],
        ("default", f"{cluster}=rhino"): [],
        ("other", f"{cluster}=hippo"): [],
        ("other", f"{cluster}=rhino"): [],
    }


EXITED = b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[%s]}}'


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(b"", None, id="nothing"),
        pytest.param(b"{", None, id="cut"),
        pytest.param(b"[]", None, id="no-object"),
        pytest.param(b'{"status":"Success"}', 0, id="success"),
        pytest.param(EXITED % b'{"reason":"ExitCode","message":"3"}', 3, id="code"),
        pytest.param(EXITED % b'{"reason":"ExitCode","message":"x"}', None, id="no-number"),
        pytest.param(EXITED % b"", None, id="no-cause"),
        pytest.param(b'{"status":"Failure","reason":"InternalError"}', None, id="internal-error"),
        pytest.param(
            b'{"status":"Failure","message":"exec failed: unable to start container process"}',
            126,
            id="not-started",
        ),
    ],
)
def test_only_what_the_error_channel_says_is_an_exit_code(status: bytes, code: int | None) -> None:
    assert exit_code(status) == code

"""The Deployment of the manual on a real node: it starts, is restricted, and is reached."""

from __future__ import annotations

import json
import sys

import pytest
import requests

from hooks.core.manifests import Manifest
from tests.e2e.apiserver.installation import NAMESPACE
from tests.e2e.node.deployment import DEPLOYMENT, NAME, PODS, Deployed, await_rollout
from tests.e2e.node.names import with_cluster_names
from tests.e2e.node.programs import run

_RIGHTS = r"""
import json, re
print(json.dumps(dict(re.findall(
    r"^(Uid|Gid|CapEff|CapBnd|NoNewPrivs|Seccomp):\s+(\w+)", open("/proc/1/status").read(), re.M
))))
"""
_WRITING = """
import errno, pathlib
for place in ("/", "/app", "/venv", "/etc/database-hooks/token", "/var/lib", "/tmp"):
    file = pathlib.Path(place, "file")
    try:
        file.touch()
        file.unlink()
        print(place, "can be written to")
    except OSError as error:
        print(place, errno.errorcode[error.errno])
"""
_LOOKING = """
import importlib.util, shutil
print(importlib.util.find_spec("pip"))
print(*filter(None, map(shutil.which, ("cc", "curl", "gcc", "git"))))
"""


def _pods(hooks: Deployed) -> list[Manifest]:
    """Return the pods that are to stay."""
    found: list[Manifest] = hooks.administrator.get("pods", *PODS)["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def _inside(hooks: Deployed, code: str) -> str:
    words = ("exec", "-n", NAMESPACE, DEPLOYMENT, "--", "python", "-c", code)
    return hooks.administrator.kubectl(*words)


def test_both_replicas_are_ready_and_none_was_restarted(hooks: Deployed) -> None:
    found = [pod["status"]["containerStatuses"] for pod in _pods(hooks)]
    states = [(each["ready"], each["restartCount"]) for statuses in found for each in statuses]
    assert states == [(True, 0), (True, 0)]


def test_the_process_has_no_rights_on_its_node(hooks: Deployed) -> None:
    assert json.loads(_inside(hooks, _RIGHTS)) == {
        "Uid": "65532",
        "Gid": "65532",
        "CapEff": "0000000000000000",
        "CapBnd": "0000000000000000",
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }


def test_nothing_but_tmp_can_be_written_to(hooks: Deployed) -> None:
    assert _inside(hooks, _WRITING).splitlines() == [
        "/ EROFS",
        "/app EROFS",
        "/venv EROFS",
        "/etc/database-hooks/token EROFS",
        "/var/lib EROFS",
        "/tmp can be written to",  # noqa: S108  of the pod
    ]


def test_the_image_has_nothing_to_install_or_build_with(hooks: Deployed) -> None:
    assert _inside(hooks, _LOOKING) == "None\n\n"


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        pytest.param("", 401, id="no-token"),
        pytest.param("Bearer wrong", 401, id="wrong-token"),
        pytest.param("Bearer {token}", 400, id="good-token-and-no-request"),
    ],
)
def test_a_call_by_the_service_needs_the_token(
    hooks: Deployed, authorization: str, code: int
) -> None:
    connection = hooks.connection
    headers = {"Authorization": authorization.format(token=connection.token)}
    url = f"{connection.base_url}/tenant/sync"
    answer = requests.post(url, headers=headers, verify=str(connection.ca_file), timeout=10)
    assert answer.status_code == code


def test_a_call_without_tls_is_not_answered(hooks: Deployed) -> None:
    url = hooks.connection.base_url.replace("https://", "http://")
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/healthz", timeout=10)


def test_the_service_is_reached_by_its_name(hooks: Deployed) -> None:
    url = f"https://{NAME}:8080/readyz"
    code = (
        "import ssl, urllib.request as r;"
        f"c = ssl.create_default_context(cafile='{hooks.connection.ca_file}');"
        f"print(r.urlopen('{url}', timeout=10, context=c).status)"
    )
    assert run(*with_cluster_names(sys.executable, "-c", code)) == "200\n"


def test_a_drain_takes_one_replica_and_waits_with_the_other(hooks: Deployed) -> None:
    who = hooks.administrator
    first, second = (pod["metadata"]["name"] for pod in _pods(hooks))
    assert "Success" in who.kubectl(*_eviction(first), stdin=_eviction_of(first))
    refused = who.is_refused(*_eviction(second), stdin=_eviction_of(second))
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    await_rollout(who)
    assert len(_pods(hooks)) == 2


def _eviction(pod: str) -> tuple[str, ...]:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    return ("create", "--raw", path, "-f", "-")


def _eviction_of(pod: str) -> str:
    metadata = {"name": pod, "namespace": NAMESPACE}
    return json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})

"""A request for pods/exec: who asks, for what, and whether it may be.

Idea: over a WebSocket the request is a GET, but the API server asks for the verb `create` as well.
Everything that is refused is refused before the handshake, as a Status object.

Limits: no terminals, and no commands over SPDY.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from hooks.sandbox.authorization import forbidden
from hooks.sandbox.kinds import POD, ApiError, bad_request, not_found

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.authorization import Allow
    from hooks.sandbox.containers import Container, Containers
    from hooks.sandbox.port import Cluster

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods/(?P<pod>[^/]+)/exec")
_RESOURCE = "pods/exec"
_FLAGS = ("stdin", "stdout", "stderr", "tty")


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command for a container; the container may be left out if there is one only."""

    namespace: str
    pod: str
    container: str
    command: tuple[str, ...]
    stdin: bool


def parse(path: str, query: str) -> ExecRequest:
    """Read a request.

    Raises:
        ApiError: It is for something else, or makes no sense.
    """
    match = _PATH.fullmatch(path)
    if match is None:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    values = parse_qs(query, keep_blank_values=True)
    flags = {name: values.get(name, [""])[-1].lower() in ("true", "1") for name in _FLAGS}
    command = tuple(values.get("command", ()))
    if not command:
        raise bad_request("you must specify at least 1 command for the container")
    if not any(flags[name] for name in ("stdin", "stdout", "stderr")):
        raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
    if flags["tty"]:
        raise bad_request("terminals are not supported by this double")
    container = values.get("container", [""])[-1]
    return ExecRequest(match["namespace"], match["pod"], container, command, flags["stdin"])


def authorize(request: ExecRequest, user: str, allow: Allow) -> None:
    """Ask for both verbs.

    Raises:
        ApiError: One of them is not given.
    """
    namespace, pod = request.namespace, request.pod
    if not allow(user, "get", POD.group, _RESOURCE, namespace, pod):
        raise forbidden(user, "get", POD, _RESOURCE, namespace, pod)
    if not allow(user, "create", POD.group, _RESOURCE, namespace, pod):
        # The real server gives no reason either.
        raise ApiError(403, "Forbidden", f'pods "{pod}" is forbidden: ')


def container_of(request: ExecRequest, cluster: Cluster, containers: Containers) -> Container:
    """Return the container that the command is for.

    Raises:
        ApiError: There is no such Pod or container, or it does not run.
    """
    pod = cluster.get(POD, request.namespace, request.pod)
    if pod is None:
        raise not_found(POD, request.pod)
    name = _container_name(request, pod)
    found = containers.get((pod["metadata"]["uid"], name))
    if found is None:
        text = f'unable to upgrade connection: container not found ("{name}")'
        raise ApiError(500, "InternalError", text)
    return found


def _container_name(request: ExecRequest, pod: Manifest) -> str:
    names = [str(container["name"]) for container in pod["spec"].get("containers") or ()]
    if request.container and request.container not in names:
        raise bad_request(f"container {request.container} is not valid for pod {request.pod}")
    if not request.container and len(names) != 1:
        text = f"a container name must be specified for pod {request.pod}, choose one of: "
        raise bad_request(f"{text}[{' '.join(names)}]")
    return request.container or names[0]


def protocol(offered: Sequence[str], served: Sequence[str]) -> str:
    """Return the first offered protocol that is served.

    Raises:
        ApiError: There is none.
    """
    for name in offered:
        if name in served:
            return name
    text = f"client supports {list(offered)}, server accepts {list(served)}"
    raise bad_request(f"unable to upgrade: unable to negotiate protocol: {text}")

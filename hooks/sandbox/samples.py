"""The user's manifests: read again when a file changes, and made to fit this machine.

An Instance names a server that is not here, so its address becomes the local one, and the admin
Secret that it names is made. Nothing else is changed: what the API server would refuse, or the
hooks would report, they do.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from hooks.core import manifests
from hooks.core.manifests import Manifest

INSTANCE = "PostgreSQLInstance"


@dataclass(frozen=True, slots=True)
class LocalServer:
    """The PostgreSQL server of this machine, and the login of its admin."""

    host: str
    hostaddr: str
    port: int
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that holds no manifests."""

    path: Path
    text: str


@dataclass(slots=True)
class Samples:
    """The files and directories that the user named."""

    paths: tuple[Path, ...]
    _marks: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def changed(self) -> bool:
        """Say whether a file came, went or changed since this was asked last."""
        marks = {path: _mark(path) for path in self._files()}
        before, self._marks = self._marks, marks
        return marks != before

    def read(self) -> tuple[list[Manifest], list[Problem]]:
        """Return all objects, and the files that cannot be read."""
        found: list[Manifest] = []
        problems: list[Problem] = []
        for path in self._files():
            try:
                found.extend(_documents(path))
            except (OSError, ValueError, yaml.YAMLError) as error:
                problems.append(Problem(path, str(error)))
        return found, problems

    def _files(self) -> Iterator[Path]:
        for path in self.paths:
            if path.is_dir():
                yield from sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
            else:
                yield path


def _mark(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: a date is a string."""

    yaml_implicit_resolvers = {  # noqa: RUF012  the base class reads it as it is
        first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _documents(path: Path) -> Iterator[Manifest]:
    for document in yaml.load_all(path.read_text(), _Loader):
        if document is None:
            continue
        if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
            raise ValueError(  # noqa: TRY004  what is wrong is the file's content
                "a document is no Kubernetes object with metadata"
            )
        yield document


def localized(objects: Iterable[Manifest], server: LocalServer, namespace: str) -> list[Manifest]:
    """Return the objects as they make sense here, with what they need before them.

    Args:
        objects: as the user wrote them.
        server: the local server, which takes the place of every endpoint.
        namespace: the controller's, where admin Secrets are.
    """
    fitted = [deepcopy(manifest) for manifest in objects]
    names = {manifests.namespace(manifest) for manifest in fitted} - {""}
    needed = [_namespace(name) for name in sorted(names | {namespace})]
    for manifest in fitted:
        if manifest.get("kind") == INSTANCE:
            needed += _localize(manifest, server, namespace)
    return needed + fitted


def _localize(instance: Manifest, server: LocalServer, namespace: str) -> list[Manifest]:
    spec = instance.get("spec")
    if not isinstance(spec, dict):
        return []
    endpoint = spec.get("endpoint")
    if isinstance(endpoint, dict):
        endpoint |= {"host": server.host, "hostaddr": server.hostaddr, "port": server.port}
    reference = spec.get("adminCredentialRef")
    if not isinstance(reference, dict) or not isinstance(reference.get("name"), str):
        return []
    data = {
        str(reference.get("usernameKey", "username")): server.username,
        str(reference.get("passwordKey", "password")): server.password,
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": reference["name"], "namespace": namespace},
            "type": "Opaque",
            "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
        }
    ]


def _namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}

"""`hooks check`: say what an API server, or the hooks, would refuse of files.

Idea: an object is created as in an empty cluster, by the double's admission: schema, CEL rules,
metadata. Then the hooks read it, for what no schema says, such as JSON inside of a text. A recorded
call is read as `hooks replay` reads it, and not answered.

Limits: what an update may not change needs the stored object, and is not seen here. Of kinds
without a CRD here some are checked in part (builtin.py), and others are only named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TextIO

from hooks import recordings
from hooks.core import contract, manifests
from hooks.core.contract import BadRequest
from hooks.core.manifests import Manifest
from hooks.ingestion import parsing as ingestion
from hooks.ingestion.model import Invalid
from hooks.initsql import model as initsql
from hooks.instance import model as instance
from hooks.recordings import BadRecording
from hooks.sandbox import admission
from hooks.sandbox.builtin import BUILTIN
from hooks.sandbox.kinds import ApiError, Resource, resources_of
from hooks.sandbox.samples import Samples
from hooks.sandbox.shipped import crds
from hooks.sandbox.validation import metadata_problems
from hooks.tenant import model as tenant

MANIFESTS = frozenset({".yaml", ".yml"})
RECORDINGS = frozenset({".json"})

INIT_SQL_MODE = "database.ddupan.top/init-sql"
"""The label by which one of the two controllers has a PostgresCluster."""

_INVALID = 422
_SERVER_FILLS = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One line about a file, or about an object in it."""

    path: Path
    about: str
    text: str
    refused: bool = True

    def __str__(self) -> str:
        line = ": ".join(filter(None, (str(self.path), self.about, self.text)))
        return " ".join(line.split())


def main(paths: list[Path]) -> int:
    """Print a line for each problem, and at the end how much was checked.

    Returns:
        0, 1 when there is a problem, 2 when a path leads to nothing that can be checked.
    """
    found = {path: _files(path) for path in paths}
    unusable = [path for path, files in found.items() if not files]
    for path in unusable:
        _say(f"hooks: {path}: no manifest and no recorded call is there", sys.stderr)
    if unusable:
        return 2
    files = [file for files in found.values() for file in files]
    problems = 0
    for finding in (finding for file in files for finding in check(file)):
        _say(str(finding), sys.stdout)
        problems += finding.refused
    _say(f"files: {len(files)}, problems: {problems}", sys.stdout)
    return 1 if problems else 0


def _say(line: str, stream: TextIO) -> None:
    print(line, file=stream)


def _files(path: Path) -> list[Path]:
    """Return a file itself, or of a directory those that can be checked, as kubectl takes them."""
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.suffix in MANIFESTS | RECORDINGS)
    return [path] if path.exists() else []


def check(path: Path) -> Iterator[Finding]:
    """Yield what is wrong with a file; one that ends with .json is a recorded call."""
    if path.suffix in RECORDINGS:
        yield from _recording(path)
        return
    objects, unreadable = Samples((path,)).read()
    yield from (Finding(path, "", problem.text) for problem in unreadable)
    for manifest in objects:
        about = f"{manifest.get('kind')} {manifests.namespace(manifest)}/{manifests.name(manifest)}"
        yield from _object(path, about.replace(" /", " "), manifest)


def _recording(path: Path) -> Iterator[Finding]:
    try:
        contract.parse(recordings.read(path).body())
    except (BadRecording, BadRequest) as error:
        yield Finding(path, "", str(error))


def _object(path: Path, about: str, manifest: Manifest) -> Iterator[Finding]:
    resource = _served().get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
    if resource is None:
        yield _unknown(path, about, manifest)
        return
    yield from (Finding(path, about, problem) for problem in _problems(resource, manifest))


@cache
def _served() -> dict[tuple[str, str], Resource]:
    found = [*BUILTIN, *(resource for crd in crds() for resource in resources_of(crd))]
    return {(each.kind.api_version, each.kind.kind): each for each in found}


def _unknown(path: Path, about: str, manifest: Manifest) -> Finding:
    """Tell a misspelled kind of ours from one that somebody else defines."""
    version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    ours = {(crd["spec"]["group"], crd["spec"]["names"]["kind"]) for crd in crds()}
    close = {name for _, name in ours if name == kind} or {
        name for group, name in ours if group == version.partition("/")[0]
    }
    known = " and ".join(f"{api} {name}" for api, name in _served() if name in close)
    if known:
        return Finding(path, about, f"there is no {version} {kind}, but {known}")
    return Finding(path, about, "not checked: no schema of it is here", refused=False)


def _problems(resource: Resource, manifest: Manifest) -> list[str]:
    """Return what is said when the object is created: by the API server, else by the hooks."""
    stored: Manifest = {}
    try:
        stored = admission.canonical(manifest)
        admission.created(resource, stored)
    except ApiError as error:
        if error.status != _INVALID:
            return [str(error)]
        # Its message has all problems in one; here each gets a line.
        problems = [*metadata_problems(stored), *resource.schema.problems(stored)]
        found = [str(problem) for problem in problems]
    else:
        found = _invalid(stored)
    return found + [f"{path}: unknown field" for path in _unknown_fields(manifest, stored)]


def _unknown_fields(written: object, stored: object, path: str = "") -> Iterator[str]:
    """Yield the paths of what was written and pruned."""
    if isinstance(written, dict) and isinstance(stored, dict):
        for key, value in written.items():
            here = f"{path}.{key}".lstrip(".")
            if here in _SERVER_FILLS or value is None:
                continue
            if key in stored:
                yield from _unknown_fields(value, stored[key], here)
            else:
                yield here
    elif isinstance(written, list) and isinstance(stored, list):
        for index, (before, after) in enumerate(zip(written, stored, strict=True)):
            yield from _unknown_fields(before, after, f"{path}[{index}]")


def _invalid(stored: Manifest) -> list[str]:
    """Return why the hooks cannot use an object that the API server takes."""
    parse = _PARSERS.get(stored["kind"])
    found = parse(stored) if parse else None
    if isinstance(found, Invalid):
        return [f"{found.reason}: {found.message}"]
    return [f"InvalidSpec: {problem}" for problem in found] if isinstance(found, list) else []


def _init_sql(stored: Manifest) -> object:
    labels = manifests.metadata(stored).get("labels") or {}
    return initsql.parse(stored, labels.get(INIT_SQL_MODE, "composite"))


_ANY_DEPLOYMENT = tenant.Config("", "", "", "", "", "SecretStore", "", "")
"""No problem of a Tenant's spec depends on it."""

_PARSERS: Mapping[str, Callable[[Manifest], object]] = {
    "PostgreSQLInstance": instance.parse,
    "PostgreSQLTenant": partial(tenant.parse, config=_ANY_DEPLOYMENT),
    "PostgresCluster": _init_sql,
    "DruidIngestion": ingestion.parse,
}

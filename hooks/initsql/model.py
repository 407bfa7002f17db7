"""What a PostgresCluster asks for, and the names of what is made for it.

A cluster asks in its field `spec.databaseInitSQL`. Where Crunchy's operator runs and would do that
itself, the decorator takes an annotation instead, and keeps the record in another one.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Literal

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.core.names import DNS_SUBDOMAIN, MAX_NAME
from hooks.initsql.cluster import ClusterSpec, ClusterStatus, DatabaseInitSQL, PostgresCluster

Mode = Literal["composite", "decorator"]

FROM = "database.ddupan.top/init-sql-from"
"""Annotation of a cluster: `<configmap>/<key>`. Only the decorator looks at it."""
APPLIED = "database.ddupan.top/init-sql-applied"
"""Annotation that we write: the ConfigMap that was applied because of FROM."""
STATE = "database.ddupan.top/init-sql-state"
"""Annotation that the decorator writes: what the condition would say."""
MAX_ATTEMPTS = "database.ddupan.top/init-sql-max-attempts"
"""Annotation of a cluster: how many times one and the same SQL is tried; no limit without it."""

FIELD = "databaseInitSQL"

_OPERATOR_FINALIZER = "postgres-operator.crunchydata.com/finalizer"
_OPERATOR_MANAGER = "postgrescluster-controller"

_DIGEST = 12
_MAX_JOB_NAME = 63
_NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")


@dataclass(frozen=True, slots=True)
class Config:
    """What the deployment decides for all Jobs.

    Attributes:
        image, pull_policy, pull_secrets: of the Job's container; it is our own image.
        deadline_seconds: after which a Job is stopped.
        cpu: that its container requests.
        memory: that its container requests and may use.
    """

    image: str
    pull_policy: str
    pull_secrets: tuple[str, ...]
    deadline_seconds: int
    cpu: str
    memory: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What a cluster asks for.

    Attributes:
        source: where the SQL is; None when nothing is asked for.
        applied: the record that it was applied.
        annotated: asked for by annotation, so the record is an annotation too.
        max_attempts: None for no limit.
        managed: Crunchy's operator has this cluster.
    """

    mode: Mode
    namespace: str
    name: str
    uid: str
    source: DatabaseInitSQL | None
    applied: str | None
    annotated: bool
    max_attempts: int | None
    managed: bool

    @property
    def origin(self) -> str:
        """Say where it is asked for; what was run for one place proves nothing for the other."""
        return "annotation" if self.annotated else "field"

    @property
    def deferred(self) -> bool:
        """Say whether the operator does by itself what is asked for."""
        return self.managed and not self.annotated

    def cluster(self) -> PostgresCluster:
        """Return the cluster as the reconciler takes it."""
        return PostgresCluster(
            self.namespace, self.name, ClusterSpec(self.source), ClusterStatus(self.applied)
        )

    def digest(self, sql: str) -> str:
        """Return what tells this SQL of this cluster from every other."""
        source = self.source
        place = [source.name, source.key] if source else []
        parts = [self.uid, self.origin, place, sql]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]

    def job_name(self, digest: str, attempt: int) -> str:
        """Return the name of a Job, and of the account and the rights that it has."""
        end = f"-init-sql-{digest}-{attempt}"
        return self.name[: _MAX_JOB_NAME - len(end)].replace(".", "-").strip("-") + end


def parse(parent: Manifest, mode: Mode) -> Wish | list[str]:
    """Read a cluster.

    Returns:
        What it asks for, or every problem as "path: what is wrong".
    """
    notes = manifests.annotations(parent)
    annotated = mode == "decorator" and FROM in notes
    source = _annotated(notes[FROM]) if annotated else _field(parent)
    problems = source if isinstance(source, list) else []
    limit = number(notes.get(MAX_ATTEMPTS, ""))
    if limit is None and MAX_ATTEMPTS in notes:
        path = f"metadata.annotations[{MAX_ATTEMPTS}]"
        problems = [*problems, f"{path}: must be a number from 1 to 999999999"]
    if problems or isinstance(source, list):
        return problems
    record = notes.get(APPLIED) if annotated else (parent.get("status") or {}).get(FIELD)
    return Wish(
        mode=mode,
        namespace=manifests.namespace(parent),
        name=manifests.name(parent),
        uid=manifests.uid(parent),
        source=source,
        applied=None if record is None else str(record),
        annotated=annotated,
        max_attempts=limit,
        managed=_managed(parent),
    )


def number(text: str) -> int | None:
    """Read a number above 0, None when it is none."""
    return int(text) if _NUMBER.match(text) else None


def _field(parent: Manifest) -> DatabaseInitSQL | list[str] | None:
    spec = parent.get("spec")
    asked = spec.get(FIELD) if isinstance(spec, dict) else None
    if asked is None:
        return None
    if not isinstance(asked, dict):
        return [f"spec.{FIELD}: must be an object with name and key"]
    return _source(asked.get("name"), asked.get("key"), f"spec.{FIELD}")


def _annotated(text: str) -> DatabaseInitSQL | list[str]:
    name, _, key = text.partition("/")
    path = f"metadata.annotations[{FROM}]"
    return _source(name, key, path)


def _source(name: object, key: object, path: str) -> DatabaseInitSQL | list[str]:
    problems = []
    if not isinstance(name, str) or len(name) > MAX_NAME or not DNS_SUBDOMAIN.match(name):
        problems.append(f"{path}: the name of the ConfigMap is missing or none")
    if not isinstance(key, str) or not key:
        problems.append(f"{path}: the key is missing")
    elif len(key) > MAX_NAME:
        problems.append(f"{path}: the key is longer than that of a ConfigMap can be")
    return problems or DatabaseInitSQL(str(name), str(key))


def _managed(parent: Manifest) -> bool:
    meta = manifests.metadata(parent)
    managers = {entry.get("manager") for entry in meta.get("managedFields") or ()}
    return _OPERATOR_MANAGER in managers or _OPERATOR_FINALIZER in (meta.get("finalizers") or ())

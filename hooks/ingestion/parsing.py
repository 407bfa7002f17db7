"""Is this DruidIngestion valid? Everything that can be known before anybody is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.ingestion import document
from hooks.ingestion.document import Document, Unreadable
from hooks.ingestion.identity import SQL_PREFIX, canonical, digest, id_problem
from hooks.ingestion.model import (
    ADOPT_ID,
    STREAMING,
    TYPES,
    Ingestion,
    Invalid,
    Spec,
    Type,
    taken_by_other,
)
from hooks.ingestion.reasons import INVALID_SPEC, UNSUPPORTED_TYPE
from hooks.ingestion.shape import Whole, shape, way_of

_EXPLAIN = re.compile(r"(\s|--[^\n]*\n)*EXPLAIN\b", re.IGNORECASE)
_TASK_MEMBERS = frozenset({"type", "id", "groupId", "resource", "spec", "context", "dataSource"})
_KNOWN: Mapping[str, frozenset[str]] = {
    "index": _TASK_MEMBERS,
    "index_parallel": _TASK_MEMBERS,
    "index_hadoop": _TASK_MEMBERS | {"hadoopDependencyCoordinates", "classpathPrefix"},
    "kafka": frozenset({"type", "id", "spec", "context", "suspended"})
    | {"dataSchema", "ioConfig", "tuningConfig"},
    "sql": frozenset({"query", "context", "parameters", "resultFormat", "header"})
    | {"typesHeader", "sqlTypesHeader"},
}
"""Top-level members by type of document; Druid takes no notice of others."""


def parse(parent: Manifest) -> Spec | Invalid:
    """Read a DruidIngestion, or say all that is wrong with it."""
    whole = shape(parent)
    if isinstance(whole, list):
        return Invalid(INVALID_SPEC, "; ".join(whole))
    kind = TYPES.get(whole.ingestion.type)
    if kind is None:
        return Invalid(
            UNSUPPORTED_TYPE,
            f"spec.ingestion.type: {whole.ingestion.type!r} is none of {', '.join(TYPES)}",
        )
    try:
        return _spec(parent, whole, kind)
    except Unreadable as error:
        return Invalid(INVALID_SPEC, str(error))


def _spec(parent: Manifest, whole: Whole, kind: Type) -> Spec | Invalid:
    ingestion = ingestion_of(whole, kind)
    problems = list(_problems(ingestion))
    if problems:
        return Invalid(INVALID_SPEC, "; ".join(problems))
    given = whole.ingestion
    own_suspension = ingestion.streaming and ingestion.document.get("suspended") is True
    return Spec(
        uid=manifests.uid(parent),
        name=manifests.name(parent),
        generation=manifests.generation(parent),
        connection=way_of(whole, manifests.namespace(parent)),
        ingestion=ingestion,
        suspend=whole.suspend or own_suspension,
        compaction=document.exact(given.compaction) if given.compaction else None,
        rules=tuple(map(document.exact, given.rules)) if given.rules else None,
        max_retries=whole.retry_policy.max_retries,
        backoff_seconds=whole.retry_policy.backoff_seconds,
        restore_drift=whole.drift == "Restore",
        taken_by_other=taken_by_other(parent),
        adopt_id=manifests.annotations(parent).get(ADOPT_ID, ""),
    )


def ingestion_of(whole: Whole, kind: Type) -> Ingestion:
    """Read spec.ingestion.

    Raises:
        Unreadable: the specification is no JSON object.
    """
    given = whole.ingestion
    where = "spec.ingestion.nativeSpec" if given.native_spec else "spec.ingestion.spec"
    try:
        written = document.from_manifest(given.native_spec) if given.native_spec else given.spec
        content = document.read(written)
    except Unreadable as error:
        raise Unreadable(f"{where}: {error}") from None
    hashed = {key: value for key, value in content.items() if key != "suspended"}
    return Ingestion(
        type=kind,
        document=content,
        written=written,
        hash=digest(canonical(hashed if kind in STREAMING else content)),
        datasource=datasource_of(content),
        own_id=_own_id(content, kind),
        warnings=tuple(_warnings(content, whole, kind)),
    )


def datasource_of(content: Document) -> str:
    """Return the datasource, wherever it stands; empty for none."""
    spec = content.get("spec")
    for holder in (spec, content):
        schema = holder.get("dataSchema") if isinstance(holder, dict) else None
        name = schema.get("dataSource") if isinstance(schema, dict) else None
        if isinstance(name, str):
            return name
    top = content.get("dataSource")
    return top if isinstance(top, str) else ""


def _own_id(content: Document, kind: Type) -> str:
    own = _written_id(content, kind)
    if not isinstance(own, str) or not own:
        return ""
    return SQL_PREFIX + own if kind == "sql" else own


def _written_id(content: Document, kind: Type) -> object:
    context = content.get("context")
    holder, key = (context, "sqlQueryId") if kind == "sql" else (content, "id")
    return holder.get(key) if isinstance(holder, dict) else None


def _problems(ingestion: Ingestion) -> Iterator[str]:
    content, where = ingestion.document, "spec.ingestion.spec"
    yield from _type_problems(ingestion)
    if not isinstance(content.get("context") or {}, dict):
        yield f"{where}: context is not an object"
    if not isinstance(content.get("suspended") or False, bool):
        yield f"{where}: suspended is not true or false"
    if not isinstance(_written_id(content, ingestion.type) or "", str):
        yield f"{where}: the id is not a string"
    if ingestion.own_id and (problem := id_problem(ingestion.own_id)):
        yield f"{where}: Druid does not take the id: {problem}"
    if ingestion.datasource and (problem := id_problem(ingestion.datasource)):
        yield f"{where}: Druid does not take the dataSource: {problem}"
    if ingestion.streaming and not ingestion.datasource:
        yield f"{where}: dataSchema.dataSource is missing"


def _type_problems(ingestion: Ingestion) -> Iterator[str]:
    content, where = ingestion.document, "spec.ingestion.spec"
    inner = content.get("type")
    if ingestion.type == "sql":
        query = content.get("query")
        if not isinstance(query, str) or not query.strip():
            yield f"{where}: query is missing: it must be a string with SQL"
        elif _EXPLAIN.match(query):
            yield f"{where}: query is an EXPLAIN, which Druid answers without running a task"
        return
    if not isinstance(inner, str) or not inner:
        yield f"{where}: type is missing"
        return
    wanted = "index_hadoop" if ingestion.type == "index-hadoop" else ingestion.type
    others = STREAMING | {"index_hadoop"}
    if (ingestion.type == "native-batch" and inner in others) or (
        ingestion.type != "native-batch" and inner != wanted
    ):
        yield f"{where}: type {inner!r} does not go with spec.ingestion.type {ingestion.type!r}"


def _warnings(content: Document, whole: Whole, kind: Type) -> Iterator[str]:
    inner = "sql" if kind == "sql" else content.get("type")
    known = _KNOWN.get("kafka" if kind in STREAMING else str(inner))
    unknown = ", ".join(sorted(set(content) - known)) if known else ""
    if unknown:
        yield f"Druid takes no notice of {unknown} at the top of the specification"
    given = whole.ingestion
    if (given.compaction or given.rules) and not datasource_of(content):
        yield "compaction and rules are not applied: only Druid knows the datasource"
    if whole.retry_policy.max_retries and kind not in STREAMING and _own_id(content, kind):
        yield "retryPolicy is not applied: Druid runs an id of your own choice only once"
    if whole.retry_policy.max_retries and kind in STREAMING:
        yield "retryPolicy is not applied: a supervisor starts its tasks again by itself"

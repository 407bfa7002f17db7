"""Which bytes are sent to Druid: the user's own, and what must be added."""

from __future__ import annotations

from hooks.ingestion.document import Document, write
from hooks.ingestion.identity import SQL_PREFIX, task_id
from hooks.ingestion.marker import Marker
from hooks.ingestion.model import Spec


def derived_id(spec: Spec, attempt: int) -> str:
    """Return the id that a run gets: the user's own, or one that only this object can have."""
    ingestion = spec.ingestion
    if ingestion.own_id:
        return ingestion.own_id
    if ingestion.streaming:
        return ingestion.datasource
    label = ingestion.datasource or spec.name
    return task_id(ingestion.endpoint, label, spec.uid, ingestion.hash, attempt)


def body(spec: Spec, id_: str) -> bytes:
    """Return what is sent, so that Druid gives it this id and its copy shows whose it is.

    A supervisor always says whether it is suspended: without that Druid would resume it. It goes
    under the id that Druid gave it, for a release that begins to honour ids would make a second
    one. An id that was derived proves itself and needs no marker.
    """
    ingestion = spec.ingestion
    content = ingestion.document
    marker = Marker(spec.uid, ingestion.hash)
    match ingestion.endpoint:
        case "supervisor":
            named = {**content, "id": id_} if ingestion.own_id else _without_id(content)
            content = marker.put({**named, "suspended": spec.suspend})
        case "task":
            content = (
                marker.put(content) if ingestion.own_id else {"id": id_, **_without_id(content)}
            )
        case "sql":
            content = marker.put(content) if ingestion.own_id else _with_query_id(content, id_)
    return write(content).encode()


def _without_id(content: Document) -> Document:
    """Drop an id that is null or empty, so that ours does not stand there twice."""
    return {key: value for key, value in content.items() if key != "id"}


def _with_query_id(content: Document, id_: str) -> Document:
    context = content.get("context") or {}
    return {**content, "context": {**context, "sqlQueryId": id_.removeprefix(SQL_PREFIX)}}

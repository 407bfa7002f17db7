"""Specifications that a real Druid takes, small enough to run in a second or two."""

from __future__ import annotations

import json
from typing import Any

DAY = "2026-03-01"
ROWS: list[dict[str, object]] = [
    {"at": f"{DAY}T06:15:00Z", "dock": "D-017", "free": 4},
    {"at": f"{DAY}T06:15:30Z", "dock": "D-022", "free": 11},
    {"at": f"{DAY}T18:40:00Z", "dock": "D-017", "free": 0},
]

Document = dict[str, Any]


def batch(datasource: str, rows: list[dict[str, object]] | None = None) -> Document:
    """Return a native batch that replaces one day with rows that stand in it.

    The first row that cannot be read ends it.
    """
    return native(datasource, inline(ROWS if rows is None else rows))


def inline(rows: list[dict[str, object]]) -> Document:
    """Return a source that holds its rows itself."""
    return {"type": "inline", "data": "\n".join(map(json.dumps, rows))}


def native(datasource: str, source: Document) -> Document:
    """Return a native batch that replaces one day with what a source gives."""
    return {
        "type": "index_parallel",
        "spec": {
            "dataSchema": _schema(datasource, intervals=[f"{DAY}/P1D"]),
            "ioConfig": {
                "type": "index_parallel",
                "inputSource": source,
                "inputFormat": {"type": "json"},
            },
            "tuningConfig": {
                "type": "index_parallel",
                "maxParseExceptions": 0,
                "maxSavedParseExceptions": 5,
            },
        },
    }


def stream(datasource: str, topic: str, brokers: str) -> Document:
    """Return a Kafka supervisor that looks every second and soon gives up on a broker."""
    return {
        "type": "kafka",
        "spec": {
            "dataSchema": _schema(datasource),
            "ioConfig": {
                "type": "kafka",
                "topic": topic,
                "inputFormat": {"type": "json"},
                "consumerProperties": {
                    "bootstrap.servers": brokers,
                    "default.api.timeout.ms": "2000",
                    "request.timeout.ms": "1000",
                },
                "taskCount": 1,
                "replicas": 1,
                "taskDuration": "PT1H",
                "startDelay": "PT1S",
                "period": "PT1S",
                "useEarliestOffset": True,
            },
            "tuningConfig": {"type": "kafka", "shutdownTimeout": "PT2S"},
        },
    }


def hadoop(datasource: str) -> Document:
    """Return a Hadoop batch, which no Druid without Hadoop can run."""
    return {
        "type": "index_hadoop",
        "spec": {
            "dataSchema": _schema(datasource, intervals=[f"{DAY}/P1D"]),
            "ioConfig": {
                "type": "hadoop",
                "inputSpec": {"type": "static", "paths": "hdfs://archive/docks.json.gz"},
            },
            "tuningConfig": {"type": "hadoop"},
        },
    }


def replace(datasource: str, *, source: Document | None = None) -> Document:
    """Return SQL that replaces a datasource with what a source gives."""
    given = json.dumps(inline(ROWS) if source is None else source)
    query = f"""
        REPLACE INTO "{datasource}" OVERWRITE ALL
        SELECT TIME_PARSE("at") AS __time, "dock"
        FROM TABLE(EXTERN('{given}', '{{"type": "json"}}')) EXTEND ("at" VARCHAR, "dock" VARCHAR)
        PARTITIONED BY DAY
        """  # noqa: S608  a test's own name
    return {"query": query, "context": {"maxNumTasks": 2}}


def _schema(datasource: str, *, intervals: list[str] | None = None) -> Document:
    grain: Document = {"segmentGranularity": "DAY", "queryGranularity": "NONE", "rollup": False}
    return {
        "dataSource": datasource,
        "timestampSpec": {"column": "at", "format": "iso"},
        "dimensionsSpec": {"dimensions": ["dock", {"type": "long", "name": "free"}]},
        "granularitySpec": grain | ({"intervals": intervals} if intervals else {}),
    }

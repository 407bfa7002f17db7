"""Reports of kinds that no recording holds whole."""

from __future__ import annotations

from typing import Any

import pytest

from hooks.effects.druid.reports import report
from hooks.effects.ports.druid import Report, Rows


def native(**payload: object) -> dict[str, Any]:
    kind = "ingestionStatsAndErrors"
    return {"type": kind, "taskId": "t", "payload": payload}


def sql(status: dict[str, Any], **payload: object) -> dict[str, Any]:
    kind = "multiStageQuery"
    return {kind: {"type": kind, "taskId": "t", "payload": {"status": status, **payload}}}


def counts(processed: int, with_error: int = 0, thrown_away: int = 0) -> dict[str, int]:
    return {
        "processed": processed,
        "processedBytes": 1,
        "processedWithError": with_error,
        "thrownAway": thrown_away,
        "unparseable": 0,
    }


def made(rows: int) -> dict[str, Any]:
    progress = {"rowsProcessed": rows, "rowsPersisted": rows, "rowsPushed": rows}
    return {"segmentGenerationProgress": {"type": "segmentGenerationProgress", **progress}}


TRACE = "\n\tat org.A.run(A.java:1)\n\t... 8 more\nCaused by: B: why\n\tat org.B.go(B.java:2)\n"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(
            {
                "ingestionStatsAndErrors": native(
                    rowStats={"totals": {"buildSegments": counts(7, 1)}}
                )
            },
            Report(rows=Rows(7, with_error=1)),
            id="rows-of-parallel-subtasks",
        ),
        pytest.param(
            {
                "ingestionStatsAndErrors": native(
                    ingestionState="DETERMINE_PARTITIONS",
                    rowStats={"determinePartitions": counts(4, 1), "buildSegments": counts(0)},
                )
            },
            Report(rows=Rows(4, with_error=1)),
            id="rows-of-a-task-that-never-built-segments",
        ),
        pytest.param(
            {
                "ingestionStatsAndErrors_0": native(rowStats={"buildSegments": counts(2, 0, 1)}),
                "ingestionStatsAndErrors_1": native(rowStats={"buildSegments": counts(3, 0, 1)}),
            },
            Report(rows=Rows(5, thrown_away=2)),
            id="compaction-of-several-intervals",
        ),
        pytest.param(
            {"ingestionStatsAndErrors": native(errorMsg=f"A: first{TRACE}", rowStats={})},
            Report(error="A: first\nCaused by: B: why"),
            id="what-caused-it-without-the-frames",
        ),
        pytest.param(
            {
                "ingestionStatsAndErrors": native(
                    unparseableEvents={"buildSegments": list("abcdefg")}
                )
            },
            Report(parse_errors=tuple("abcde")),
            id="the-first-five-bad-rows",
        ),
        pytest.param(
            sql(
                {"status": "SUCCESS"},
                counters={
                    "0": {"0": {"input0": {"type": "channel", "rows": [5]}}},
                    "1": {"0": made(3), "1": made(2)},
                },
            ),
            Report(rows=Rows(5)),
            id="sql-rows-of-all-workers",
        ),
        pytest.param(
            sql({"status": "FAILED", "errorReport": {"error": {"errorCode": "Canceled"}}}),
            Report(error="Canceled"),
            id="sql-error-without-a-sentence",
        ),
        pytest.param(
            sql(
                {
                    "status": "FAILED",
                    "errorReport": {
                        "error": {"errorCode": "TooManyWarnings", "errorMessage": "over 0"},
                        "exceptionStackTrace": f"X{TRACE}",
                    },
                    "warnings": [
                        {"error": {"errorCode": "CannotParseExternalData", "errorMessage": "row 4"}}
                    ],
                }
            ),
            Report("TooManyWarnings: over 0", ("CannotParseExternalData: row 4",)),
            id="sql-warnings-are-the-bad-rows",
        ),
        pytest.param({"error": "Can't find chatHandler for handler[t]"}, None, id="it-runs"),
        pytest.param({"ingestionStatsAndErrors": []}, None, id="nothing-that-can-be-read"),
    ],
)
def test_a_report_is_read(shown: dict[str, Any], expected: Report | None) -> None:
    assert report(shown) == expected

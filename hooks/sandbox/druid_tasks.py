"""The tasks of the double of Druid: an id runs once, ends when it is told to, and may be forgotten.

Idea: nothing is ingested. A test tells a task how it ends; in a demo, tasks succeed after a while
and report the rows of their inline data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from hooks.sandbox import druid_specs as specs
from hooks.sandbox.druid_conduct import Conduct
from hooks.sandbox.druid_replies import (
    Document,
    Refusal,
    Reply,
    druid_exception,
    exception,
    given,
    mislabelled,
    plain,
)

_LONGEST_ID, _LONGEST_ERROR = 255, 1024
_TRACE = "\n\tat org.apache.druid.Double.run(Double.java:1)\n\tat java.base/java.lang.Thread.run\n"
_OPT_IN = "druid.indexer.task.allowHadoopTaskExecution"
_HADOOP = {
    "removed": "The Apache Hadoop ingestion task was removed in Druid 37.0",
    "disabled": f"Hadoop tasks are not allowed to run on this cluster: set [{_OPT_IN}] to true",
}
SQL = "query_controller"


@dataclass(slots=True)
class SimulatedTask:
    """A task as Druid's metadata store holds it, and the report that its logs hold."""

    id: str
    type: str
    datasource: str
    payload: Document = field(repr=False)
    created: str
    since: float
    state: Literal["RUNNING", "SUCCESS", "FAILED"] = "RUNNING"
    error: str = ""
    duration: int = -1
    report: Document | None = field(default=None, repr=False)

    @property
    def status(self) -> Document:
        """What GET /status shows."""
        return {
            "id": self.id,
            "groupId": self.id,
            "type": self.type,
            "createdTime": self.created,
            "queueInsertionTime": "1970-01-01T00:00:00.000Z",
            "statusCode": self.state,
            "status": self.state,
            "runnerStatusCode": "RUNNING" if self.state == "RUNNING" else "WAITING",
            "duration": self.duration,
            "location": {"host": None, "port": -1, "tlsPort": -1},
            "dataSource": self.datasource,
            "errorMsg": _shortened(self.error) or None,
        }


class Tasks(Mapping[str, SimulatedTask]):
    """All tasks that Druid remembers, by id."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct
        self._tasks: dict[str, SimulatedTask] = {}

    def __getitem__(self, task_id: str) -> SimulatedTask:
        return self._tasks[task_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task_id: str, kind: str, datasource: str, payload: Document) -> SimulatedTask:
        """Begin a task.

        Raises:
            Refusal: there is one of this id, the queue is full, or the id is too long.
        """
        if task_id in self._tasks:
            raise Refusal(
                druid_exception(400, f"Task[{task_id}] already exists", code="entryAlreadyExists")
            )
        if len(task_id) > _LONGEST_ID:
            text = f"Encountered metadata exception for task [{task_id}]"
            raise Refusal(druid_exception(500, text, category="RUNTIME_FAILURE"))
        if sum(task.state == "RUNNING" for task in self.values()) >= self._conduct.queue:
            text = f"Task queue already contains [{self._conduct.queue}] tasks."
            raise Refusal(given(exception(text, category="CAPACITY_EXCEEDED"), status=429))
        now = self._conduct.now()
        task = SimulatedTask(task_id, kind, datasource, payload, self._conduct.time(), now)
        self._tasks[task_id] = task
        if kind == "index_hadoop" and (told := _HADOOP.get(self._conduct.hadoop_tasks)):
            task.state, task.error = "FAILED", told
        return task

    def succeed(self, task_id: str, *, processed: int | None = None, unparseable: int = 0) -> None:
        """End a task well; without a number it processed the rows of its inline data."""
        task = self._ended(task_id)
        task.state = "SUCCESS"
        count = specs.rows(task.payload) if processed is None else processed
        task.report = _report(task, count, unparseable, (), failed=False)

    def fail(
        self,
        task_id: str,
        error: str,
        *,
        parse_errors: Sequence[str] = (),
        processed: int = 0,
        reported: bool = True,
    ) -> None:
        """End a task badly.

        Args:
            task_id: of the task.
            error: what it says; for SQL "Code: sentence".
            parse_errors: of the rows that could not be parsed.
            processed: the rows that could.
            reported: whether there is a report; a task that never began has none.
        """
        task = self._ended(task_id)
        task.state = "FAILED"
        task.error = error if task.type == SQL else error + _TRACE
        if reported:
            task.report = _report(task, processed, len(parse_errors), parse_errors, failed=True)

    def end(self, task_id: str) -> None:
        """End a task that was shut down."""
        task = self._ended(task_id)
        task.state, task.error, task.duration = "FAILED", "Shutdown request from user", -1

    def forget(self, task_id: str) -> None:
        """Forget a task, as the clean-up of ended ones does."""
        del self._tasks[task_id]

    def go_on(self) -> None:
        """End what ends by itself in a demo."""
        for task in self.values():
            if task.state == "RUNNING" and self._conduct.due(task.since):
                self.succeed(task.id)

    def answer(self, method: str, task_id: str, what: str) -> Reply:
        """Answer a request about a task that there is."""
        task = self[task_id]
        match (method, what):
            case ("GET", "status"):
                return given({"task": task_id, "status": task.status})
            case ("GET", ""):
                return given({"task": task_id, "payload": task.payload})
            case ("GET", "reports"):
                return self._reported(task)
            case ("POST", "shutdown"):
                if task.state == "RUNNING" and not self._conduct.lingering:
                    self.end(task_id)
                return given({"task": task_id})
            case _:
                return Reply(405)

    def _reported(self, task: SimulatedTask) -> Reply:
        if task.report is not None:
            return given(task.report)
        if task.state == "RUNNING":
            return given({"error": f"Can't find chatHandler for handler[{task.id}]"})
        text = "No task reports were found for this task. "
        return mislabelled(404, f"{text}The task may not exist, or it may not have completed yet.")

    def _ended(self, task_id: str) -> SimulatedTask:
        task = self[task_id]
        task.duration = max(1, int((self._conduct.now() - task.since) * 1000))
        return task


def unknown(task_id: str) -> Reply:
    """Answer a request about a task that there is not."""
    return plain(404, f"Cannot find any task with id: [{task_id}]")


def _report(
    task: SimulatedTask, processed: int, unparseable: int, errors: Sequence[str], *, failed: bool
) -> Document:
    if task.type == SQL:
        return {"multiStageQuery": _entry(task, "multiStageQuery", _stages(task, processed))}
    counts = {
        "processed": processed,
        "processedBytes": 0,
        "processedWithError": 0,
        "thrownAway": 0,
        "unparseable": unparseable,
    }
    events = [{"input": "", "errorType": "unparseable", "details": [text]} for text in errors]
    payload = {
        "ingestionState": "BUILD_SEGMENTS" if failed else "COMPLETED",
        "unparseableEvents": {"determinePartitions": [], "buildSegments": events},
        "rowStats": {"determinePartitions": dict.fromkeys(counts, 0), "buildSegments": counts},
        "errorMsg": task.error or None,
    }
    return {"ingestionStatsAndErrors": _entry(task, "ingestionStatsAndErrors", payload)}


def _entry(task: SimulatedTask, kind: str, payload: Document) -> Document:
    return {"type": kind, "taskId": task.id, "payload": payload}


def _stages(task: SimulatedTask, processed: int) -> Document:
    status: Document = {"status": task.state, "durationMs": task.duration}
    if task.error:
        code, _, text = task.error.partition(": ")
        status["errorReport"] = {
            "taskId": task.id,
            "error": {"errorCode": code, **({"errorMessage": text} if text else {})},
            "exceptionStackTrace": f"java.lang.RuntimeException: {task.error}{_TRACE}",
        }
    progress = {
        "type": "segmentGenerationProgress",
        "rowsProcessed": processed,
        "rowsPersisted": processed,
        "rowsMerged": processed,
        "rowsPushed": processed,
    }
    counters = {"1": {"0": {"segmentGenerationProgress": progress}}}
    return {"status": status, "stages": [], "counters": {} if task.error else counters}


def _shortened(text: str) -> str:
    """Leave out the middle, as Druid does in a task's status."""
    if len(text) <= _LONGEST_ERROR:
        return text
    half = _LONGEST_ERROR // 2 - 20
    return f"{text[:half]}...{len(text) - 2 * half} characters omitted...{text[-half:]}"

"""Is the SQL of a cluster applied, and if not, is it time for an attempt?

Success is a Job that is complete. Everything else is a list of gates before the next Job.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hooks.core.decision import Act, Decision, Gate, Met, Stuck, Verdict, Wait, decide
from hooks.core.errors import EffectError
from hooks.effects.ports.pods import NotFound
from hooks.initsql import reasons
from hooks.initsql.facts import Facts
from hooks.initsql.instances import DATABASE
from hooks.initsql.jobs import Job
from hooks.initsql.reconciler import MissingKey, script
from hooks.initsql.script import problem

FIRST_PAUSE = 10.0
LONGEST_PAUSE = 300.0
"""Seconds between an attempt that failed and the next one; they double."""

STARTING = "a Job is made to run the SQL, and has no Pod yet"
RUNNING = "a Job runs the SQL"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A Job to run."""

    digest: str
    number: int


def applied(facts: Facts) -> str | None:
    """Return the ConfigMap whose SQL was applied, None when none was."""
    if facts.wish.applied is not None:
        return facts.wish.applied
    complete = [job.source for job in facts.jobs if job.state == "complete"]
    return complete[-1] if complete else None


def none_running(facts: Facts) -> Verdict[Attempt]:
    """One Job at a time, and each to its end."""
    for job in facts.jobs:
        if job.state == "unfinished":
            if job.trouble:
                return Wait(reasons.JOB_PENDING, f"the Pod of the Job cannot start: {job.trouble}")
            return Wait(reasons.RECONCILING, STARTING if job.waits else RUNNING)
    return Met()


def cluster_active(facts: Facts) -> Verdict[Attempt]:
    """Nobody has put the cluster to rest."""
    return Wait(reasons.RECONCILING, facts.idle) if facts.idle else Met()


def sql_readable(facts: Facts) -> Verdict[Attempt]:
    """The ConfigMap and the key are there."""
    if isinstance(facts.config_map, NotFound):
        return Wait(reasons.CONFIG_MAP_MISSING, facts.config_map.detail)
    if isinstance(facts.config_map, EffectError):
        return Wait.on(facts.config_map, reason=reasons.DEPENDENCY_UNAVAILABLE)
    try:
        _sql(facts)
    except MissingKey as error:
        return Stuck(reasons.KEY_MISSING, str(error))
    return Met()


def sql_suitable(facts: Facts) -> Verdict[Attempt]:
    """Whether it was applied can be told."""
    why = problem(_sql(facts))
    return Stuck(reasons.UNSUITABLE_SQL, f"the SQL is not run: {why}") if why else Met()


def instance_writable(facts: Facts) -> Verdict[Attempt]:
    """There is a primary; which one it is, the Job looks up again.

    What the last attempt came to is still told while there is none: it may have ended the primary.
    """
    if facts.instances.writable_pod(DATABASE) is not None:
        return Met()
    last = last_failed(facts.jobs)
    reason, before = failure(last) if last else (reasons.RECONCILING, "")
    return Wait(reason, f"{before}{before and '; '}no running instance takes writes")


def attempt_made(facts: Facts) -> Verdict[Attempt]:
    """The next attempt is due: at once for new SQL, after a pause when this SQL failed."""
    digest = facts.wish.digest(_sql(facts))
    last = last_failed(facts.jobs)
    if last is None or last.digest != digest:
        return Act(Attempt(digest, 1), reasons.RECONCILING, STARTING)
    reason, message = failure(last)
    limit = facts.wish.max_attempts
    if limit is not None and last.attempt >= limit:
        text = f"{message}; no further attempt is allowed"
        return Stuck(reasons.ATTEMPTS_EXHAUSTED, text)
    wait = _pause(last, facts)
    if wait > 0:
        return Wait(reason, message, recheck=wait)
    return Act(Attempt(digest, last.attempt + 1), reasons.RECONCILING, STARTING)


def last_failed(jobs: tuple[Job, ...]) -> Job | None:
    """Return the attempt that failed last, None when none has."""
    failed = [job for job in jobs if job.state == "failed"]
    return max(failed, key=_ended, default=None)


def failure(job: Job) -> tuple[str, str]:
    """Return the reason and the message of an attempt that failed.

    Neither changes from one attempt to the next that fails alike.
    """
    match job.outcome:
        case None:
            why = job.why or "no reason is known"
            return reasons.JOB_FAILED, f"the Job failed: {why}; the SQL may have been applied"
        case outcome if outcome.result == "again":
            return reasons.NOT_EXECUTED, outcome.detail
        case outcome if outcome.result == "unknown":
            text = (
                f"{outcome.detail}{_code(outcome.sqlstate)}: all of the SQL may have been applied"
            )
            return reasons.OUTCOME_UNKNOWN, f"{text}; it is run again"
        case outcome:
            return reasons.SQL_FAILED, f"{outcome.detail}{_code(outcome.sqlstate)}"


def _code(sqlstate: str) -> str:
    return f" (SQLSTATE {sqlstate})" if sqlstate else ""


def _ended(job: Job) -> tuple[float, int]:
    return (job.finished.timestamp() if job.finished else 0.0, job.attempt)


def _pause(last: Job, facts: Facts) -> float:
    """Return the seconds that are left of the pause after the last attempt."""
    if last.finished is None:
        return 0.0
    doubled = FIRST_PAUSE * 2 ** min(last.attempt - 1, 10)
    due = last.finished + timedelta(seconds=min(doubled, LONGEST_PAUSE))
    return (due - facts.now).total_seconds()


def _sql(facts: Facts) -> str:
    source, config_map = facts.wish.source, facts.config_map
    assert source is not None  # noqa: S101  a cluster that asks for nothing is not judged
    assert config_map is not None  # noqa: S101  looked for unless the SQL is applied
    assert not isinstance(config_map, EffectError)  # noqa: S101  behind the gate sql_readable
    return script(config_map, source.key)


ATTEMPTS: tuple[Gate[Facts, Attempt], ...] = (
    Gate("NoneRunning", none_running, reasons=reasons.FAILURES),
    Gate("ClusterActive", cluster_active),
    Gate("SQLReadable", sql_readable),
    Gate("SQLSuitable", sql_suitable),
    Gate("InstanceWritable", instance_writable, reasons=reasons.FAILURES),
    Gate("AttemptMade", attempt_made, reasons=reasons.FAILURES),
)


def judge(facts: Facts) -> Decision[Attempt]:
    """Judge what a cluster that asks for SQL needs."""
    if facts.wish.deferred:
        text = "the operator of this cluster runs spec.databaseInitSQL itself"
        return Decision("", "NotDeferred", Wait(reasons.DEFERRED, text))
    if applied(facts) is not None:
        return Decision("", "", Met())
    return decide(ATTEMPTS, facts)

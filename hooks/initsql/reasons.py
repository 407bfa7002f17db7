"""What the condition says: stable words that alerts may read."""

APPLIED = "Applied"
RECONCILING = "Reconciling"
"""A Job runs, or none can run yet."""

INVALID_SPEC = "InvalidSpec"
CONFIG_MAP_MISSING = "ConfigMapMissing"
KEY_MISSING = "KeyMissing"
UNSUITABLE_SQL = "UnsuitableSQL"
DEPENDENCY_UNAVAILABLE = "DependencyUnavailable"

SQL_FAILED = "SQLFailed"
OUTCOME_UNKNOWN = "OutcomeUnknown"
NOT_EXECUTED = "NotExecuted"
JOB_FAILED = "JobFailed"
ATTEMPTS_EXHAUSTED = "AttemptsExhausted"

JOB_PENDING = "JobPending"
"""The Pod of a Job cannot start. No end of an attempt: it is gone as soon as the Pod starts."""

DEFERRED = "DeferredToOperator"

FAILURES = frozenset({SQL_FAILED, OUTCOME_UNKNOWN, NOT_EXECUTED, JOB_FAILED})
"""Of an attempt; they stand until another one has succeeded."""

"""The condition reasons of a DruidIngestion; alerts read them, so they stay."""

from __future__ import annotations

from dataclasses import dataclass

RECONCILING = "Reconciling"

INVALID_SPEC = "InvalidSpec"
UNSUPPORTED_TYPE = "UnsupportedType"
IMMUTABLE_FIELD = "ImmutableField"
OTHER_CONTROLLER = "OtherController"
ROUTER_NOT_FOUND = "RouterNotFound"
SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105  a reason
SECRET_KEY_MISSING = "SecretKeyMissing"  # noqa: S105  a reason
SECRET_NOT_ALLOWED = "SecretNotAllowed"  # noqa: S105  a reason
ACCEPTED = "Accepted"

DEPENDENCY_UNAVAILABLE = "DependencyUnavailable"
INSUFFICIENT_PRIVILEGES = "InsufficientPrivileges"
DRUID_UNAVAILABLE = "DruidUnavailable"
NO_LEADER = "NoLeader"
TOO_MANY_REQUESTS = "TooManyRequests"
NOT_A_ROUTER = "NotARouter"
UNAUTHORIZED = "Unauthorized"
FORBIDDEN = "Forbidden"
UNTRUSTED_CERTIFICATE = "UntrustedCertificate"
MANAGEMENT_PROXY_DISABLED = "ManagementProxyDisabled"
PROTOCOL_ERROR = "ProtocolError"

SUBMITTING = "Submitting"
SUBMITTED = "Submitted"
SUBMISSION_REJECTED = "SubmissionRejected"
STREAM_CHANGE_NOT_ALLOWED = "StreamChangeNotAllowed"
ID_CONFLICT = "IdConflict"
HADOOP_REMOVED = "HadoopRemoved"
HADOOP_DISABLED = "HadoopDisabled"
STOPPING = "Stopping"

TASK_RUNNING = "TaskRunning"
TASK_SUCCEEDED = "TaskSucceeded"
TASK_FAILED = "TaskFailed"
TASK_LOST = "TaskLost"
SUPERVISOR_RUNNING = "SupervisorRunning"
SUPERVISOR_UNHEALTHY = "SupervisorUnhealthy"
SUPERVISOR_LOST = "SupervisorLost"
DRIFTED = "Drifted"
SUSPENDED = "Suspended"
NOT_SUSPENDED = "NotSuspended"
COMPACTION_REJECTED = "CompactionRejected"
RULES_REJECTED = "RulesRejected"

IN_FLIGHT = frozenset({RECONCILING, SUBMITTING, TASK_RUNNING, STOPPING, SUSPENDED})
"""Neither good nor bad: a condition with one of these, not met, is Unknown."""

CANNOT_REACH = frozenset(
    {
        DEPENDENCY_UNAVAILABLE,
        INSUFFICIENT_PRIVILEGES,
        DRUID_UNAVAILABLE,
        NO_LEADER,
        TOO_MANY_REQUESTS,
        NOT_A_ROUTER,
        UNAUTHORIZED,
        FORBIDDEN,
        UNTRUSTED_CERTIFICATE,
        MANAGEMENT_PROXY_DISABLED,
        PROTOCOL_ERROR,
    }
)
"""What any call of Druid or Kubernetes may end in."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that a person must mend: a reason, and what to do."""

    reason: str
    message: str

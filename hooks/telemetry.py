"""Logs and metrics: one JSON object per line on one stream, and one metrics registry.

Every line, ours or a library's, passes the redaction here. It is the last net, not the rule: the
rule is that nothing hands a secret to a logger. It knows keys and shapes; a bare password in the
middle of a sentence it cannot know.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import TextIO

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from structlog.typing import EventDict, Processor, WrappedLogger

from hooks import __version__

MASK = "***"

_SECRET_WORD = re.compile(
    "(pg)?passw(or)?ds?|passphrase|secrets?|tokens?|authorization|verifier|credentials?"
)
_SECRET_PAIRS = frozenset({("secret", "id"), ("private", "key"), ("api", "key")})
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")

_SECRET_VALUES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*KEY-----|$)", re.S), MASK),
    (re.compile(r"SCRAM-SHA-256\$[^\s'\"]+"), MASK),
    (re.compile(r"\bmd5[0-9a-f]{32}\b"), MASK),
    (re.compile(r"\bhv[sbr]\.[A-Za-z0-9_-]+"), MASK),
    (re.compile(r"(?<![\w.])[sbr]\.[A-Za-z0-9_-]{20,}"), MASK),
    (re.compile(r"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]*"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"(?i)\b(\w+://[^\s:/@]*):[^\s/]+@"), rf"\1:{MASK}@"),
    (
        re.compile(
            r"(?i)(password|passwd|token|secret|secret_id)(\s*=\s*|\\?[\"']\s*:\s*)"
            r"('[^']*'|\\?\"[^\"]*\"|[^\s'\"\\,;&}]+)"
        ),
        rf"\1\2{MASK}",
    ),
)

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0)


def setup(level: str, *, stream: TextIO | None = None) -> None:
    """Send every log line of this process through here.

    Only our own loggers and the server's follow `level`. Libraries stay at WARNING: at DEBUG the
    Kubernetes and HTTP clients print bodies.

    Args:
        level: the least severity of our own lines, "debug" to "error".
        stream: where lines go; stdout when not given.
    """
    structlog.configure(
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_shared(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                redact,
                structlog.processors.JSONRenderer(default=_plain),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("hooks", "gunicorn"):
        logging.getLogger(name).setLevel(level.upper())
    logging.captureWarnings(capture=True)


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.StackInfoRenderer(),
    ]


def redact(_logger: WrappedLogger | None, _method: str, event: EventDict) -> EventDict:
    """Mask what is secret by its key or by its shape; a structlog processor."""
    masked: MutableMapping[str, object] = {
        key: MASK if _secret_key(key) else _masked(value) for key, value in event.items()
    }
    return masked


def _masked(value: object) -> object:
    if isinstance(value, str):
        for pattern, replacement in _SECRET_VALUES:
            value = pattern.sub(replacement, value)
        return value
    if isinstance(value, Mapping):
        return {
            str(key): MASK if _secret_key(str(key)) else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _masked(_plain(value))


def _secret_key(key: str) -> bool:
    """Judge a key by its last words: `admin_password` is secret, `secret_name` is a name."""
    words = [word.lower() for word in _WORD.findall(key)]
    return bool(words) and (
        _SECRET_WORD.fullmatch(words[-1]) is not None or tuple(words[-2:]) in _SECRET_PAIRS
    )


def _plain(value: object) -> object:
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _arguments(value)
    return str(value)


def _arguments(value: object) -> dict[str, object]:
    """Return a dataclass's fields; those that hide from repr hide here too."""
    if not dataclasses.is_dataclass(value):
        return {}
    return {
        field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr
    }


class Metrics:
    """The metrics of one process, in a registry of their own.

    Labels hold names from our code only, never of an object: their number is bounded.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.duration = Histogram(
            "hooks_duration_seconds",
            "Time to answer a hook call",
            ("resource", "hook", "result"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.effects = Counter(
            "hooks_effects",
            "Writes to PostgreSQL and OpenBao; outcome is ok or the class of the error",
            ("resource", "operation", "outcome"),
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "hooks_in_flight", "Sync and finalize calls being worked on", registry=self.registry
        )
        self.rejected = Counter(
            "hooks_rejected",
            "Calls answered 429, since too many were in flight",
            ("resource", "hook"),
            registry=self.registry,
        )
        build = Gauge("hooks_build_info", "Always 1", ("version",), registry=self.registry)
        build.labels(__version__).set(1)


class Effects:
    """Tells of each write: one log line and one count.

    An action is data without secrets, so it may be logged whole.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger(__name__)

    def __call__(self, resource: str, action: object, outcome: str) -> None:
        """Log and count one write.

        Args:
            resource: whose reconciliation made it.
            action: the dataclass that describes it.
            outcome: "ok", or the class name of the error.
        """
        operation = snake_case(type(action).__name__)
        self._metrics.effects.labels(resource, operation, outcome).inc()
        self._log.info(
            "effect",
            resource=resource,
            operation=operation,
            outcome=outcome,
            arguments=_arguments(action),
        )


def snake_case(name: str) -> str:
    """Turn `CreateRole` into `create_role`."""
    return "_".join(word.lower() for word in _WORD.findall(name))

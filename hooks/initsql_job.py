"""The program of an init-SQL Job: its composition root.

It has no settings: what it needs are arguments, none of them secret. The Job's own rights may
arrive a moment after its Pod, so for a while a refusal is no answer.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from hooks.core.deadline import Deadline
from hooks.core.errors import Denied, EffectError, Unavailable
from hooks.effects import kubernetes
from hooks.effects.config_maps import LiveConfigMaps
from hooks.effects.pods import PodReader, Psql, WebSocketExec
from hooks.effects.ports.pods import NotNow
from hooks.initsql import attempt, outcome
from hooks.initsql.attempt import Order, Ports
from hooks.initsql.outcome import Outcome
from hooks.initsql.reconciler import MissingKey

_PATIENCE = 60.0
_PAUSE = 2.0
_MARGIN = 15
"""Seconds of the Job's time that its Pod needs to start and to stop."""


def run(order: Order, *, seconds: float, termination_log: Path) -> int:
    """Make one attempt and return the exit code: 0 applied, 1 failed, 75 try again.

    Args:
        order: what the Job was made for.
        seconds: after which Kubernetes stops the Job.
        termination_log: where Kubernetes reads the termination message.
    """
    ended = _attempt(order, Deadline(seconds - _MARGIN))
    message = ended.write()
    print(message)  # noqa: T201  the log of the Job: no word of the SQL is in it
    try:
        termination_log.write_text(message)
    except OSError as error:
        print(f"{termination_log}: {error.strerror}", file=sys.stderr)  # noqa: T201  the same
    return outcome.EXIT_CODES[ended.result]


def _attempt(order: Order, deadline: Deadline) -> Outcome:
    try:
        ports = _ports(deadline)
        _patiently(lambda: attempt.make(order, ports))
    except EffectError as error:
        return outcome.of(error)
    except MissingKey as error:
        return Outcome("again", str(error))
    return Outcome("applied", "the SQL was applied")


def _patiently(make: Callable[[], None]) -> None:
    """Try again while nothing can have been executed and it may only be too early."""
    patience = Deadline(_PATIENCE)
    while True:
        try:
            return make()
        except (Denied, Unavailable) as error:
            if isinstance(error, NotNow) or patience.left() < _PAUSE:
                raise
        threading.Event().wait(_PAUSE)


def _ports(deadline: Deadline) -> Ports:
    kubeconfig = os.environ.get("KUBECONFIG")  # noqa: TID251  a Job has no settings
    client = kubernetes.client(Path(kubeconfig) if kubeconfig else None)
    reader = kubernetes.KubernetesApi(client).bind(deadline)
    remote = WebSocketExec(client, deadline)
    return Ports(
        kubernetes=reader,
        config_maps=LiveConfigMaps(reader),
        pods=PodReader(client, deadline),
        psql=lambda application: Psql(remote, deadline, application=application),
    )

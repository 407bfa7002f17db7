"""The real server with a stub for a resource; run as a program by the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import flask

from hooks import server
from hooks.app import Limits, create_app
from hooks.settings import Settings
from hooks.telemetry import Metrics
from tests.app.stubs import Stub, services


def build(settings: Settings, ready: Callable[[], bool]) -> flask.Flask:
    return create_app(
        [Stub()],
        services,
        tokens=lambda: [path.read_bytes().strip() for path in settings.hook_token_files],
        ready=ready,
        metrics=Metrics(),
        limits=Limits(settings.max_in_flight, settings.request_seconds),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.SOCKET_SECONDS = float(sys.argv[1])
    server.serve(Settings.from_process(), build)

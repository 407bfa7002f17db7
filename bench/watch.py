"""How long the hooks wait for each port: the services of a request, with a clock around calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import cast

from hooks.effects.ports import Admin, CredentialStore, Kubernetes, Postgres, Services

_NAMES = {"administer": "PostgreSQL logins", "log_in": "PostgreSQL logins"}
_DATABASE = "create_database"


class Watch:
    """Seconds by what was called."""

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def services(self, services: Services) -> Services:
        """Return services that are watched."""
        return replace(
            services,
            kubernetes=cast("Kubernetes", _Watched(services.kubernetes, self, "Kubernetes")),
            postgres=cast("Postgres", _WatchedPostgres(services.postgres, self)),
            credentials=cast("CredentialStore", _Watched(services.credentials, self, "OpenBao")),
        )

    def last(self, method: str) -> float:
        """Return the seconds of the last call of a method."""
        return self._last[method]

    def total(self, name: str) -> float:
        """Return the seconds that all calls of one kind took."""
        return self._totals.get(name, 0.0)

    def totals(self) -> list[tuple[str, float]]:
        """Return what took how many seconds, the longest first."""
        return sorted(self._totals.items(), key=lambda item: -item[1])

    @contextmanager
    def counting(self, name: str, method: str) -> Iterator[None]:
        """Count what is done inside."""
        began = time.perf_counter()
        try:
            yield
        finally:
            seconds = self._last[method] = time.perf_counter() - began
            what = "CREATE DATABASE" if method == _DATABASE else name
            self._totals[what] = self._totals.get(what, 0.0) + seconds


class _Watched:
    """Any port."""

    def __init__(self, port: object, watch: Watch, name: str) -> None:
        self._port = port
        self._watch = watch
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., object]:
        call: Callable[..., object] = getattr(self._port, method)

        def watched(*args: object, **kwargs: object) -> object:
            with self._watch.counting(_NAMES.get(method, self._name), method):
                return call(*args, **kwargs)

        return watched


class _WatchedPostgres(_Watched):
    """PostgreSQL, whose admin session is a port of its own."""

    def __init__(self, postgres: Postgres, watch: Watch) -> None:
        super().__init__(postgres, watch, "SQL")
        self._postgres = postgres

    @contextmanager
    def administer(self, *args: object) -> Iterator[Admin]:
        """Open the admin session."""
        administer = cast("Callable[..., AbstractContextManager[Admin]]", self._postgres.administer)
        session = administer(*args)
        with self._watch.counting("PostgreSQL logins", "administer"):
            admin = session.__enter__()
        try:
            yield cast("Admin", _Watched(admin, self._watch, "SQL"))
        finally:
            session.__exit__(None, None, None)

"""One call's way to the outside: the services, and one admin session for its whole length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from hooks.core.errors import Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.instances import admin_login, endpoint_of
from hooks.effects.ports import INSTANCES, Admin, Endpoint, Login, Services
from hooks.tenant.model import Config


@dataclass(slots=True)
class World:
    """Services of a request, with the admin session opened at its first use.

    The session holds the Tenant's lock, so there is one, and it stays until the stack closes.
    """

    services: Services
    config: Config
    stack: ExitStack
    _instance: Manifest | None = field(default=None, repr=False)
    _login: Login | None = field(default=None, repr=False)
    _endpoint: Endpoint | None = None
    _admin: Admin | None = None

    def instance(self, name: str) -> Manifest | None:
        """Read the Instance, live at each look."""
        self._instance = self.services.kubernetes.get(INSTANCES, name)
        return self._instance

    def admin(self) -> Admin:
        """Return the admin session on the server of the Instance that was read last.

        Raises:
            Unavailable: the Instance was moved to another server since the session was opened.
        """
        if self._instance is None:
            raise Unavailable("Kubernetes", "the PostgreSQLInstance is not there")
        endpoint = endpoint_of(self._instance)
        if self._admin is None:
            self._admin = self.stack.enter_context(
                self.services.postgres.administer(endpoint, self.admin_login())
            )
            self._endpoint = endpoint
        elif self._endpoint != endpoint:
            raise Unavailable("PostgreSQL", "the Instance's endpoint changed during this call")
        return self._admin

    def admin_login(self) -> Login:
        """Return the admin's login; read once a call."""
        if self._login is None:
            if self._instance is None:
                raise Unavailable("Kubernetes", "the PostgreSQLInstance is not there")
            self._login = admin_login(
                self.services.kubernetes, self.config.controller_namespace, self._instance
            )
        return self._login

    @contextmanager
    def lock(self, uid: str) -> Iterator[bool]:
        """Take the Tenant's lock; it is freed when the admin session closes."""
        yield self.admin().try_lock(uid)

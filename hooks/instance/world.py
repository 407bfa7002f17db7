"""One call's way to the outside: the services, and one admin session for its whole length."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from hooks.core.manifests import Manifest
from hooks.effects.instances import admin_login
from hooks.effects.ports import Admin, Endpoint, Login, Services
from hooks.instance.model import Config


@dataclass(slots=True)
class World:
    """Services of a request, with the admin session opened at its first use."""

    services: Services
    config: Config
    parent: Manifest = field(repr=False)
    endpoint: Endpoint
    stack: ExitStack
    _login: Login | None = field(default=None, repr=False)
    _admin: Admin | None = None

    def login(self) -> Login:
        """Return the admin's login; read once a call."""
        if self._login is None:
            self._login = admin_login(
                self.services.kubernetes, self.config.controller_namespace, self.parent
            )
        return self._login

    def admin(self) -> Admin:
        """Return the admin session."""
        if self._admin is None:
            self._admin = self.stack.enter_context(
                self.services.postgres.administer(self.endpoint, self.login())
            )
        return self._admin

    @contextmanager
    def lock(self, uid: str) -> Iterator[bool]:
        """Take the Instance's lock; it is freed when the admin session closes."""
        yield self.admin().try_lock(uid)

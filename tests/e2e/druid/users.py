"""Users of a Druid with basic authentication, each with the permissions that a test gives it."""

from __future__ import annotations

import secrets

from hooks.effects.ports import Login
from tests.e2e.druid.configuration import ADMIN
from tests.e2e.druid.server import DruidServer
from tests.e2e.druid.waiting import until

_SECURITY = "/proxy/coordinator/druid-ext/basic-security"
_AUTHENTICATION = f"{_SECURITY}/authentication/db/passwords"
_AUTHORIZATION = f"{_SECURITY}/authorization/db/permissions"

Permission = tuple[str, str, str]
"""Type and name of a resource, the name a regular expression; and READ or WRITE."""

READS: Permission = ("DATASOURCE", ".*", "READ")
WRITES: Permission = ("DATASOURCE", ".*", "WRITE")
READS_EXTERNAL: Permission = ("EXTERNAL", ".*", "READ")
INGESTS = (READS, WRITES, READS_EXTERNAL)


def make_user(server: DruidServer, *permissions: Permission) -> Login:
    """Make a user of its own name who has these permissions."""
    login = Login(f"user_{secrets.token_hex(4)}", secrets.token_hex(12))
    add(server, login, *permissions)
    return login


def add(server: DruidServer, login: Login, *permissions: Permission) -> None:
    """Add a user who has these permissions through a role, and wait until the user gets in.

    The admin is there already and may do everything: only its password is set.
    """
    user = f"users/{login.username}"
    if login.username != ADMIN:
        server.call("POST", f"{_AUTHENTICATION}/{user}")
        server.call("POST", f"{_AUTHORIZATION}/{user}")
        server.call("POST", f"{_AUTHORIZATION}/roles/{login.username}")
        server.call("POST", f"{_AUTHORIZATION}/{user}/roles/{login.username}")
        permit(server, login, *permissions)
    set_password(server, login)


def permit(server: DruidServer, login: Login, *permissions: Permission) -> None:
    """Give a user these permissions and no others."""
    rules = [
        {"resource": {"type": type_, "name": name}, "action": action}
        for type_, name, action in permissions
    ]
    server.call("POST", f"{_AUTHORIZATION}/roles/{login.username}/permissions", rules)


def set_password(server: DruidServer, login: Login) -> None:
    """Give a user this password, and wait until Router and Broker know it."""
    path = f"{_AUTHENTICATION}/users/{login.username}/credentials"
    server.call("POST", path, {"password": login.password})
    until(lambda: server.lets_in(login))

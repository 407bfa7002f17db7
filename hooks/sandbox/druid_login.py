"""Who asks the double of Druid: basic authentication, in the forms of the real one."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping

from hooks.sandbox.druid_conduct import User
from hooks.sandbox.druid_replies import Document, Refusal, Reply, page


def who(users: Mapping[str, User], header: str) -> User | None:
    """Return who asks, by the Authorization header; None where nobody is asked who he is.

    Raises:
        Refusal: there is no such user, or the password is wrong.
    """
    if not users:
        return None
    scheme, _, encoded = header.partition(" ")
    if scheme != "Basic":
        raise Refusal(_challenge())
    try:
        name, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise Refusal(page(401, "User authentication failed.")) from None
    user = users.get(name)
    if user is None:
        raise Refusal(page(401, "Unauthorized"))
    if user.password != password:
        raise Refusal(page(401, "User authentication failed."))
    return user


def _challenge() -> Reply:
    shown: Document = dict.fromkeys(("error", "errorMessage", "errorClass", "host"))
    shown["error"] = "Unauthorized request"
    body = json.dumps(shown).encode()
    return Reply(401, body, "application/json;charset=utf-8", challenge=True)

"""Reach the server of a PostgreSQLInstance: where it is, and who administers it.

Shared by the Instance, which proves that this works, and the Tenant, which relies on it.
"""

from __future__ import annotations

from hooks.core import manifests
from hooks.core.errors import Refused, Unavailable
from hooks.core.manifests import Manifest
from hooks.effects.ports import Endpoint, Kubernetes, Login


def endpoint_of(instance: Manifest) -> Endpoint:
    """Read spec.endpoint of an Instance that the API server has defaulted."""
    endpoint = instance["spec"]["endpoint"]
    return Endpoint(
        host=endpoint["host"],
        hostaddr=endpoint["hostaddr"],
        port=int(endpoint.get("port", 5432)),
        database=endpoint.get("database", "postgres"),
        ssl_mode=endpoint.get("sslMode", "verify-full"),
    )


def admin_login(kubernetes: Kubernetes, namespace: str, instance: Manifest) -> Login:
    """Read the admin Secret that an Instance names.

    Args:
        kubernetes: live reads.
        namespace: the controller's own; an Instance can name no other.
        instance: its manifest.

    Raises:
        Unavailable: there is no such Secret.
        Refused: a key is missing, empty, or no text.
        EffectError: the API server did not answer, or forbids it.
    """
    reference = instance["spec"]["adminCredentialRef"]
    name = str(reference["name"])
    secret = kubernetes.secret(namespace, name)
    if secret is None:
        raise Unavailable(
            "Kubernetes", f"Secret {namespace}/{name} with the admin login is not there: create it"
        )
    values = []
    for field, default in (("usernameKey", "username"), ("passwordKey", "password")):
        key = str(reference.get(field, default))
        value = _text(secret.data.get(key, b""))
        if not value:
            raise Refused(
                "Kubernetes",
                f"Secret {namespace}/{name} has no usable value under key {key!r}:"
                f" add it, or correct spec.adminCredentialRef.{field}",
            )
        values.append(value)
    return Login(*values)


def _text(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


def condition_is_current(instance: Manifest) -> bool:
    """Say whether Ready is True for the generation that is there now.

    status.observedGeneration says nothing: Metacontroller writes it at every sync.
    """
    ready = manifests.condition(instance, "Ready")
    return ready.get("status") == "True" and ready.get("observedGeneration") == (
        manifests.generation(instance)
    )

"""How a cluster is reached: the Router, its trust, and the login, read from Secrets by name."""

from __future__ import annotations

from dataclasses import dataclass, field

from hooks.core.contract import Objects
from hooks.effects.ports import Kubernetes, Login, Secret
from hooks.effects.ports.druid import Router
from hooks.ingestion import router
from hooks.ingestion.identity import digest
from hooks.ingestion.model import Config, Connection, SecretRef, Tls
from hooks.ingestion.reasons import (
    SECRET_KEY_MISSING,
    SECRET_NOT_ALLOWED,
    SECRET_NOT_FOUND,
    Fault,
)


class Missing(Exception):
    """A Secret or a value in it is not there; carries the fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.reason)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Access:
    """Everything that is needed to ask a cluster.

    Attributes:
        secret: the login's Secret and its version, so that a change is seen; empty for none.
    """

    router: Router
    login: Login | None = field(default=None, repr=False)
    secret: str = ""

    def fingerprint(self, generation: int) -> str:
        """Return what a refusal depends on; it changes when asking again may help.

        No password goes into it: a status is read by many, and a hash can be guessed at.
        """
        return digest(str(generation), self.router.url, self.secret)


def find(
    connection: Connection, related: Objects, kubernetes: Kubernetes, config: Config
) -> Access | Fault:
    """Find the way to a cluster.

    Raises:
        EffectError: Kubernetes did not answer.
    """
    tls = connection.tls
    url = router.url(related, connection.namespace, connection.cluster, tls=tls is not None)
    if isinstance(url, Fault):
        return url
    try:
        trusted = _trusted(url, tls or Tls(), connection.namespace, kubernetes)
        if connection.secret is None:
            return Access(trusted)
        secret = _login_secret(connection, connection.secret, kubernetes, config)
        seen = f"{secret.uid}@{secret.version}"
        return Access(trusted, _login(secret, connection.secret), seen)
    except Missing as missing:
        return missing.fault


def _trusted(url: str, tls: Tls, namespace: str, kubernetes: Kubernetes) -> Router:
    ca_pem = client_pem = None
    if tls.ca_secret:
        secret = _secret(kubernetes, namespace, tls.ca_secret, "spec.tls.caSecretRef")
        ca_pem = _value(secret, namespace, tls.ca_key, "spec.tls.caSecretRef.key")
    if tls.client_secret:
        where = "spec.tls.clientCertSecretRef"
        secret = _secret(kubernetes, namespace, tls.client_secret, where)
        certificate = _value(secret, namespace, "tls.crt", where)
        client_pem = (certificate, _value(secret, namespace, "tls.key", where))
    return Router(url, ca_pem=ca_pem, client_pem=client_pem, verify=tls.verify)


def _login_secret(
    connection: Connection, reference: SecretRef, kubernetes: Kubernetes, config: Config
) -> Secret:
    elsewhere = reference.namespace != connection.namespace
    lent = config.secret_namespaces - {config.controller_namespace}
    if elsewhere and reference.namespace not in lent:
        raise Missing(
            Fault(
                SECRET_NOT_ALLOWED,
                f"spec.auth.secretRef.namespace: Secrets of namespace {reference.namespace} may not"
                f" be used here: put the Secret into namespace {connection.namespace}, or have an"
                " administrator allow it",
            )
        )
    return _secret(kubernetes, reference.namespace, reference.name, "spec.auth.secretRef")


def _secret(kubernetes: Kubernetes, namespace: str, name: str, where: str) -> Secret:
    secret = kubernetes.secret(namespace, name)
    if secret is None:
        raise Missing(
            Fault(
                SECRET_NOT_FOUND,
                f"{where}: Secret {namespace}/{name} is not there: create it, or correct {where}",
            )
        )
    return secret


def _value(secret: Secret, namespace: str, key: str, where: str) -> bytes:
    value = secret.data.get(key, b"")
    if not value:
        raise Missing(_unusable(secret, namespace, key, where))
    return value


def _unusable(secret: Secret, namespace: str, key: str, where: str) -> Fault:
    return Fault(
        SECRET_KEY_MISSING,
        f"{where}: Secret {namespace}/{secret.name} has no usable value under key {key!r}: add it,"
        f" or correct {where}",
    )


def _login(secret: Secret, reference: SecretRef) -> Login:
    """Read user name and password; one line break at the end is of the editor, not of them."""
    texts: list[str] = []
    for key, where in (
        (reference.username_key, "spec.auth.usernameKey"),
        (reference.password_key, "spec.auth.passwordKey"),
    ):
        try:
            text = _value(secret, reference.namespace, key, where).decode()
        except UnicodeDecodeError:
            text = ""
        text = text.removesuffix("\n").removesuffix("\r")
        # Basic authentication ends the name at its first colon.
        if not text or "\0" in text or (not texts and ":" in text):
            raise Missing(_unusable(secret, reference.namespace, key, where))
        texts.append(text)
    return Login(*texts)

"""The Druids of this machine, and what makes the user's DruidIngestions lead to them.

There are two doubles, since a sample may ask for TLS and a login and another may not: one asks
nobody who he is, the other wants a certificate and a password. A real Druid may take the place of
the first. Each Router gets a Service, each Secret that is named and not among the files is made.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority, CertificateFiles
from hooks.sandbox.druid import Conduct, DruidServer, User

INGESTION = "DruidIngestion"
USER = "druid-operator"
STEP_SECONDS = 1.0
"""After so long a task of the doubles ends well."""


@dataclass(frozen=True, slots=True)
class LocalDruids:
    """What leads where.

    Attributes:
        url: of the Router that objects without spec.tls are led to.
        double: what serves it; None for a real one.
        secured: what serves the others.
    """

    url: str
    double: DruidServer | None
    secured: DruidServer
    ca_file: Path
    client: CertificateFiles

    @classmethod
    def start(cls, authority: Authority, url: str, stack: ExitStack) -> Self:
        """Start the doubles; with the URL of a real Druid, only the one with TLS."""
        plain = None if url else stack.enter_context(DruidServer(Conduct(seconds=STEP_SECONDS)))
        user = User(secrets.token_urlsafe(24))
        secured = DruidServer(
            Conduct(seconds=STEP_SECONDS, users={USER: user}),
            certificate=authority.issue("druid", dns=["localhost"], ips=["127.0.0.1"]),
            client_ca=authority.ca_file,
        )
        return cls(
            url=url or (plain.url if plain else ""),
            double=plain,
            secured=stack.enter_context(secured),
            ca_file=authority.ca_file,
            client=authority.issue("druid-client", dns=["database-hooks"]),
        )

    def needed(self, objects: Iterable[Manifest]) -> list[Manifest]:
        """Return Namespaces, Services and Secrets for the DruidIngestions among the objects."""
        objects = list(objects)
        there = {_identity(manifest) for manifest in objects}
        made: dict[tuple[str, str, str], Manifest] = {}
        for manifest in objects:
            spec = manifest.get("spec")
            if manifest.get("kind") == INGESTION and isinstance(spec, dict):
                found = self._for(manifests.namespace(manifest), spec)
                made |= {_identity(each): each for each in found}
        return [each for identity, each in made.items() if identity not in there]

    def _for(self, namespace: str, spec: Manifest) -> Iterator[Manifest]:
        tls, auth = _part(spec, "tls"), _part(spec, "auth")
        yield self._service(namespace, str(spec.get("druidCluster")), secured=bool(tls))
        name = _name(auth, "secretRef")
        if name:
            login = {
                str(auth.get("usernameKey") or "OperatorUserName"): USER,
                str(auth.get("passwordKey") or "OperatorPassword"): self._password,
            }
            yield _secret(str(_part(auth, "secretRef").get("namespace") or namespace), name, login)
        name = _name(tls, "caSecretRef")
        if name:
            key = str(_part(tls, "caSecretRef").get("key") or "ca.crt")
            yield _secret(namespace, name, {key: self.ca_file.read_text()})
        name = _name(tls, "clientCertSecretRef")
        if name:
            pair = {"tls.crt": self.client.cert.read_text(), "tls.key": self.client.key.read_text()}
            yield _secret(namespace, name, pair)

    @property
    def _password(self) -> str:
        return self.secured.conduct.users[USER].password

    def _service(self, namespace: str, cluster: str, *, secured: bool) -> Manifest:
        url = urlsplit(self.secured.url if secured else self.url)
        host = "localhost" if url.hostname == "127.0.0.1" else url.hostname
        port = url.port or (443 if url.scheme == "https" else 80)
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "name": f"{cluster}-router",
                "namespace": namespace,
                "labels": {"druid_cr": cluster, "component": "router"},
            },
            "spec": {
                "type": "ExternalName",
                "externalName": host,
                "ports": [{"name": url.scheme, "port": port}],
            },
        }


def _identity(manifest: Manifest) -> tuple[str, str, str]:
    return (str(manifest.get("kind")), manifests.namespace(manifest), manifests.name(manifest))


def _part(holder: Manifest, key: str) -> Manifest:
    found = holder.get(key)
    return found if isinstance(found, dict) else {}


def _name(holder: Manifest, key: str) -> str:
    name = _part(holder, key).get("name")
    return name if isinstance(name, str) else ""


def _secret(namespace: str, name: str, texts: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }

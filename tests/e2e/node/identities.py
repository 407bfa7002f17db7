"""Who may talk to the API server, and how it is known: certificates, tokens, kubeconfigs."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hooks.sandbox.certificates import Authority
from tests.e2e.node.places import ADDRESS, API, API_SERVICE, NAME, RUN

_DNS = "kubernetes.default.svc.cluster.local"
# Files of a user, the user, its groups.
_USERS = (
    ("admin", "admin", "system:masters"),
    ("kubelet", f"system:node:{NAME}", "system:nodes"),
    ("scheduler", "system:kube-scheduler", ""),
    ("controllers", "system:kube-controller-manager", ""),
    ("proxy", "system:kube-proxy", ""),
    ("dns", "dns", ""),
)


@dataclass(frozen=True, slots=True)
class Identities:
    """The files, all readable by their owner only."""

    ca: Path
    api_cert: Path
    api_key: Path
    client_cert: Path
    client_key: Path
    account_key: Path
    account_public_key: Path
    tokens: Path

    def kubeconfig(self, user: str) -> Path:
        """Return the kubeconfig of admin, kubelet, scheduler, controllers, proxy or dns."""
        return RUN / f"{user}.kubeconfig"


def make() -> Identities:
    """Make everything anew."""
    authority = Authority(RUN / "pki")
    names = ["localhost", *(".".join(_DNS.split(".")[:length]) for length in range(1, 6))]
    server = authority.issue("apiserver", dns=names, ips=[ADDRESS, API_SERVICE, "127.0.0.1"])
    # The kubelet trusts whoever shows a certificate of this authority.
    client = authority.issue("kubelet-client", dns=["kubelet-client"], common_name="kubelet-client")
    private, public = _account_keys()
    made = Identities(
        ca=authority.ca_file,
        api_cert=server.cert,
        api_key=server.key,
        client_cert=client.cert,
        client_key=client.key,
        account_key=private,
        account_public_key=public,
        tokens=RUN / "tokens.csv",
    )
    _make_users(made)
    return made


def _account_keys() -> tuple[Path, Path]:
    """Return the key pair that the tokens of service accounts are signed with."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return (
        _private_file(RUN / "pki" / "accounts.key", private.decode()),
        _private_file(RUN / "pki" / "accounts.pub", public.decode()),
    )


def _make_users(made: Identities) -> None:
    lines = []
    for file, user, groups in _USERS:
        token = secrets.token_urlsafe(24)
        lines.append(f'{token},{user},{user},"{groups}"\n')
        _private_file(made.kubeconfig(file), _kubeconfig(made.ca, token))
    _private_file(made.tokens, "".join(lines))


def _kubeconfig(ca: Path, token: str) -> str:
    cluster = {"server": API, "certificate-authority": str(ca)}
    return json.dumps(  # which is YAML
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": NAME, "cluster": cluster}],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
            "current-context": NAME,
        }
    )


def _private_file(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path

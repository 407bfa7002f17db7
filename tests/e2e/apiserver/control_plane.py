"""A Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

There is no node, so Pods are admitted and stay Pending. Everything the API server is asked is in
its audit log, with no bodies.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.processes import Process, free_port
from tests.e2e.tools.programs import program

_CONTROLLERS = "system:kube-controller-manager"
_ISSUER = "https://kubernetes.default.svc.cluster.local"
_SERVICES = "10.96.0.0/24"


@dataclass(frozen=True)
class ControlPlane:
    """A running API server; `started` makes one."""

    url: str
    ca_file: Path
    kubeconfig: Path
    audit_file: Path

    def kubeconfig_of(self, path: Path, token: Path | str) -> Path:
        """Write a kubeconfig for whoever has the token; a file with one is read again and again."""
        user = {"tokenFile": str(token)} if isinstance(token, Path) else {"token": token}
        return _kubeconfig(path, self.url, self.ca_file, user)

    def audited(self) -> list[Manifest]:
        """Return everything that was asked for, as far as it is answered."""
        return [json.loads(line) for line in self.audit_file.read_text().splitlines()]


@contextmanager
def started(directory: Path, authority: Authority) -> Iterator[ControlPlane]:
    """Start the three programs; leaving the block stops them."""
    directory.mkdir(parents=True, exist_ok=True)
    with (
        _etcd(directory) as etcd,
        _api_server(directory, authority, etcd) as control_plane,
        _controller_manager(directory, control_plane),
    ):
        yield control_plane


@contextmanager
def _etcd(directory: Path) -> Iterator[str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    flags = {
        "data-dir": directory / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    with _running("etcd", flags, directory) as process:
        process.wait_until(
            lambda: requests.get(f"{client}/health", timeout=5).ok,
            despite=(requests.RequestException,),
        )
        yield client


@contextmanager
def _api_server(directory: Path, authority: Authority, etcd: str) -> Iterator[ControlPlane]:
    tokens = {name: secrets.token_urlsafe(24) for name in ("admin", _CONTROLLERS)}
    port = free_port()
    control_plane = ControlPlane(
        url=f"https://127.0.0.1:{port}",
        ca_file=authority.ca_file,
        kubeconfig=directory / "admin.kubeconfig",
        audit_file=directory / "audit.log",
    )
    control_plane.kubeconfig_of(control_plane.kubeconfig, tokens["admin"])
    control_plane.kubeconfig_of(directory / "controllers.kubeconfig", tokens[_CONTROLLERS])
    flags = _flags(directory, authority, tokens) | {
        "etcd-servers": etcd,
        "secure-port": port,
        "audit-log-path": control_plane.audit_file,
    }
    with _running("kube-apiserver", flags, directory) as process:
        headers = {"Authorization": f"Bearer {tokens['admin']}"}
        ready = f"{control_plane.url}/readyz"
        process.wait_until(
            lambda: (
                requests.get(ready, headers=headers, verify=str(authority.ca_file), timeout=5).ok
            ),
            despite=(requests.RequestException,),
            timeout=120,
        )
        yield control_plane


def _flags(directory: Path, authority: Authority, tokens: Mapping[str, str]) -> dict[str, object]:
    certificate = authority.issue("kubernetes", dns=["localhost"], ips=["127.0.0.1"])
    rows = (f'{token},{name},{name},"{_group(name)}"\n' for name, token in tokens.items())
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata"}],
    }
    key = _private(directory / "accounts.key", _rsa_key())
    return {
        "bind-address": "127.0.0.1",
        # Loopback cannot be the endpoint of the Service kubernetes.
        "endpoint-reconciler-type": "none",
        "cert-dir": directory,
        "tls-cert-file": certificate.cert,
        "tls-private-key-file": certificate.key,
        "token-auth-file": _private(directory / "tokens.csv", "".join(rows)),
        "authorization-mode": "RBAC",
        "service-account-issuer": _ISSUER,
        "service-account-key-file": key,
        "service-account-signing-key-file": key,
        "service-cluster-ip-range": _SERVICES,
        "audit-policy-file": _private(directory / "audit.yaml", yaml.safe_dump(policy)),
    }


def _group(name: str) -> str:
    return "system:masters" if name == "admin" else ""


@contextmanager
def _controller_manager(directory: Path, control_plane: ControlPlane) -> Iterator[None]:
    kubeconfig = directory / "controllers.kubeconfig"
    flags = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authentication-skip-lookup": "true",
        "authorization-kubeconfig": kubeconfig,
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": directory,
        "leader-elect": "false",
        "root-ca-file": control_plane.ca_file,
        "service-account-private-key-file": directory / "accounts.key",
        "use-service-account-credentials": "true",
        # Its default of 20 requests a second makes its start four seconds longer.
        "kube-api-qps": 300,
        "kube-api-burst": 600,
    }
    with _running("kube-controller-manager", flags, directory):
        yield


@contextmanager
def _running(name: str, flags: Mapping[str, object], directory: Path) -> Iterator[Process]:
    arguments = [f"--{flag}={value}" for flag, value in flags.items()]
    process = Process(
        [str(program(name)), *arguments],
        log=directory / f"{name}.log",
        env={"PATH": os.defpath, "HOME": str(directory)},
    )
    try:
        yield process
    finally:
        process.stop()


def _kubeconfig(path: Path, url: str, ca_file: Path, user: Mapping[str, str]) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "test", "cluster": {"server": url, "certificate-authority": str(ca_file)}}
        ],
        "users": [{"name": "test", "user": dict(user)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    return _private(path, yaml.safe_dump(config))


def _private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def _rsa_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()

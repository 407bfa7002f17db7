"""etcd, the API server, the controllers and the scheduler."""

from __future__ import annotations

import signal
import ssl
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from hooks.sandbox.processes import Process, free_port
from tests.e2e.node.identities import Identities
from tests.e2e.node.places import ADDRESS, API, API_PORT, LOGS, RUN, SERVICES
from tests.e2e.tools.programs import program


def start(identities: Identities) -> dict[str, Process]:
    """Start them, in the order in which they need each other; the API server is ready."""
    etcd_url = f"http://127.0.0.1:{free_port()}"
    etcd = launch(
        "etcd",
        {
            "data-dir": RUN / "etcd",
            "listen-client-urls": etcd_url,
            "advertise-client-urls": etcd_url,
            "listen-peer-urls": f"http://127.0.0.1:{free_port()}",
            "unsafe-no-fsync": "true",
        },
    )
    api_server = launch("kube-apiserver", _api_server(identities, etcd_url))
    api_server.wait_until(lambda: _ready(identities.ca), despite=(OSError,), timeout=60)
    scheduler = _follower(identities.kubeconfig("scheduler"))
    return {
        "etcd": etcd,
        "kube-apiserver": api_server,
        "kube-controller-manager": launch("kube-controller-manager", _controllers(identities)),
        "kube-scheduler": launch("kube-scheduler", scheduler),
    }


def launch(name: str, flags: Mapping[str, object]) -> Process:
    """Start a program with these flags; what it keeps is thrown away, so it gets no grace."""
    return Process(
        [str(program(name)), *(f"--{flag}={value}" for flag, value in flags.items())],
        log=LOGS / f"{name}.log",
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        stop_signal=signal.SIGKILL,
    )


def _api_server(identities: Identities, etcd: str) -> dict[str, object]:
    return {
        "etcd-servers": etcd,
        # Not loopback: it becomes the endpoint of the Service `kubernetes`.
        "bind-address": ADDRESS,
        "advertise-address": ADDRESS,
        "secure-port": API_PORT,
        "cert-dir": RUN / "pki",
        "tls-cert-file": identities.api_cert,
        "tls-private-key-file": identities.api_key,
        "client-ca-file": identities.ca,
        "kubelet-client-certificate": identities.client_cert,
        "kubelet-client-key": identities.client_key,
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-key-file": identities.account_public_key,
        "service-account-signing-key-file": identities.account_key,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-cluster-ip-range": SERVICES,
        "token-auth-file": identities.tokens,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
    }


def _controllers(identities: Identities) -> dict[str, object]:
    return _follower(identities.kubeconfig("controllers")) | {
        "root-ca-file": identities.ca,
        "service-account-private-key-file": identities.account_key,
        "use-service-account-credentials": "true",
        # Its default of 20 requests a second makes its start four seconds longer.
        "kube-api-qps": 300,
        "kube-api-burst": 600,
    }


def _follower(kubeconfig: Path) -> dict[str, object]:
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "authentication-skip-lookup": "true",
        "bind-address": "127.0.0.1",
        "secure-port": free_port(),
        "cert-dir": RUN / "pki",
        "leader-elect": "false",
    }


def _ready(ca: Path) -> bool:
    context = ssl.create_default_context(cafile=str(ca))
    with urllib.request.urlopen(f"{API}/readyz", timeout=5, context=context) as answer:  # noqa: S310  https
        return bool(answer.status == 200)

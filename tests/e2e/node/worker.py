"""The kubelet, kube-proxy, and the names of Services."""

from __future__ import annotations

import json
import signal
from typing import Any

from hooks.sandbox.processes import Process, free_port
from tests.e2e.node.control_plane import launch
from tests.e2e.node.identities import Identities
from tests.e2e.node.places import (
    ADDRESS,
    COREDNS,
    DNS_PORT,
    LOGS,
    NAME,
    PODS,
    RUN,
    SOCKET,
)
from tests.e2e.node.programs import built

_COREFILE = f"""
.:{DNS_PORT} {{
  bind {ADDRESS}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {RUN}/dns.kubeconfig
  }}
}}
"""

DNS_RIGHTS: list[dict[str, Any]] = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "dns"},
        "rules": [
            {
                "apiGroups": ["", "discovery.k8s.io"],
                "resources": ["services", "namespaces", "pods", "nodes", "endpointslices"],
                "verbs": ["get", "list", "watch"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "dns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "dns"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dns"}],
    },
]


def start(identities: Identities) -> dict[str, Process]:
    """Start them; containerd and the API server answer already."""
    (RUN / "resolv.conf").write_text("# no other name server\n")
    kubelet = launch(
        "kubelet",
        {
            "config": _write("kubelet", _kubelet(identities)),
            "kubeconfig": identities.kubeconfig("kubelet"),
            "hostname-override": NAME,
            "node-ip": ADDRESS,
            "root-dir": RUN / "kubelet",
            "cert-dir": RUN / "kubelet-pki",
        },
    )
    proxy = launch("kube-proxy", {"config": _write("kube-proxy", _proxy(identities))})
    return {"kubelet": kubelet, "kube-proxy": proxy, "coredns": _dns()}


def _dns() -> Process:
    (RUN / "Corefile").write_text(_COREFILE)
    return Process(
        [str(built(COREDNS)), "-conf", str(RUN / "Corefile")],
        log=LOGS / "coredns.log",
        stop_signal=signal.SIGKILL,
    )


def _kubelet(identities: Identities) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "port": 10250,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": free_port(),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(identities.ca)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": False,
        "clusterDomain": "cluster.local",
        "clusterDNS": [ADDRESS],
        "resolvConf": str(RUN / "resolv.conf"),
        "podLogsDir": str(RUN / "pod-logs"),
        "volumePluginDir": str(RUN / "volume-plugins"),
        # The disk is not ours to judge: images cannot be pulled again.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "4s",
    }


def _proxy(identities: Identities) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": ADDRESS,
        "healthzBindAddress": f"127.0.0.1:{free_port()}",
        "metricsBindAddress": f"127.0.0.1:{free_port()}",
        "hostnameOverride": NAME,
        "clusterCIDR": PODS,
        "clientConnection": {"kubeconfig": str(identities.kubeconfig("proxy"))},
        # Zero leaves the limits of the machine alone.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "nodePortAddresses": [PODS],
    }


def _write(name: str, config: dict[str, Any]) -> str:
    path = RUN / f"{name}.yaml"
    path.write_text(json.dumps(config))  # which is YAML
    return str(path)

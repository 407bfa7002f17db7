"""Live reads of the Kubernetes API.

One `KubernetesApi` lives as long as the process and is shared by its threads: it keeps the
connections and the ServiceAccount's token, which it reads again as the kubelet replaces it. (The
token file of a kubeconfig is read once.) `bind` gives what one request works with.

Only the generic client is used: the typed ones cost 20 MB of memory and know nothing of custom
resources.
"""

from __future__ import annotations

from pathlib import Path

import yaml
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.config import load_incluster_config, load_kube_config
from kubernetes.config.config_exception import ConfigException

from hooks.core.deadline import Deadline
from hooks.core.errors import Misconfigured
from hooks.effects.kubernetes.reader import Reader
from hooks.effects.kubernetes.transport import SYSTEM
from hooks.effects.ports.kubernetes import Kubernetes

__all__ = ["KubernetesApi", "client", "connect"]

_CONNECTIONS = 32


class KubernetesApi:
    """One API server."""

    def __init__(self, client: ApiClient) -> None:
        """Keep the client, which must not retry by itself; `connect` makes such a one."""
        self._client = client

    def bind(self, deadline: Deadline) -> Kubernetes:
        """Return the API server as one request may use it."""
        return Reader(self._client, deadline)


def connect(kubeconfig: Path | None) -> KubernetesApi:
    """Return the API server of a kubeconfig file, or the one that runs this Pod; see `client`."""
    return KubernetesApi(client(kubeconfig))


def client(kubeconfig: Path | None) -> ApiClient:
    """Return a client of the API server of a kubeconfig file, or of the one that runs this Pod.

    Raises:
        Misconfigured: the kubeconfig cannot be used, or we run in no Pod.
    """
    configuration = Configuration()
    # The environment's proxies do not lead to the API server; a kubeconfig may name one.
    configuration.proxy = None
    # For urllib3 this is also the word for not following redirects.
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    try:
        _load(kubeconfig, configuration)
    except (ConfigException, OSError, yaml.YAMLError):
        what = "the Pod's ServiceAccount" if kubeconfig is None else "the kubeconfig"
        # The cause may quote the file, which holds credentials.
        raise Misconfigured(SYSTEM, f"{what} is missing or cannot be used") from None
    return ApiClient(configuration)


def _load(kubeconfig: Path | None, configuration: Configuration) -> None:
    if kubeconfig is None:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # the client's own
        return
    load_kube_config(  # type: ignore[no-untyped-call]  # the client's own
        str(kubeconfig), client_configuration=configuration, persist_config=False
    )

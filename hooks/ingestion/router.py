"""Which Service is the Router of a cluster, and at which address it is asked.

The Services are those that customize named: of the object's namespace, labelled as druid-operator
labels them. They come with the request, so finding the Router asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hooks.core import manifests
from hooks.core.contract import Objects
from hooks.core.manifests import Manifest
from hooks.ingestion.reasons import ROUTER_NOT_FOUND, Fault

_TLS_PORTS = frozenset({9088, 8281, 443})
_TLS_NAMES = ("https", "tls")
_PLAIN_NAMES = ("http", "router")


def labels(cluster: str) -> dict[str, str]:
    """Return the labels of the Services that lead to the Routers of a cluster."""
    return {"druid_cr": cluster, "component": "router"}


def url(related: Objects, namespace: str, cluster: str, *, tls: bool) -> str | Fault:
    """Return the Router's address: scheme, host and port.

    Args:
        related: what came with the request.
        namespace: the object's own; a Router is never looked for elsewhere.
        cluster: the name of the Druid cluster.
        tls: spec.tls is there, so the connection must be encrypted.
    """
    found = [
        service
        for service in related.get("Service.v1", {}).values()
        if _leads_to(service, namespace, cluster)
    ]
    if not found:
        wanted = ",".join(f"{key}={value}" for key, value in labels(cluster).items())
        return Fault(
            ROUTER_NOT_FOUND,
            f"no Service in namespace {namespace} has the labels {wanted}: label the Router's"
            " Service so, or correct spec.druidCluster",
        )
    service = min(found, key=lambda one: (_headless(one), manifests.name(one)))
    return _address(service, tls=tls)


def _leads_to(service: Manifest, namespace: str, cluster: str) -> bool:
    carried: Mapping[str, str] = manifests.metadata(service).get("labels") or {}
    return manifests.namespace(service) == namespace and (
        labels(cluster).items() <= carried.items()
    )


def _headless(service: Manifest) -> bool:
    return (service.get("spec") or {}).get("clusterIP") == "None"


def _address(service: Manifest, *, tls: bool) -> str | Fault:
    name, spec = manifests.name(service), service.get("spec") or {}
    ports = [port for port in spec.get("ports") or () if port.get("protocol", "TCP") == "TCP"]
    port = _port(ports, tls=tls)
    if port is None:
        return Fault(
            ROUTER_NOT_FOUND,
            f"Service {name} has {len(ports) or 'no'} ports, and none is named https, http or"
            " router: name the Router's",
        )
    host = f"{name}.{manifests.namespace(service)}.svc"
    if spec.get("type") == "ExternalName":
        host = str(spec.get("externalName")).rstrip(".")
    scheme = "https" if tls or _encrypted(port) else "http"
    return f"{scheme}://{host}:{port['port']}"


def _port(ports: Sequence[Manifest], *, tls: bool) -> Manifest | None:
    """Choose a port: an encrypted one first if that is asked for, and last if not."""
    encrypted = [port for port in ports if _encrypted(port)]
    plain = [port for port in ports if not _encrypted(port)]
    named = _named(plain)
    if named is None and len(plain) == 1 and (len(ports) == 1 or encrypted):
        named = plain[0]
    choices = (_first(encrypted), named) if tls else (named, _first(encrypted))
    return next((port for port in choices if port is not None), None)


def _encrypted(port: Manifest) -> bool:
    name = str(port.get("name") or "")
    return port.get("port") in _TLS_PORTS or name.startswith(_TLS_NAMES)


def _named(ports: Iterable[Manifest]) -> Manifest | None:
    by_name = {str(port.get("name") or ""): port for port in ports}
    return next((by_name[name] for name in _PLAIN_NAMES if name in by_name), None)


def _first(ports: Sequence[Manifest]) -> Manifest | None:
    return ports[0] if ports else None

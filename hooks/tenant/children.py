"""The one child of a Tenant: an ExternalSecret that projects the credential for applications.

Every field that External Secrets' CRD would default is written out: Metacontroller compares
whole objects, and a list item that differs by a default would be sent again at every sync.
"""

from __future__ import annotations

from collections.abc import Mapping

from hooks.core.manifests import Manifest
from hooks.effects.ports import Credential, Endpoint, Login, Secret
from hooks.tenant.model import Config, Spec

API_VERSION = "external-secrets.io/v1"
KIND = "ExternalSecret"
KINDS = frozenset({(API_VERSION, KIND)})

MANAGED_BY = "app.kubernetes.io/managed-by"
TENANT = "database.ddupan.top/tenant"
FORCE_SYNC = "force-sync"


def secret_values(spec: Spec, endpoint: Endpoint) -> Mapping[str, str]:
    """Return the Secret's keys that say where the database is; none of them is secret."""
    return {
        "host": endpoint.host,
        "port": str(endpoint.port),
        "database": spec.database,
        "sslmode": endpoint.ssl_mode,
    }


def external_secret(
    spec: Spec, endpoint: Endpoint, credential: Credential, config: Config
) -> Manifest:
    """Return the ExternalSecret.

    Args:
        spec: the Tenant.
        endpoint: the Instance's.
        credential: a new version nudges External Secrets to refresh. Its time counts too: after
            a credential was lost and made anew, versions begin again.
        config: the deployment's SecretStore.
    """
    labels = {MANAGED_BY: "database-hooks", TENANT: label(spec.identity.name)}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": spec.external_secret_name,
            "namespace": spec.identity.namespace,
            "labels": labels,
            "annotations": {FORCE_SYNC: f"v{credential.version} {credential.created}".strip()},
        },
        "spec": {
            "refreshPolicy": "Periodic",
            "refreshInterval": config.refresh_interval,
            "secretStoreRef": {"kind": config.store_kind, "name": config.store_name},
            "target": _target(spec, endpoint, labels, config),
            "data": [_remote("username", spec.kv_path), _remote("password", spec.kv_path)],
        },
    }


def secret_login(secret: Secret) -> Login | None:
    """Read username and password of a projected Secret, None when they are no text."""
    try:
        login = Login(secret.data["username"].decode(), secret.data["password"].decode())
    except (KeyError, UnicodeDecodeError):
        return None
    return login if login.username and login.password else None


def _target(spec: Spec, endpoint: Endpoint, labels: Mapping[str, str], config: Config) -> Manifest:
    return {
        "name": spec.secret_name,
        "creationPolicy": "Owner",
        "deletionPolicy": "Retain",
        "template": {
            "engineVersion": "v2",
            "mergePolicy": "Replace",
            "type": "Opaque",
            "metadata": {"labels": labels},
            "data": dict(_template(spec, endpoint, config)),
        },
    }


def label(name: str) -> str:
    """Return a label value for an object name: names may be longer than values may."""
    return name[:63].rstrip("-.")


def _template(spec: Spec, endpoint: Endpoint, config: Config) -> Mapping[str, str]:
    host, port, database = endpoint.host, endpoint.port, spec.database
    query = f"sslmode={endpoint.ssl_mode}"
    login = "{{ .username }}:{{ .password }}"
    values = {
        "username": "{{ .username }}",
        "password": "{{ .password }}",
        **secret_values(spec, endpoint),
        "uri": f"postgresql://{login}@{host}:{port}/{database}?{query}",
        "jdbc-uri": (
            f"jdbc:postgresql://{host}:{port}/{database}"
            f"?user={{{{ .username }}}}&password={{{{ .password }}}}&{query}"
        ),
        "pgpass": f"{host}:{port}:{database}:{login}",
    }
    return values | ({"ca.crt": config.ca_pem} if config.ca_pem else {})


def _remote(key: str, path: str) -> Manifest:
    return {
        "secretKey": key,
        "remoteRef": {
            "key": path,
            "property": key,
            "conversionStrategy": "Default",
            "decodingStrategy": "None",
            "metadataPolicy": "None",
        },
    }

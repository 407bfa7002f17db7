"""Objects as the API server would show them, and facts as a healthy world would give them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hooks.core.manifests import Manifest
from hooks.effects.ports import (
    Available,
    Credential,
    Database,
    Endpoint,
    Login,
    Presence,
    Role,
    Row,
    Secret,
)
from hooks.tenant.facts import Facts, Instance, Past, Server
from hooks.tenant.model import Config, Spec, parse

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = "2026-03-01T10:00:00Z"

TENANT_FINALIZER = "metacontroller.io/compositecontroller-postgresqltenants.database.ddupan.top"
INSTANCE_FINALIZER = "metacontroller.io/compositecontroller-postgresqlinstances.database.ddupan.top"

CONFIG = Config(
    controller_namespace="database-hooks",
    mount="secret",
    base_path="postgresql",
    consumer_address="https://openbao.example.internal:8200",
    store_name="openbao",
    store_kind="SecretStore",
    refresh_interval="1h",
    ca_pem="",
)

ENDPOINT = Endpoint(
    host="postgresql.example.internal",
    hostaddr="192.0.2.10",
    port=5432,
    database="postgres",
    ssl_mode="verify-full",
)

PASSWORD = "aPasswordThatNobodyShows"


def merged(base: Manifest, changes: Manifest) -> Manifest:
    """Return a deep copy with changes; a None takes the member away."""
    result = deepcopy(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def instance(**changes: Any) -> Manifest:  # noqa: ANN401  members of a manifest
    """Return a Ready PostgreSQLInstance."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": EARLIER,
        "observedGeneration": 1,
    }
    return merged(
        {
            "apiVersion": "database.ddupan.top/v1alpha1",
            "kind": "PostgreSQLInstance",
            "metadata": {"name": "shared", "uid": "instance-1", "generation": 1},
            "spec": {
                "endpoint": {
                    "host": ENDPOINT.host,
                    "hostaddr": ENDPOINT.hostaddr,
                    "port": 5432,
                    "database": "postgres",
                    "sslMode": "verify-full",
                },
                "adminCredentialRef": {
                    "name": "shared-admin",
                    "usernameKey": "username",
                    "passwordKey": "password",
                },
            },
            "status": {"phase": "Ready", "conditions": [ready]},
        },
        changes,
    )


def tenant(**changes: Any) -> Manifest:  # noqa: ANN401  members of a manifest
    """Return a PostgreSQLTenant as it comes from the API server, not yet seen by us."""
    return merged(
        {
            "apiVersion": "database.ddupan.top/v1alpha1",
            "kind": "PostgreSQLTenant",
            "metadata": {
                "name": "orders",
                "namespace": "team-a",
                "uid": "tenant-1",
                "generation": 1,
                "finalizers": [TENANT_FINALIZER],
            },
            "spec": {"instanceRef": "shared", "extensions": [], "deletionPolicy": "Retain"},
        },
        changes,
    )


def spec(**changes: Any) -> Spec:  # noqa: ANN401  members of spec
    """Return the valid spec of `tenant(spec=changes)`."""
    parsed = parse(tenant(spec=changes), CONFIG)
    assert isinstance(parsed, Spec), parsed
    return parsed


ROW = Row(
    uid="tenant-1",
    instance_uid="instance-1",
    instance_name="shared",
    namespace="team-a",
    name="orders",
    database="orders",
    role="orders",
    kv_path="postgresql/team-a/orders",
    secret_name="shared-orders-postgresql",
    state="managed",
    database_oid=20001,
    role_oid=20000,
)

ROLE = Role(
    oid=20000,
    can_login=True,
    expired=False,
    connection_limit=-1,
    elevated=False,
    administered=True,
)

DATABASE = Database(
    oid=20001,
    owner_oid=20000,
    allows_connections=True,
    connection_limit=-1,
    is_template=False,
    public_privileges=frozenset(),
)

OWNER = {
    "tenant-uid": "tenant-1",
    "tenant-namespace": "team-a",
    "tenant-name": "orders",
    "instance": "shared",
    "instance-uid": "instance-1",
}

CREDENTIAL = Credential(version=1, owner=OWNER, login=Login("orders", PASSWORD))

SECRET = Secret(
    name="shared-orders-postgresql",
    uid="secret-1",
    controller_uid="external-secret-1",
    data={
        "username": b"orders",
        "password": PASSWORD.encode(),
        "host": ENDPOINT.host.encode(),
        "port": b"5432",
        "database": b"orders",
        "sslmode": b"verify-full",
    },
)


def external_secret(**changes: Any) -> Manifest:  # noqa: ANN401  members of a manifest
    """Return our ExternalSecret, synced."""
    return merged(
        {
            "apiVersion": "external-secrets.io/v1",
            "kind": "ExternalSecret",
            "metadata": {
                "name": "shared-orders-postgresql",
                "namespace": "team-a",
                "uid": "external-secret-1",
                "generation": 3,
                "creationTimestamp": EARLIER,
                "ownerReferences": [{"uid": "tenant-1", "controller": True}],
            },
            "status": {
                "syncedResourceVersion": "3-abcdef",
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "SecretSynced",
                        "lastTransitionTime": EARLIER,
                    }
                ],
            },
        },
        changes,
    )


SEEN_INSTANCE = Instance.of(instance())
SEEN_SERVER = Server(row=ROW, rivals=(), role=ROLE, database=DATABASE, admin_role="database_admin")
NOTHING = Server(row=None, rivals=(), role=None, database=None, admin_role="database_admin")

READY = Facts(
    spec=spec(),
    past=Past(phase="Ready", database_oid=20001, ready={"status": "True", "type": "Ready"}),
    now=NOW.timestamp(),
    instance=SEEN_INSTANCE,
    server=SEEN_SERVER,
    credential=CREDENTIAL,
    external_secret=external_secret(),
    secret=SECRET,
    login=Presence(role="orders", database="orders", extensions=frozenset({"plpgsql"})),
)
"""A Ready Tenant, seen at rest."""

FRESH = replace(
    READY,
    past=Past(phase="", database_oid=None, ready={}),
    server=NOTHING,
    credential=None,
    external_secret=None,
    secret=None,
    login=None,
)
"""A Tenant of which nothing exists yet."""

PG_TRGM = Available("pg_trgm", trusted=True)

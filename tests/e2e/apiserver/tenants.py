"""Tenants, and what is outside of the cluster of one."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.postgres_server import Login
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.others import BASE_PATH

API = "database.ddupan.top/v1alpha1"


def tenant(**spec: Any) -> Manifest:  # noqa: ANN401  members of spec
    """Return a Tenant of `shared` in team-a, of a name that no other has."""
    return {
        "apiVersion": API,
        "kind": "PostgreSQLTenant",
        "metadata": {"name": f"t{token_hex(4)}", "namespace": "team-a"},
        "spec": {"instanceRef": "shared", **spec},
    }


def provided(operation: Operation, **spec: Any) -> Manifest:  # noqa: ANN401  members of spec
    """Create a Tenant and return it when it is Ready."""
    wanted = tenant(**spec)
    operation.administrator.apply(wanted)
    return operation.becomes_ready("pgtenant", manifests.name(wanted), "team-a")


def log_in(operation: Operation, found: Manifest) -> tuple[object, ...]:
    """Log in as an application does, with what is in the Secret; return who and where one is."""
    name = found["status"]["credential"]["secretRef"]["name"]
    secret = operation.secret(manifests.namespace(found), name)
    ca = operation.installation.directory / "application-ca.crt"
    ca.write_text(secret["ca.crt"])
    login = Login(secret["username"], secret["password"])
    server = operation.installation.postgres
    parameters = server.parameters(login, database=secret["database"])
    parameters |= {"host": secret["host"], "port": secret["port"], "sslrootcert": str(ca)}
    with psycopg.connect(make_conninfo(**parameters)) as connection:
        row = connection.execute("SELECT current_user, current_database()").fetchone()
    assert row is not None
    return row


def outside(operation: Operation, found: Manifest) -> set[object]:
    """Return what there is of a Tenant on the server and in OpenBao."""
    status, meta = found["status"], found["metadata"]
    kept = operation.installation.postgres.sql(
        "SELECT 'database' FROM pg_database WHERE datname = %s"
        " UNION ALL SELECT 'role' FROM pg_roles WHERE rolname = %s"
        " UNION ALL SELECT state FROM tenant_registry.tenant WHERE uid = %s",
        [status["database"], status["loginRole"], meta["uid"]],
    )
    client = operation.installation.openbao.client(operation.installation.openbao.root_token)
    path = f"{BASE_PATH}/{meta['namespace']}"
    listed = client.adapter.session.request(
        "LIST",
        f"{operation.installation.openbao.address}/v1/secret/metadata/{path}",
        headers={"X-Vault-Token": client.token},
        timeout=10,
    )
    names = listed.json()["data"]["keys"] if listed.ok else []
    return {word for (word,) in kept} | ({"credential"} if meta["name"] in names else set())


def inside(operation: Operation, found: Manifest) -> set[str]:
    """Return what the cluster holds of a Tenant."""
    meta, status = found["metadata"], found["status"]
    secret = status["credential"]["secretRef"]["name"]
    words = (
        f"pgtenant/{meta['name']}",
        f"externalsecret/{found['spec']['instanceRef']}-{meta['name']}-postgresql",
        f"secret/{secret}",
    )
    printed = operation.administrator.kubectl(
        "get", *words, "-n", meta["namespace"], "--ignore-not-found", "-o", "name"
    )
    return {line.partition(".")[0].partition("/")[0] for line in printed.split()}

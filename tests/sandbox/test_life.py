"""The life of a tenant over HTTP: the real app, PostgreSQL and OpenBao, driven by the runner."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.cluster import EXTERNAL_SECRET, SECRET, ApiError, Kind
from hooks.sandbox.postgres_server import Login
from hooks.sandbox.samples import localized
from hooks.sandbox.world import NAMESPACE, World, started
from tests.app.running import until
from tests.builders import merged
from tests.sandbox.test_demo import children_of

GROUP = "database.ddupan.top/v1alpha1"
INSTANCES = Kind(GROUP, "PostgreSQLInstance", "postgresqlinstances", namespaced=False)
TENANTS = Kind(GROUP, "PostgreSQLTenant", "postgresqltenants", namespaced=True)
TEAM = "team-a"


class Live:
    """A world that moves when it is told to."""

    def __init__(self, world: World) -> None:
        self.world = world

    def settle(self, *, seconds: float = 0) -> None:
        """Let runner and projector work until neither has anything left to do."""
        before = ""
        while before != self.world.cluster.resource_version:
            before = self.world.cluster.resource_version
            self.world.runner.settle(within=seconds)
            self.world.projector.reconcile_all()

    def swept(self) -> bool:
        """Let the Instance be synced once more."""
        self.settle(seconds=60)
        return True

    def apply(self, *objects: Manifest) -> None:
        for manifest in localized(objects, self.world.local_server, NAMESPACE):
            self.world.cluster.apply(manifest)
        self.settle()

    def get(self, kind: Kind, namespace: str | None, name: str) -> Manifest:
        found = self.world.cluster.get(kind, namespace, name)
        assert found is not None, name
        return found

    def tenant(self, name: str) -> Manifest:
        return self.get(TENANTS, TEAM, name)

    def ready(self, name: str) -> tuple[str, str]:
        ready = manifests.condition(self.tenant(name), "Ready")
        return ready["status"], ready["reason"]

    def secret(self, name: str) -> dict[str, str]:
        status = self.tenant(name)["status"]
        found = self.get(SECRET, TEAM, status["credential"]["secretRef"]["name"])
        return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}

    def log_in(self, name: str) -> tuple[object, ...]:
        """Log in as an application would, with nothing but the Secret."""
        secret = self.secret(name)
        ca = self.world.directory / "ca-of-the-secret.pem"
        ca.write_text(secret["ca.crt"])
        login = Login(secret["username"], secret["password"])
        parameters = self.world.postgres.parameters(login, database=secret["database"])
        parameters |= {"host": secret["host"], "port": secret["port"], "sslrootcert": str(ca)}
        with psycopg.connect(make_conninfo(**parameters)) as connection:
            row = connection.execute("SELECT current_user, current_database()").fetchone()
        assert row is not None
        return row

    def catalog(self, name: str) -> dict[str, int]:
        """Count what the server holds under a name."""
        sql = self.world.postgres.sql
        queries = {
            "databases": "SELECT count(*) FROM pg_database WHERE datname = %s",
            "roles": "SELECT count(*) FROM pg_roles WHERE rolname = %s",
            "rows": "SELECT count(*) FROM tenant_registry.tenant WHERE database_name = %s",
        }
        found = {what: sql(query, [name])[0][0] for what, query in queries.items()}
        return {what: int(str(count)) for what, count in found.items()}

    def kv(self, name: str) -> int:
        """Return the version that KV holds, 0 for none."""
        client = self.world.openbao.client(self.world.openbao.root_token)
        response = client.adapter.session.get(
            f"{self.world.openbao.address}/v1/secret/metadata/postgresql/{TEAM}/{name}",
            headers={"X-Vault-Token": self.world.openbao.root_token},
            verify=str(self.world.authority.ca_file),
            timeout=10,
        )
        return int(response.json()["data"]["current_version"]) if response.ok else 0


def shared() -> Manifest:
    return {
        "apiVersion": GROUP,
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "shared"},
        "spec": {
            "endpoint": {"host": "a.example", "hostaddr": "192.0.2.10"},
            "adminCredentialRef": {"name": "shared-admin"},
        },
    }


def tenant(name: str, **spec: Any) -> Manifest:  # noqa: ANN401  members of spec
    return {
        "apiVersion": GROUP,
        "kind": "PostgreSQLTenant",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {"instanceRef": "shared", **spec},
    }


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    directory: Path = tmp_path_factory.mktemp("world")
    everything = {"log_statement": "all", "log_min_error_statement": "debug1"}
    with started(directory, live=False, postgres=everything, SWEEP_SECONDS="1") as world:
        made = Live(world)
        made.apply(shared())
        yield made


def test_an_instance_becomes_ready_and_says_which_server_it_is(live: Live) -> None:
    status = live.get(INSTANCES, None, "shared")["status"]
    assert status["phase"] == "Ready"
    assert status["postgresqlVersion"] == "17.10"
    assert manifests.condition({"status": status}, "Ready")["status"] == "True"


def test_a_life(live: Live) -> None:
    # Created, Ready, and an application logs in.
    live.apply(tenant("orders", deletionPolicy="Delete"))
    assert live.ready("orders") == ("True", "Ready")
    assert live.log_in("orders") == ("orders", "orders")
    assert set(live.secret("orders")) == {
        *("username", "password", "host", "port", "database", "sslmode"),
        *("uri", "jdbc-uri", "pgpass", "ca.crt"),
    }
    # An extension is added.
    live.apply(tenant("orders", deletionPolicy="Delete", extensions=["pg_trgm"]))
    assert live.ready("orders") == ("True", "Ready")
    installed = "SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'"
    assert live.world.postgres.sql(installed, database="orders") == [(1,)]
    # One is removed: reported, not dropped; put back, it heals.
    live.apply(tenant("orders", deletionPolicy="Delete", extensions=[]))
    assert live.ready("orders") == ("False", "ImmutableField")
    assert live.world.postgres.sql(installed, database="orders") == [(1,)]
    live.apply(tenant("orders", deletionPolicy="Delete", extensions=["pg_trgm"]))
    assert live.ready("orders") == ("True", "Ready")
    # Deleted with Delete: everything goes.
    live.world.cluster.delete(TENANTS, TEAM, "orders")
    live.settle(seconds=5)
    assert live.world.cluster.get(TENANTS, TEAM, "orders") is None
    assert live.catalog("orders") == {"databases": 0, "roles": 0, "rows": 0}
    assert live.kv("orders") == 0
    assert live.world.cluster.list(EXTERNAL_SECRET) == []


def test_the_database_name_is_refused_by_the_api_server_once_there_is_one(live: Live) -> None:
    live.apply(tenant("invoices"))
    with pytest.raises(ApiError, match=r"spec\.database"):
        live.world.cluster.apply(tenant("invoices", database="other"))


def test_the_database_name_is_refused_by_the_hook_when_the_status_was_lost(live: Live) -> None:
    live.apply(tenant("receipts"))
    lost = live.tenant("receipts")
    live.world.cluster.replace_status(merged(lost, {"status": {"phase": None}}))
    live.apply(tenant("receipts", database="other"))
    assert live.ready("receipts") == ("False", "ImmutableField")
    assert live.tenant("receipts")["status"]["database"] == "receipts"
    assert live.catalog("other") == {"databases": 0, "roles": 0, "rows": 0}
    live.apply(tenant("receipts", database="receipts"))
    assert live.ready("receipts") == ("True", "Ready")


def test_the_database_name_may_change_before_there_is_one(live: Live) -> None:
    live.apply(tenant("early", instanceRef="absent"))
    assert live.ready("early") == ("False", "InstanceNotReady")
    live.apply(tenant("early", instanceRef="shared", database="later"))
    assert live.ready("early") == ("True", "Ready")
    assert live.log_in("early") == ("early", "later")


def test_at_rest_nothing_is_written_and_answers_are_the_same_bytes(live: Live) -> None:
    live.apply(tenant("resting", extensions=["hstore"]))
    live.settle()
    runner, cluster, sql = live.world.runner, live.world.cluster, live.world.postgres.sql
    rows = "SELECT * FROM tenant_registry.tenant ORDER BY uid"
    before = (runner.statistics.writes, cluster.resource_version, sql(rows), live.kv("resting"))
    answers = []
    for _ in range(2):
        runner.resync()
        runner.settle()
        answers.append((live.tenant("resting"), live.get(INSTANCES, None, "shared")))
    after = (runner.statistics.writes, cluster.resource_version, sql(rows), live.kv("resting"))
    assert after == before
    assert answers[0] == answers[1]


def test_retain_lets_go_although_every_server_is_down(live: Live) -> None:
    live.apply(tenant("kept", deletionPolicy="Retain"))
    assert live.ready("kept") == ("True", "Ready")
    live.world.postgres.kill()
    live.world.openbao.seal()
    try:
        live.world.cluster.delete(TENANTS, TEAM, "kept")
        live.settle()
        assert live.world.cluster.get(TENANTS, TEAM, "kept") is None
    finally:
        live.world.postgres.restart()
        live.world.openbao.unseal()
    assert live.catalog("kept") == {"databases": 1, "roles": 1, "rows": 1}
    assert live.kv("kept") == 1
    state = "SELECT state FROM tenant_registry.tenant WHERE name = 'kept'"
    until(lambda: live.swept() and live.world.postgres.sql(state) == [("unmanaged",)])


def test_an_invalid_spec_deletes_too(live: Live) -> None:
    live.apply(tenant("broken", deletionPolicy="Delete"))
    assert live.ready("broken") == ("True", "Ready")
    broken = deepcopy(live.tenant("broken"))
    broken["spec"]["extensions"] = ["-- no name --"]
    live.world.cluster.force(broken)
    live.settle()
    assert live.ready("broken") == ("False", "InvalidSpec")
    assert len(_children(live, "broken")) == 1
    live.world.cluster.delete(TENANTS, TEAM, "broken")
    live.settle(seconds=5)
    assert live.world.cluster.get(TENANTS, TEAM, "broken") is None
    assert live.catalog("broken") == {"databases": 0, "roles": 0, "rows": 0}


def test_an_instance_waits_for_its_tenants(live: Live) -> None:
    other = shared() | {"metadata": {"name": "other"}}
    live.apply(other, tenant("guest", instanceRef="other", deletionPolicy="Delete"))
    assert live.ready("guest") == ("True", "Ready")
    live.world.cluster.delete(INSTANCES, None, "other")
    live.settle()
    status = live.get(INSTANCES, None, "other")["status"]
    assert status["phase"] == "Deleting"
    assert "1 PostgreSQLTenants" in manifests.condition({"status": status}, "Ready")["message"]
    assert live.ready("guest") == ("False", "InstanceNotReady")
    live.world.cluster.delete(TENANTS, TEAM, "guest")
    live.settle(seconds=10)
    assert live.world.cluster.get(TENANTS, TEAM, "guest") is None
    assert live.catalog("guest") == {"databases": 0, "roles": 0, "rows": 0}
    assert live.world.cluster.get(INSTANCES, None, "other") is None


def secrets_of(live: Live) -> dict[str, str]:
    """Return everything that must be seen nowhere, by what it is."""
    world = live.world
    found = {
        "admin password": world.postgres.admin.password,
        "OpenBao root token": world.openbao.root_token,
    }
    for name in ("hook-token", "openbao-token", "reader-token"):
        found[name] = (world.directory / name).read_text()
    for secret in world.cluster.list(SECRET):
        for key, text in secret.get("data", {}).items():
            if key == "password":
                found[f"password in {manifests.name(secret)}"] = base64.b64decode(text).decode()
    rows = world.postgres.sql("SELECT rolname, rolpassword FROM pg_authid WHERE rolcanlogin")
    return found | {f"verifier of {name}": str(verifier) for name, verifier in rows}


def told_of(live: Live) -> dict[str, str]:
    """Return everything that somebody may read: logs, arguments, environments, objects."""
    world = live.world
    found = {
        "app log": world.app_log.read_text(),
        "PostgreSQL log": world.postgres.log_text(),
        "OpenBao log": world.openbao.log_text(),
        "OpenBao audit log": world.openbao.audit_file.read_text(),
        "Events": repr(world.cluster.events),
    }
    for kind in (TENANTS, INSTANCES, EXTERNAL_SECRET):
        found[kind.plural] = repr(world.cluster.list(kind))
    for pid in children_of(os.getpid()):
        for what in ("cmdline", "environ"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found[f"{what} of {pid}"] = Path(f"/proc/{pid}/{what}").read_text(errors="replace")
    return found


def test_no_password_token_or_verifier_is_told_to_anybody(live: Live) -> None:
    secret, told = secrets_of(live), told_of(live)
    assert len(secret) > 10
    assert [
        where for where in ("app log", "PostgreSQL log", "OpenBao audit log") if not told[where]
    ] == []
    assert len([where for where in told if where.startswith("cmdline")]) >= 3
    leaks = [
        (what, where) for what, word in secret.items() for where in told if word in told[where]
    ]
    assert leaks == []


def test_no_status_names_the_admin_or_holds_a_connection_string(live: Live) -> None:
    seen = "".join(
        repr([found.get("status") for found in live.world.cluster.list(kind)])
        for kind in (TENANTS, INSTANCES)
    ) + repr(live.world.cluster.events)
    assert live.world.postgres.admin.name not in seen
    assert "postgresql://" not in seen
    assert "host=" not in seen


def _children(live: Live, name: str) -> list[Manifest]:
    uid = manifests.uid(live.tenant(name))
    owned = live.world.cluster.list(EXTERNAL_SECRET)
    return [child for child in owned if manifests.controller_uid(child) == uid]

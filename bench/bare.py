"""The remote calls of the hooks made bare: a requests session, psycopg, and nothing around them.

What is written here is what somebody would write who needs these calls and no answer to what
could go wrong.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg
import requests
import yaml
from psycopg import sql
from psycopg.rows import TupleRow

from bench.stage import INSTANCE, Stage
from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.effects.ports import EXTERNAL_SECRETS, INSTANCES, Resource
from hooks.sandbox.openbao_server import MOUNT
from hooks.sandbox.postgres_server import Login
from hooks.sandbox.world import BASE_PATH, NAMESPACE

OK, NOT_FOUND = 200, 404
SECRETS = Resource("", "v1", "secrets")
ADMIN_SECRET = "shared-admin"  # noqa: S105  the name of an object

DIRECT = "SELECT pg_backend_pid(), current_setting('search_path')"
ROW = """
    SELECT uid::text, instance_uid::text, instance_name, namespace, name, database_name,
        role_name, kv_path, secret_name, state, database_oid, role_oid, extensions
    FROM tenant_registry.tenant WHERE uid = %s
"""
CLAIMS = ROW.replace("uid = %s", "database_name = %s OR role_name = %s")
ROLE = """
    SELECT oid, rolcanlogin, coalesce(rolvaliduntil <= now(), false), rolconnlimit,
        rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls,
        pg_has_role(oid, 'USAGE') AND pg_has_role(oid, 'SET')
    FROM pg_roles WHERE rolname = %s
"""
DATABASE = """
    SELECT d.oid, d.datdba, d.datallowconn, d.datconnlimit, d.datistemplate,
        ARRAY(SELECT a.privilege_type
            FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
            WHERE a.grantee = 0)
    FROM pg_database d WHERE d.datname = %s
"""
PRESENCE = (
    "SELECT current_user::text, current_database()::text,"
    " ARRAY(SELECT extname::text FROM pg_extension)"
)


class Bare:
    """Everything that is called, over connections that are kept; those to PostgreSQL are new."""

    def __init__(self, stage: Stage) -> None:
        world = stage.world
        self._postgres = world.postgres
        self._kv = f"{world.openbao.address}/v1"
        self._kv_session = _session(world.authority.ca_file.as_posix())
        self._kv_session.headers["X-Vault-Token"] = stage.token_file.read_text()
        config = yaml.safe_load(world.kubeconfig.read_text())
        self._kubernetes = str(config["clusters"][0]["cluster"]["server"])
        self._kubernetes_session = _session(world.authority.ca_file.as_posix())
        token = config["users"][0]["user"]["token"]
        self._kubernetes_session.headers["Authorization"] = f"Bearer {token}"

    def idle(self, tenant: Manifest) -> None:
        """Make the calls of one sync of a Ready Tenant, in its order."""
        namespace, name = manifests.namespace(tenant), manifests.name(tenant)
        secret = f"{INSTANCE}-{name}-postgresql"
        self.get(INSTANCES, INSTANCE)
        self.get(SECRETS, ADMIN_SECRET, NAMESPACE)
        with self.connect(self._postgres.admin) as admin:
            admin.execute(DIRECT).fetchall()
            look(admin, manifests.uid(tenant), name)
            login = self.stored(f"{namespace}/{name}")
            self.get(EXTERNAL_SECRETS, secret, namespace)
            self.get(SECRETS, secret, namespace)
            assert login, name
            with self.connect(login, database=name) as own:
                own.execute(DIRECT).fetchall()
                own.execute(PRESENCE).fetchall()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        """Read one object of the Kubernetes API."""
        parts = ["apis", resource.group] if resource.group else ["api"]
        parts += [resource.version, *(("namespaces", namespace) if namespace else ())]
        path = "/".join([*parts, resource.plural, name])
        answer = self._kubernetes_session.get(f"{self._kubernetes}/{path}", timeout=5)
        assert answer.status_code == OK, answer.text
        found: Manifest = json.loads(answer.content)
        return found

    def kv(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401  JSON
        """Call OpenBao; None when nothing is there."""
        answer = self._kv_session.request(method, f"{self._kv}/{path}", json=body, timeout=5)
        if answer.status_code == NOT_FOUND:
            return None
        answer.raise_for_status()
        return json.loads(answer.content) if answer.content else {}

    def stored(self, tenant: str) -> Login | None:
        """Read a credential; three calls to say that there is none, two if it is reserved."""
        found = self.kv("GET", f"{MOUNT}/data/{BASE_PATH}/{tenant}")
        if found is None:
            if self.kv("GET", f"{MOUNT}/metadata/{BASE_PATH}/{tenant}") is None:
                self.mounts()
            return None
        data = found["data"]["data"]
        return Login(data["username"], data["password"])

    def mounts(self) -> None:
        """Ask what is mounted, as the hooks do before each write."""
        self.kv("GET", f"sys/internal/ui/mounts/{MOUNT}")

    def connect(self, login: Login, database: str = "postgres") -> psycopg.Connection[TupleRow]:
        """Log in to PostgreSQL over TLS."""
        parameters: dict[str, Any] = self._postgres.parameters(login, database=database)
        return psycopg.connect(**parameters, autocommit=True)

    def connect_admin(self) -> psycopg.Connection[TupleRow]:
        """Log in as the administrator."""
        return self.connect(self._postgres.admin)


def look(admin: psycopg.Connection[TupleRow], uid: str, name: str) -> None:
    """Read all that the server says of a Tenant whose database and role have its name."""
    admin.execute(ROW, [uid]).fetchall()
    admin.execute(CLAIMS, [name, name]).fetchall()
    admin.execute(ROLE, [name]).fetchall()
    admin.execute(DATABASE, [name]).fetchall()


def identified(statement: str, name: str, **parts: sql.Composable) -> sql.Composed:
    """Compose a statement about a database or role."""
    return sql.SQL(statement).format(name=sql.Identifier(name), **parts)


def _session(ca_file: str) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = ca_file
    return session

"""What is so, read live: the only input of a Tenant's decisions.

A read that failed is an EffectError in the place of its value; None is "looked, not there", and a
part that was not asked (its question makes no sense before an earlier one is answered) is None
too, behind a gate that stops before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hooks.core import manifests
from hooks.core.errors import EffectError, attempt
from hooks.core.manifests import Manifest
from hooks.effects.instances import condition_is_current, endpoint_of
from hooks.effects.ports import (
    EXTERNAL_SECRETS,
    TENANTS,
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
from hooks.tenant.children import secret_login
from hooks.tenant.model import HAND_OVER, Identity, Spec
from hooks.tenant.world import World


@dataclass(frozen=True, slots=True)
class Instance:
    """The PostgreSQLInstance that the Tenant names.

    Attributes:
        usable: not being deleted, and Ready for its current generation.
        hand_overs: (old UID, new UID) pairs that its administrator approved.
    """

    uid: str
    name: str
    endpoint: Endpoint
    deleting: bool
    usable: bool
    hand_overs: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, manifest: Manifest) -> Instance:
        """Read a manifest of the API server."""
        deleting = manifests.deleting(manifest)
        return cls(
            uid=manifests.uid(manifest),
            name=manifests.name(manifest),
            endpoint=endpoint_of(manifest),
            deleting=deleting,
            usable=not deleting and condition_is_current(manifest),
            hand_overs=_pairs(manifests.annotations(manifest).get(HAND_OVER, "")),
        )


def _pairs(text: str) -> frozenset[tuple[str, str]]:
    """Read `old=new` pairs; what is no pair approves nothing."""
    found = (part.strip().partition("=") for part in text.split(","))
    return frozenset((old.strip(), new.strip()) for old, sign, new in found if sign and old and new)


@dataclass(frozen=True, slots=True)
class Server:
    """What the server and its registry hold under our names.

    Attributes:
        row: the registry's row of this Tenant's UID.
        rivals: rows of other UIDs that name our database, role or Secret.
        role, database: by the names of the row, or of the spec when there is no row.
        admin_role: the admin's own name, which no tenant may use.
    """

    row: Row | None
    rivals: tuple[Row, ...]
    role: Role | None
    database: Database | None
    admin_role: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Past:
    """What the previous status claimed; a fact, never a permission."""

    phase: str
    database_oid: int | None
    ready: Manifest

    @classmethod
    def of(cls, parent: Manifest) -> Past:
        """Read the status of the parent."""
        status = parent.get("status") or {}
        return cls(
            phase=str(status.get("phase") or ""),
            database_oid=status.get("databaseOID"),
            ready=manifests.condition(parent, "Ready"),
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that deciding needs.

    Attributes:
        spec: what is asked for; in finalize only the identity counts.
        now: the time of this look, for grace periods.
        login: what a login into the tenant's database saw, made with the Secret's values where
            Secret and KV agree, otherwise with KV's; None when there is nothing to log in to.
        available: extensions still to be installed that the server offers.
        live: the Tenant is still there, not being deleted; None when not asked.
    """

    spec: Spec
    past: Past
    now: float
    instance: Instance | EffectError | None = None
    server: Server | EffectError | None = None
    credential: Credential | EffectError | None = None
    external_secret: Manifest | EffectError | None = None
    secret: Secret | EffectError | None = None
    login: Presence | EffectError | None = None
    available: tuple[Available, ...] | EffectError = ()
    live: bool | EffectError | None = None

    @property
    def the_instance(self) -> Instance:
        """Return the Instance, behind the gate that proved that there is one."""
        assert isinstance(self.instance, Instance)  # noqa: S101  the order of the gates
        return self.instance

    @property
    def the_server(self) -> Server:
        """Return the server, behind the gate that proved that it was read."""
        assert isinstance(self.server, Server)  # noqa: S101  the order of the gates
        return self.server

    @property
    def the_row(self) -> Row:
        """Return the registry row, behind the gate that proved that it is ours."""
        row = self.the_server.row
        assert row is not None  # noqa: S101  the order of the gates
        return row


def gather(spec: Spec, past: Past, world: World, *, locked: bool) -> Facts:
    """Look at everything a sync needs, in the order in which the gates ask."""
    facts = Facts(spec=spec, past=past, now=world.services.now.timestamp())
    instance = attempt(lambda: _instance(spec.instance, world))
    facts = replace(facts, instance=instance)
    if not isinstance(instance, Instance) or not instance.usable:
        return facts
    server = attempt(lambda: _server(spec, world))
    facts = replace(facts, server=server)
    if not isinstance(server, Server):
        return facts
    facts = replace(
        facts,
        credential=attempt(lambda: world.services.credentials.read(spec.kv_path)),
        external_secret=attempt(lambda: external_secret(spec, world)),
        secret=attempt(
            lambda: world.services.kubernetes.secret(spec.identity.namespace, spec.secret_name)
        ),
        live=attempt(lambda: _live(spec.identity, world)) if _must_live(server, locked) else None,
    )
    facts = replace(facts, login=_login(facts, server, instance, world))
    return replace(facts, available=attempt(lambda: _available(facts, server, world)))


def _instance(name: str, world: World) -> Instance | None:
    manifest = world.instance(name)
    return None if manifest is None else Instance.of(manifest)


def _server(spec: Spec, world: World) -> Server:
    admin = world.admin()
    row = admin.row(spec.identity.uid)
    database, role = (row.database, row.role) if row else (spec.database, spec.role)
    secret = (spec.identity.namespace, spec.secret_name)
    rivals = admin.claims(database=spec.database, role=spec.role, secret=secret)
    return Server(
        row=row,
        rivals=tuple(other for other in rivals if other.uid != spec.identity.uid),
        role=admin.role(role),
        database=admin.database(database),
        admin_role=world.admin_login().username,
    )


def external_secret(spec: Spec, world: World) -> Manifest | None:
    """Read the ExternalSecret by name, live: a child may be missing from a cache."""
    return world.services.kubernetes.get(
        EXTERNAL_SECRETS, spec.external_secret_name, spec.identity.namespace
    )


def _must_live(server: Server, locked: bool) -> bool:  # noqa: FBT001  private, one caller
    return locked and (server.row is None or server.row.state == "unmanaged")


def _live(identity: Identity, world: World) -> bool:
    tenant = world.services.kubernetes.get(TENANTS, identity.name, identity.namespace)
    return (
        tenant is not None
        and manifests.uid(tenant) == identity.uid
        and not manifests.deleting(tenant)
    )


def _login(
    facts: Facts, server: Server, instance: Instance, world: World
) -> Presence | EffectError | None:
    row, role, database = server.row, server.role, server.database
    if row is None or role is None or database is None or database.oid != row.database_oid:
        return None
    connectable = database.allows_connections and database.connection_limit not in (0, -2)
    login = presented(facts)
    if login is None or not role.can_login or role.expired or not connectable:
        return None
    endpoint = replace(instance.endpoint, database=row.database)
    return attempt(lambda: world.services.postgres.log_in(endpoint, login))


def presented(facts: Facts) -> Login | None:
    """Choose the login to prove: the Secret's own values where nothing speaks against them."""
    stored = facts.credential.login if isinstance(facts.credential, Credential) else None
    projected = None
    if isinstance(facts.secret, Secret):
        projected = secret_login(facts.secret)
    if isinstance(facts.credential, EffectError):
        return projected
    return stored


def _available(facts: Facts, server: Server, world: World) -> tuple[Available, ...]:
    present = facts.login.extensions if isinstance(facts.login, Presence) else frozenset()
    recorded = server.row.extensions if server.row else frozenset()
    missing = facts.spec.extensions - (present & recorded)
    return tuple(world.admin().available(missing)) if missing else ()

"""What is so on a server, read live: the only input of an Instance's decisions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hooks.core import manifests
from hooks.core.errors import EffectError, attempt
from hooks.effects.ports import (
    TENANTS,
    CertificateNames,
    Login,
    RegistryInfo,
    Row,
    ServerInfo,
)
from hooks.instance.model import Spec
from hooks.instance.world import World


@dataclass(frozen=True, slots=True)
class Sweep:
    """Rows whose Tenant is gone.

    Attributes:
        orphans: UIDs, each confirmed by a live read.
    """

    orphans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that deciding needs; None is "not asked, an earlier answer is missing".

    Attributes:
        login: the admin's login, as its Secret says.
        certificate: names of the server's certificate; None also when sslMode asks for no proof.
        sweep: what a sweep found; None when none is due.
    """

    spec: Spec
    login: Login | EffectError
    certificate: CertificateNames | EffectError | None = None
    server: ServerInfo | EffectError | None = None
    registry: RegistryInfo | EffectError | None = None
    sweep: Sweep | EffectError | None = None


def gather(spec: Spec, world: World) -> Facts:
    """Look at everything a sync needs, in the order in which the gates ask."""
    facts = Facts(spec=spec, login=attempt(world.login))
    if isinstance(facts.login, EffectError):
        return facts
    if spec.endpoint.ssl_mode in ("verify-ca", "verify-full"):
        certificate = attempt(lambda: world.services.postgres.certificate(spec.endpoint))
        facts = replace(facts, certificate=certificate)
        if isinstance(certificate, EffectError):
            return facts
    facts = replace(facts, server=attempt(lambda: world.admin().server()))
    if not isinstance(facts.server, ServerInfo):
        return facts
    facts = replace(facts, registry=attempt(lambda: world.admin().registry()))
    if not isinstance(facts.registry, RegistryInfo) or not facts.registry.usable:
        return facts
    registry = facts.registry
    return replace(facts, sweep=attempt(lambda: _sweep(spec, registry, world)))


def _sweep(spec: Spec, registry: RegistryInfo, world: World) -> Sweep | None:
    """Find rows of vanished Tenants.

    The rows are read first and the Tenants listed after, so a Tenant that is being created in
    between is in the list. Each that is missing there is confirmed by name.
    """
    period = world.config.sweep_seconds
    if registry.sweep_age is not None and registry.sweep_age < period:
        return None
    rows = world.admin().candidates(spec.uid, older_than=period)
    if not rows:
        return None
    alive = {manifests.uid(tenant) for tenant in world.services.kubernetes.list(TENANTS)}
    return Sweep(tuple(row.uid for row in rows if row.uid not in alive and not _lives(row, world)))


def _lives(row: Row, world: World) -> bool:
    tenant = world.services.kubernetes.get(TENANTS, row.name, row.namespace)
    return tenant is not None and manifests.uid(tenant) == row.uid

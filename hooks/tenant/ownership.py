"""Whose is it? Judge names that somebody else may hold.

A name is not a proof. The proofs are: the registry row of our UID and Instance, the OIDs it
recorded, the UID in the credential's custom metadata, and the controlling owner of the
ExternalSecret.
"""

from __future__ import annotations

from hooks.core import manifests
from hooks.core.decision import Stuck, Wait
from hooks.core.errors import EffectError
from hooks.effects.ports import Credential, Row, Secret
from hooks.tenant.facts import Facts, Server
from hooks.tenant.model import HAND_OVER
from hooks.tenant.reasons import CONFLICT, DEPENDENCY_UNAVAILABLE, RECONCILING


def is_ours(facts: Facts, credential: Credential) -> bool:
    """Say whether the credential carries this Tenant's UID."""
    return credential.owner.get("tenant-uid") == facts.spec.identity.uid


def foreign_credential(facts: Facts) -> Stuck:
    """Report a credential that carries another UID, or none."""
    return Stuck(
        CONFLICT,
        f"OpenBao path {facts.spec.kv_path} belongs to somebody else (its custom metadata does not"
        " name this Tenant): choose another Tenant name, or find out whose credential it is",
    )


def rival(facts: Facts, server: Server) -> Stuck | None:
    """Report a registry row of another UID that names our database or role."""
    for row in server.rivals:
        same = (row.namespace, row.name) == (
            facts.spec.identity.namespace,
            facts.spec.identity.name,
        )
        what = _claimed(facts, row)
        who = "an earlier Tenant of this name" if same else f"Tenant {row.namespace}/{row.name}"
        if row.instance_uid != facts.the_instance.uid:
            who += f" of an earlier or another PostgreSQLInstance ({row.instance_name})"
        elif same and row.state == "unmanaged":
            return Stuck(
                CONFLICT,
                f"{what} was retained by {who}: choose another name, or have it handed over by"
                f" annotating PostgreSQLInstance {facts.spec.instance} with {HAND_OVER}:"
                f" {row.uid}={facts.spec.identity.uid}",
            )
        return Stuck(CONFLICT, f"{what} is registered for {who}: choose another name")
    return None


def _claimed(facts: Facts, row: Row) -> str:
    if row.database == facts.spec.database:
        return f"database {row.database!r}"
    if row.role == facts.spec.role:
        return f"role {row.role!r}"
    return f"Secret {row.secret_name!r}"


def catalog_stranger(server: Server) -> Stuck | None:
    """Report a database or role of our name while the registry has no row of ours."""
    for kind, there in (("database", server.database), ("role", server.role)):
        if there is not None:
            return Stuck(
                CONFLICT,
                f"a {kind} of this name exists on the server and was not created for this Tenant:"
                f" choose another name, or have the {kind} removed",
            )
    return None


def object_stranger(facts: Facts) -> Stuck | Wait | None:
    """Judge the names of the ExternalSecret and, until there is one, of the Secret."""
    spec, observed, secret = facts.spec, facts.external_secret, facts.secret
    if isinstance(observed, EffectError):
        return Wait.on(observed, reason=DEPENDENCY_UNAVAILABLE)
    if observed is not None:
        if manifests.controller_uid(observed) == spec.identity.uid:
            return None
        return Stuck(
            CONFLICT,
            f"ExternalSecret {spec.external_secret_name} exists and is not controlled by this"
            " Tenant: remove it",
        )
    if isinstance(secret, EffectError):
        return Wait.on(secret, reason=DEPENDENCY_UNAVAILABLE)
    if isinstance(secret, Secret):
        return Stuck(
            CONFLICT,
            f"Secret {spec.secret_name} exists and was not projected for this Tenant: remove it,"
            " or set spec.credential.secretName",
        )
    return None


def gone(facts: Facts) -> Wait | None:
    """Report a Tenant that is not there any more: a late call must not bring it back."""
    if isinstance(facts.live, EffectError):
        return Wait.on(facts.live, reason=DEPENDENCY_UNAVAILABLE)
    if facts.live is False:
        return Wait(RECONCILING, "this Tenant is gone or being deleted", unread=True)
    return None

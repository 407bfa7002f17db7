"""Does the Secret hold what KV holds? Judge External Secrets by what it did, not by its word.

`Ready=True` on an ExternalSecret proves nothing: its reason may be SecretDeleted, it may speak of
an older generation, and the value may be old. So the Secret itself is compared, then used.
"""

from __future__ import annotations

import hmac

from hooks.core import manifests
from hooks.core.decision import Met, Stuck, Verdict, Wait
from hooks.core.errors import EffectError
from hooks.core.manifests import Manifest
from hooks.effects.ports import Credential, Login, Presence, Secret
from hooks.tenant.actions import Provision
from hooks.tenant.children import secret_login, secret_values
from hooks.tenant.facts import Facts
from hooks.tenant.ownership import object_stranger
from hooks.tenant.reasons import (
    CREDENTIAL_PROJECTION_FAILED,
    DEPENDENCY_UNAVAILABLE,
    PROVISIONING_FAILED,
    RECONCILING,
)

OBSERVED = "ExternalSecretObserved"
PROJECTED = "CredentialProjected"
LOGIN_WORKS = "LoginWorks"

GRACE_SECONDS = 60.0


def observed(facts: Facts) -> Verdict[Provision]:
    """The ExternalSecret is there and ours; its name and the Secret's are nobody else's."""
    stranger = object_stranger(facts)
    if stranger is not None:
        return stranger
    if facts.external_secret is None:
        return Wait(
            RECONCILING, f"creating ExternalSecret {facts.spec.external_secret_name}", recheck=2.0
        )
    return Met()


def projected(facts: Facts) -> Verdict[Provision]:
    """External Secrets has written the Secret from the current credential."""
    secret = facts.secret
    if isinstance(secret, EffectError):
        return Wait.on(secret, reason=DEPENDENCY_UNAVAILABLE)
    fault = _sync_fault(facts) or _secret_fault(facts, secret)
    if fault is None:
        return Met()
    if _young(facts):
        return Wait(RECONCILING, fault, recheck=2.0)
    return Wait(CREDENTIAL_PROJECTION_FAILED, fault)


def _sync_fault(facts: Facts) -> str | None:
    external = _external_secret(facts)
    ready = manifests.condition(external, "Ready")
    name = facts.spec.external_secret_name
    if not ready:
        return (
            f"ExternalSecret {name} has no status: check that External Secrets runs and that the"
            " SecretStore it names is Ready"
        )
    if ready.get("status") != "True":
        return (
            f"ExternalSecret {name} is not synced ({_word(ready.get('reason'))}): check the"
            " SecretStore and what it may read in OpenBao"
        )
    if ready.get("reason") != "SecretSynced":
        return f"ExternalSecret {name} reports {_word(ready.get('reason'))}, not SecretSynced"
    version = str((external.get("status") or {}).get("syncedResourceVersion") or "")
    if not version.startswith(f"{manifests.generation(external)}-"):
        return f"ExternalSecret {name} is not synced at its current generation"
    return None


def _word(reason: object) -> str:
    """Return a reason as a word; anything else is not ours to show."""
    return reason if isinstance(reason, str) and reason.isalnum() else "no reason"


def _secret_fault(facts: Facts, secret: Secret | None) -> str | None:
    name = facts.spec.secret_name
    if secret is None:
        return f"Secret {name} is not there: External Secrets has not written it"
    if secret.controller_uid != manifests.uid(_external_secret(facts)):
        return (
            f"Secret {name} is not controlled by ExternalSecret {facts.spec.external_secret_name}"
        )
    stored = facts.credential.login if isinstance(facts.credential, Credential) else None
    if stored is not None and not _same_login(secret_login(secret), stored):
        return f"Secret {name} does not hold the current credential: waiting for a refresh"
    if not _same_values(facts, secret):
        return f"Secret {name} does not hold the current endpoint: waiting for a refresh"
    return None


def _same_login(one: Login | None, other: Login) -> bool:
    return (
        one is not None
        and one.username == other.username
        and hmac.compare_digest(one.password.encode(), other.password.encode())
    )


def _same_values(facts: Facts, secret: Secret) -> bool:
    expected = secret_values(facts.spec, facts.the_instance.endpoint)
    return all(secret.data.get(key) == value.encode() for key, value in expected.items())


def _young(facts: Facts) -> bool:
    """Say whether External Secrets deserves more time.

    It does for a minute after the ExternalSecret was created or last changed its readiness, and
    after this Tenant was last Ready.
    """
    external, past = _external_secret(facts), facts.past.ready
    moments = [
        manifests.timestamp(manifests.metadata(external).get("creationTimestamp")),
        manifests.timestamp(manifests.condition(external, "Ready").get("lastTransitionTime")),
    ]
    if past.get("status") == "True":
        return True
    if past.get("status") == "Unknown":
        moments.append(manifests.timestamp(past.get("lastTransitionTime")))
    return any(
        moment is not None and facts.now - moment.timestamp() < GRACE_SECONDS for moment in moments
    )


def login_works(facts: Facts) -> Verdict[Provision]:
    """The Secret's own values log in to the tenant's database, as the tenant."""
    login, row = facts.login, facts.the_server.row
    if isinstance(login, EffectError):
        return Wait.on(login, reason=PROVISIONING_FAILED)
    if not isinstance(login, Presence) or row is None:
        return Wait(RECONCILING, "the login was not tried")
    if (login.role, login.database) != (row.role, row.database):
        return Stuck(
            PROVISIONING_FAILED,
            "a login with the Secret's values ends in another role or database: check the"
            " owner's ALTER ROLE and ALTER DATABASE settings",
        )
    return Met()


def serving(facts: Facts) -> bool:
    """Say whether the credential works for its users although KV cannot be read."""
    external = facts.external_secret
    if not isinstance(external, dict) or not isinstance(facts.secret, Secret):
        return False
    return (
        manifests.controller_uid(external) == facts.spec.identity.uid
        and _sync_fault(facts) is None
        and _secret_fault(facts, facts.secret) is None
        and isinstance(facts.login, Presence)
    )


def _external_secret(facts: Facts) -> Manifest:
    assert isinstance(facts.external_secret, dict)  # noqa: S101  behind the gate observed
    return facts.external_secret

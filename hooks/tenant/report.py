"""The status of a PostgreSQLTenant: what was read back, never what was merely intended.

phase is a checkpoint for people. It stays where it is while facts cannot be read, and falls only
when something was seen to be missing. Names come from the registry row as soon as there is one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from hooks.core import report
from hooks.core.conditions import READY, Condition
from hooks.core.decision import Decision, Met, Wait
from hooks.core.manifests import Manifest, condition
from hooks.tenant.actions import Action
from hooks.tenant.facts import Facts, Server
from hooks.tenant.model import PHASES, Config
from hooks.tenant.reasons import INVALID_SPEC, RECONCILING
from hooks.tenant.remains import DELETING
from hooks.tenant.world import World

READY_MESSAGE = "the database accepts the projected credential"


def present(facts: Facts, decision: Decision[Action], parent: Manifest, world: World) -> Manifest:
    """Return the status of a live Tenant."""
    previous = parent.get("status") or {}
    fields = _names(facts, previous, world.config)
    fields["phase"] = report.phase(decision, previous.get("phase"), PHASES)
    current = report.ready(decision, facts.past.ready, met=READY_MESSAGE)
    return report.write(fields, current, parent, world.services.now)


def _names(facts: Facts, previous: Manifest, config: Config) -> Manifest:
    """Return the effective names: the row's when it is ours, those that were before, the spec's."""
    spec = facts.spec
    row = facts.server.row if isinstance(facts.server, Server) else None
    if row is None and previous.get("databaseOID") is not None:
        return {}
    database, role, secret_name, kv_path = (
        (row.database, row.role, row.secret_name, row.kv_path)
        if row is not None
        else (spec.database, spec.role, spec.secret_name, spec.kv_path)
    )
    names: Manifest = {
        "database": database,
        "loginRole": role,
        "credential": {
            "secretRef": {"name": secret_name},
            "openBaoURL": f"{config.consumer_address}/v1/{config.mount}/data/{kv_path}",
        },
    }
    oid = None if row is None else row.database_oid
    return names if oid is None else names | {"databaseOID": oid}


def invalid(problems: list[str], parent: Manifest, now: datetime) -> Manifest:
    """Return the status of a Tenant whose spec cannot be used: the old one, and why."""
    phase = (parent.get("status") or {}).get("phase")
    fields = {"phase": phase if phase in PHASES else PHASES[0]}
    current = Condition(READY, "False", INVALID_SPEC, "; ".join(problems))
    return report.write(fields, current, parent, now)


def deleting(decision: Decision[Action], parent: Manifest, now: datetime) -> Manifest:
    """Return the status of a Tenant that is being deleted with policy Delete."""
    if isinstance(decision.verdict, Met):
        # Not Ready: somebody else's finalizer may keep the object for long.
        decision = replace(decision, verdict=Wait(RECONCILING, "nothing is left to delete"))
    current = report.ready(decision, condition(parent, READY), met="")
    return report.write({"phase": DELETING}, current, parent, now)

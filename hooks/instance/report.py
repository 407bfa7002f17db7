"""The status of a PostgreSQLInstance: what was read back, never what was merely intended."""

from __future__ import annotations

from datetime import datetime

from hooks.core import report
from hooks.core.conditions import READY, RECONCILING, Condition
from hooks.core.decision import Decision
from hooks.core.manifests import Manifest, condition
from hooks.effects.ports import ServerInfo
from hooks.instance.actions import Action
from hooks.instance.decide import INVALID_SPEC
from hooks.instance.facts import Facts
from hooks.instance.model import DELETING, PHASES


def present(facts: Facts, decision: Decision[Action], parent: Manifest, now: datetime) -> Manifest:
    """Return the status of a live Instance."""
    previous = (parent.get("status") or {}).get("phase")
    fields: Manifest = {"phase": report.phase(decision, previous, PHASES[1:])}
    if isinstance(facts.server, ServerInfo):
        fields["postgresqlVersion"] = facts.server.version
    message = "the server is checked and its registry is usable"
    current = report.ready(decision, condition(parent, READY), met=message)
    return report.write(fields, current, parent, now)


def invalid(problems: list[str], parent: Manifest, now: datetime) -> Manifest:
    """Return the status of an Instance whose spec cannot be used."""
    current = Condition(READY, "False", INVALID_SPEC, "; ".join(problems))
    return report.write({"phase": PHASES[0]}, current, parent, now)


def deleting(message: str, parent: Manifest, now: datetime) -> Manifest:
    """Return the status of an Instance that waits for its Tenants."""
    current = Condition(READY, "Unknown", RECONCILING, message)
    return report.write({"phase": DELETING}, current, parent, now)

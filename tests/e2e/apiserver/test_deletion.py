"""Deletion in each of the ways that kubectl has, and of what is around."""

from __future__ import annotations

import pytest

from hooks.core import manifests
from tests.app.running import until
from tests.e2e.apiserver.installation import set_up_team
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.tenants import API, inside, outside, provided, tenant

RETAINED = {"database", "role", "credential", "unmanaged"}


@pytest.mark.parametrize("cascade", ["background", "foreground"])
@pytest.mark.parametrize(
    ("policy", "left"), [("Retain", RETAINED), ("Delete", set())], ids=["Retain", "Delete"]
)
def test_the_children_go_with_the_tenant(
    shared: Operation, cascade: str, policy: str, left: set[str]
) -> None:
    found = provided(shared, deletionPolicy=policy)
    assert inside(shared, found) == {"postgresqltenant", "externalsecret", "secret"}
    name = manifests.name(found)
    shared.administrator.kubectl(
        *("delete", "pgtenant", name, "-n", "team-a"), f"--cascade={cascade}", "--timeout=90s"
    )
    until(lambda: inside(shared, found) == set(), seconds=90)
    assert outside(shared, found) == left


def test_orphans_stay_as_the_manual_says(shared: Operation) -> None:
    found = provided(shared)
    name = manifests.name(found)
    shared.administrator.kubectl(
        *("delete", "pgtenant", name, "-n", "team-a", "--cascade=orphan", "--timeout=60s")
    )
    assert inside(shared, found) == {"externalsecret", "secret"}
    assert outside(shared, found) == RETAINED


def test_an_instance_waits_for_its_tenants(shared: Operation) -> None:
    who = shared.administrator
    instance = who.get("pginstance", "shared")
    spare = {
        "apiVersion": API,
        "kind": "PostgreSQLInstance",
        "metadata": {"name": "spare"},
        "spec": instance["spec"],
    }
    who.apply(spare)
    shared.becomes_ready("pginstance", "spare")
    found = provided(shared, instanceRef="spare")
    name = manifests.name(found)
    who.kubectl("delete", "pginstance", "spare", "--wait=false")
    who.kubectl("wait", "pginstance/spare", "--for=jsonpath={.status.phase}=Deleting")
    ready = manifests.condition(who.get("pginstance", "spare"), "Ready")
    assert (ready["reason"], ready["status"]) == ("Reconciling", "Unknown")
    assert "1 " in ready["message"]
    who.kubectl("delete", "pgtenant", name, "-n", "team-a", "--timeout=60s")
    who.kubectl("wait", "pginstance/spare", "--for=delete", "--timeout=90s")


def test_a_namespace_ends(shared: Operation) -> None:
    who = shared.administrator
    set_up_team(shared.installation, "leaving")
    kept, dropped = tenant(), tenant(deletionPolicy="Delete")
    for wanted in (kept, dropped):
        wanted["metadata"]["namespace"] = "leaving"
    who.apply(kept, dropped)
    found = [
        shared.becomes_ready("pgtenant", manifests.name(wanted), "leaving")
        for wanted in (kept, dropped)
    ]
    who.kubectl("delete", "namespace", "leaving", "--timeout=120s")
    assert [outside(shared, one) for one in found] == [RETAINED, set()]

"""Every sample lives on a real API server: to Ready, and to gone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from tests.app.running import until
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.tenants import inside, log_in, outside, provided

KEYS = {
    *("username", "password", "host", "port", "database", "sslmode"),
    *("uri", "jdbc-uri", "pgpass", "ca.crt"),
}


@dataclass(frozen=True)
class Sample:
    """What kubectl shows of a pair of samples, and what deletion leaves."""

    name: str
    instance: tuple[str, str]
    tenant: tuple[str, str, str]
    secret: str
    left: frozenset[str]


MINIMAL = Sample(
    name="minimal",
    instance=("shared", "localhost"),
    tenant=("team-a", "orders", "orders"),
    secret="shared-orders-postgresql",
    left=frozenset({"database", "role", "credential", "unmanaged"}),
)
FULL = Sample(
    name="full",
    instance=("reporting", "localhost"),
    tenant=("team-b", "monthly-reports", "monthly_reports"),
    secret="monthly-reports-database",
    left=frozenset(),
)


@pytest.mark.parametrize("sample", [MINIMAL, FULL], ids=lambda sample: sample.name)
def test_a_sample_becomes_ready_and_goes(operation: Operation, sample: Sample) -> None:
    who, installation = operation.administrator, operation.installation
    instance, (namespace, name, database) = sample.instance[0], sample.tenant
    who.apply(*installation.sample(f"postgresqlinstance-{sample.name}"))
    operation.becomes_ready("pginstance", instance)
    who.apply(*installation.sample(f"postgresqltenant-{sample.name}"))
    found = operation.becomes_ready("pgtenant", name, namespace)
    line = who.kubectl("get", "pginstance", instance, "--no-headers").split()
    assert line[:-1] == [*sample.instance, "Ready", "True"]
    line = who.kubectl("get", "pgtenant", name, "-n", namespace, "--no-headers").split()
    assert line[:-1] == [name, instance, database, "Ready", sample.secret, "True"]
    assert operation.secret(namespace, sample.secret).keys() == KEYS
    assert log_in(operation, found) == (found["status"]["loginRole"], database)
    who.kubectl("delete", "pgtenant", name, "-n", namespace, "--timeout=60s")
    until(lambda: inside(operation, found) == set(), seconds=90)
    assert outside(operation, found) == sample.left


def test_what_is_described_is_what_is_wrong(shared: Operation) -> None:
    who = shared.administrator
    found = provided(shared, extensions=["pg_trgm"])
    name = manifests.name(found)
    changed = '{"spec": {"extensions": []}}'
    who.kubectl("patch", "pgtenant", name, "-n", "team-a", "--type=merge", "-p", changed)
    who.kubectl(
        *("wait", f"pgtenant/{name}", "-n", "team-a", "--timeout=60s"),
        "--for=condition=Ready=False",
    )
    words = who.kubectl("describe", "pgtenant", name, "-n", "team-a").split()
    shown = " ".join(words)
    assert "Reason: ImmutableField Status: False Type: Ready" in shown
    assert "pg_trgm" in shown.partition("Conditions:")[2]


def test_an_idle_tenant_is_not_written(shared: Operation) -> None:
    """A status that were pruned, or defaulted, would be written at every sync."""
    name = manifests.name(provided(shared, extensions=["hstore"]))
    objects = (("pgtenant", name, "team-a"), ("pginstance", "shared"))

    def rest() -> list[Manifest]:
        """Have both looked at twice: before the second, what the first led to is written."""
        for _ in range(2):
            for named in objects:
                shared.looks_again(*named)
        return [shared.get(*named)["status"] for named in objects]

    before, asked = rest(), shared.status_writes()
    assert (rest(), shared.status_writes()) == (before, asked)


def test_tenants_are_selected_by_their_instance(shared: Operation) -> None:
    name = manifests.name(provided(shared))

    def selected(instance: str) -> list[str]:
        selector = f"--field-selector=spec.instanceRef={instance}"
        printed = shared.administrator.kubectl("get", "pgtenant", "-A", selector, "-o", "name")
        return [line.partition("/")[2] for line in printed.split()]

    assert name in selected("shared")
    assert selected("another") == []

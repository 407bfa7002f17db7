"""Uninstalling leaves nothing in the cluster, in the order of the manual and by its way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.sandbox.certificates import Authority
from hooks.sandbox.kinds import ApiError
from hooks.sandbox.kube_cluster import KubeCluster
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from tests.app.running import until
from tests.docs.pages import commands
from tests.e2e.apiserver import control_plane as control_planes
from tests.e2e.apiserver.installation import Installation, install, prepared
from tests.e2e.apiserver.operation import Operation, operating
from tests.e2e.apiserver.others import external_secrets, now
from tests.e2e.apiserver.tenants import inside, outside, provided

# Kinds that the control plane writes by itself.
OWN = {"Event", "Lease", "EndpointSlice", "Endpoints", "ComponentStatus"}
RETAINED = {"database", "role", "credential", "unmanaged"}
FINALIZER = "metacontroller.io/compositecontroller-postgresql{}s.database.ddupan.top"


@pytest.fixture(scope="module")
def cleared(
    tmp_path_factory: pytest.TempPathFactory,
    authority: Authority,
    postgres: PostgresServer,
) -> Iterator[Installation]:
    """A control plane on which nothing of ours is installed yet."""
    directory = tmp_path_factory.mktemp("cleared")
    with (
        control_planes.started(directory / "control-plane", authority) as control_plane,
        OpenBaoServer.start(directory / "openbao", authority) as openbao,
    ):
        yield prepared(directory, control_plane, postgres, openbao)


def everything(cleared: Installation) -> set[tuple[str, str, str]]:
    """Return kind, namespace and name of all objects."""
    with KubeCluster(cleared.control_plane.kubeconfig, now) as cluster:
        kinds = [kind for kind in cluster.kinds if kind.kind not in OWN]
        return {
            (kind.kind, manifests.namespace(found), manifests.name(found))
            for kind in kinds
            for found in cluster.list(kind)
        }


def is_cleared(cleared: Installation, before: set[tuple[str, str, str]]) -> bool:
    """Say whether everything is as before; a kind that goes meanwhile cannot be listed."""
    with suppress(ApiError):
        return everything(cleared) == before
    return False


def with_an_instance(at_work: Operation) -> None:
    sample = at_work.installation.sample("postgresqlinstance-minimal")
    at_work.administrator.apply(*sample)
    at_work.becomes_ready("pginstance", "shared")


def collected(at_work: Operation, *tenants: Manifest) -> None:
    """Wait for the garbage collector, which learns of a new kind within half a minute.

    It cannot tell that an owner is gone once the owner's kind is.
    """
    until(lambda: all(inside(at_work, found) == set() for found in tenants), seconds=90)


def test_in_the_order_of_the_manual_nothing_stays(cleared: Installation) -> None:
    before, who = everything(cleared), cleared.administrator
    install(cleared)
    with operating(cleared) as at_work:
        with_an_instance(at_work)
        kept, dropped = provided(at_work), provided(at_work, deletionPolicy="Delete")
        look = commands("Uninstall")[0]
        shown = [line.split() for line in who.types(look).splitlines()]
        assert sorted(shown[1:]) == sorted(
            ["team-a", manifests.name(one), one["spec"]["deletionPolicy"]]
            for one in (kept, dropped)
        )
        for found in (kept, dropped):
            who.kubectl("delete", "pgtenant", manifests.name(found), "-n", "team-a")
        who.kubectl("delete", "pginstance", "--all")
        assert [outside(at_work, one) for one in (kept, dropped)] == [RETAINED, set()]
        collected(at_work, kept, dropped)
    who.kubectl("delete", "-k", "../overlay")
    who.kubectl("delete", "-k", "crds")
    until(lambda: is_cleared(cleared, before), seconds=90)


def test_in_the_wrong_order_the_way_out_of_the_manual_works(cleared: Installation) -> None:
    before, who = everything(cleared), cleared.administrator
    install(cleared)
    with operating(cleared) as at_work:
        with_an_instance(at_work)
        found = provided(at_work, deletionPolicy="Delete")
        who.kubectl("delete", "-k", "../overlay")
    name = manifests.name(found)
    who.kubectl("delete", "pgtenant", name, "-n", "team-a", "--wait=false")
    who.kubectl("delete", "pginstance", "shared", "--wait=false")
    (of_a_tenant,) = commands("A finalizer that stays")
    who.types(of_a_tenant.replace("orders", name))
    of_an_instance = of_a_tenant.replace("-n team-a ", "").replace(
        "tenant orders", "instance shared"
    )
    who.types(of_an_instance.replace(FINALIZER.format("tenant"), FINALIZER.format("instance")))
    with external_secrets(cleared, cleared.directory):
        collected(at_work, found)
    who.kubectl("delete", "-k", "crds")
    until(lambda: is_cleared(cleared, before), seconds=90)
    assert outside(at_work, found) == {"database", "role", "credential", "managed"}

"""The program has the rights that it uses, and no others.

The rights are narrowed first, as metacontroller/base/rbac.yaml says: otherwise a right on all
Secrets would stand in for the one on admin Secrets.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from tests.app.running import until
from tests.docs.pages import ROOT
from tests.e2e.apiserver.ingestions import druid, inserting, submitted
from tests.e2e.apiserver.installation import NAMESPACE
from tests.e2e.apiserver.operation import Operation
from tests.e2e.apiserver.rights import USER, Right, given, refused, rights_behind, taken_away
from tests.e2e.apiserver.tenants import API, provided, tenant

TARGET_SECRETS, DRUID_SECRETS = "database-hooks-target-secrets", "database-hooks-druid-secrets"
READER, ADMIN_SECRETS = "clusterrole/database-hooks", "role/database-hooks-admin-secrets"
TENANTS = "postgresqltenants.database.ddupan.top"
INSTANCES = "postgresqlinstances.database.ddupan.top"
GET_ADMIN_SECRET = Right(ADMIN_SECRETS, "get", "secrets")
LIST_TENANTS = Right(READER, "list", TENANTS)
LIST_INSTANCES = Right(READER, "list", INSTANCES)
OF_A_TENANT = [
    Right(READER, "get", TENANTS),
    Right(READER, "get", INSTANCES),
    Right(READER, "get", "externalsecrets.external-secrets.io"),
    Right(f"clusterrole/{TARGET_SECRETS}", "get", "secrets"),
]
GET_DRUID_SECRET = Right(f"clusterrole/{DRUID_SECRETS}", "get", "secrets")
OF_AN_INGESTION = [GET_DRUID_SECRET, Right("clusterrole/database-hooks-druid", "get", "namespaces")]
RIGHTS = [*OF_A_TENANT, GET_ADMIN_SECRET, LIST_TENANTS, LIST_INSTANCES, *OF_AN_INGESTION]


@pytest.fixture(scope="module")
def narrow(shared: Operation) -> Iterator[Operation]:
    """Secrets of Tenants may be read in team-a only, and those of ingestions where it is said."""
    who = shared.administrator
    who.kubectl("delete", "clusterrolebinding", TARGET_SECRETS, DRUID_SECRETS)
    bind(shared, TARGET_SECRETS, "team-a")
    yield shared
    who.kubectl("delete", "rolebinding", TARGET_SECRETS, "-n", "team-a")
    who.kubectl("apply", "-k", "../overlay")


def bind(operation: Operation, role: str, namespace: str) -> None:
    """Give a ClusterRole in one namespace, as the comments of the manifests say."""
    operation.administrator.kubectl(
        *("create", "rolebinding", role, "-n", namespace),
        *(f"--clusterrole={role}", f"--serviceaccount={NAMESPACE}:{NAMESPACE}"),
    )


def test_secrets_are_read_in_the_namespaces_that_are_named(narrow: Operation) -> None:
    provided(narrow)
    stranger = tenant()
    stranger["metadata"]["namespace"] = "team-b"
    narrow.administrator.apply(stranger)
    says(narrow, stranger, "the hooks may not get secrets in namespace team-b")
    name = manifests.name(stranger)
    narrow.administrator.kubectl("delete", "pgtenant", name, "-n", "team-b")


def test_every_right_is_used_and_none_is_missing(narrow: Operation) -> None:
    before = len(narrow.installation.control_plane.audited())
    live(narrow)
    since = narrow.installation.control_plane.audited()[before:]
    asked = [event for event in since if event["user"]["username"] == USER]
    assert [event["requestURI"] for event in asked if refused(event)] == []
    used = {right for event in asked for right in rights_behind(event)}
    assert used == set(RIGHTS)
    assert given(narrow) == set(RIGHTS)


@pytest.mark.parametrize("right", OF_A_TENANT, ids=str)
def test_no_tenant_without(narrow: Operation, right: Right) -> None:
    wanted = tenant()
    with taken_away(narrow, right):
        narrow.administrator.apply(wanted)
        says(narrow, wanted, f"the hooks may not {right.verb} {right.resource}")


def test_no_instance_without_its_admin_secret(narrow: Operation) -> None:
    wanted = instance(narrow)
    with taken_away(narrow, GET_ADMIN_SECRET):
        narrow.administrator.apply(wanted)
        says(narrow, wanted, f"the hooks may not get secrets in namespace {NAMESPACE}")
    narrow.administrator.kubectl("delete", "pginstance", manifests.name(wanted))


def test_no_end_of_an_instance_without_counting_tenants(narrow: Operation) -> None:
    wanted = instance(narrow)
    name = manifests.name(wanted)
    narrow.administrator.apply(wanted)
    narrow.becomes_ready("pginstance", name)
    with taken_away(narrow, LIST_TENANTS):
        narrow.administrator.kubectl("delete", "pginstance", name, "--wait=false")
        says(narrow, wanted, f"the hooks may not list {TENANTS}")


def test_no_rebinding_without_looking_for_instances(narrow: Operation) -> None:
    found = provided(narrow)
    with taken_away(narrow, LIST_INSTANCES):
        code, said = rebound(narrow, found)
    assert (code, f"the hooks may not list {INSTANCES}" in said) == (1, True)


def test_no_ingestion_without_its_login(narrow: Operation) -> None:
    wanted = inserting("forbidden")
    with druid(narrow, "forbidden", seconds=None):
        narrow.administrator.apply(wanted)
        says(narrow, wanted, "the hooks may not get secrets in namespace forbidden")
        bind(narrow, DRUID_SECRETS, "forbidden")
        submitted(narrow, wanted)
        narrow.administrator.kubectl("delete", "namespace", "forbidden")


def live(operation: Operation) -> None:
    """Do everything that the program can be asked for."""
    ingest(operation)
    found = provided(operation, deletionPolicy="Delete")
    assert rebound(operation, found) == (0, "")
    wanted = instance(operation)
    operation.administrator.apply(wanted)
    operation.becomes_ready("pginstance", manifests.name(wanted))
    operation.administrator.kubectl("delete", "pginstance", manifests.name(wanted))
    name = manifests.name(found)
    operation.administrator.kubectl("delete", "pgtenant", name, "-n", "team-a")


def ingest(operation: Operation) -> None:
    """Submit with a login, and end with the namespace, in which the way to Druid goes first."""
    with druid(operation, "passing", seconds=None):
        bind(operation, DRUID_SECRETS, "passing")
        wanted = inserting("passing")
        submitted(operation, wanted)
        operation.administrator.kubectl("delete", "service", "--all", "-n", "passing")
        operation.administrator.kubectl("delete", "namespace", "passing")


def instance(operation: Operation) -> Manifest:
    """Return another Instance of the same server."""
    spec = operation.get("pginstance", "shared")["spec"]
    meta = {"name": manifests.name(tenant())}
    return {"apiVersion": API, "kind": "PostgreSQLInstance", "metadata": meta, "spec": spec}


def rebound(operation: Operation, found: Manifest) -> tuple[int, str]:
    """Run the command of the administrator in the program's place; return its code and errors."""
    target = f"{manifests.namespace(found)}/{manifests.name(found)}"
    ended = subprocess.run(
        [sys.executable, "-m", "hooks", "registry", "rebind", target],
        env=dict(operation.pod.environment),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stderr


def says(operation: Operation, wanted: Manifest, words: str) -> None:
    """Wait until an object is not Ready for this reason."""
    kind, name = wanted["kind"], manifests.name(wanted)
    namespace = manifests.namespace(wanted) or "default"
    until(
        lambda: (
            words
            in str(
                manifests.condition(operation.get(kind, name, namespace), "Ready").get("message")
            )
        )
    )

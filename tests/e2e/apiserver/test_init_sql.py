"""databaseInitSQL on a real API server, both ways: admission, rights, Jobs and pruning are real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.initsql.outcome import Outcome
from hooks.sandbox.certificates import Authority
from tests.app.running import until
from tests.e2e.apiserver import control_plane as control_planes
from tests.e2e.apiserver.init_sql import World
from tests.e2e.apiserver.init_sql_at_work import at_work
from tests.e2e.apiserver.init_sql_objects import TEAM, backup
from tests.sandbox.pgo import FINALIZER, MEMORY

SQL = "CREATE TABLE t ();\n"
APPLIED = Outcome("applied", "the SQL was applied")
FAILED = Outcome("failed", "the statement that ends on line 2 failed: undefined_table", "42P01", 2)
KINDS = "jobs,serviceaccounts,roles,rolebindings"
NO_MORE_PODS = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-more-pods", "namespace": TEAM},
    "spec": {"hard": {"pods": "1"}},
}
MANAGER = "postgrescluster-controller"


@pytest.fixture(scope="module", params=["composite", "decorator"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[World]:
    directory = tmp_path_factory.mktemp(f"init-sql-{request.param}")
    with (
        control_planes.started(directory / "control-plane", authority) as control_plane,
        at_work(request.param, control_plane, directory) as made,
    ):
        yield made


def becomes_applied(world: World, name: str) -> None:
    until(lambda: world.record(name) == f"{name}-sql", seconds=60)


def test_the_sql_is_applied_and_of_all_that_was_made_the_job_stays(world: World) -> None:
    world.ask("hippo", SQL)
    world.ends(world.attempt("hippo"), APPLIED)
    becomes_applied(world, "hippo")
    until(lambda: [made["kind"] for made in world.made("hippo", KINDS)] == ["Job"])
    (job,) = world.made("hippo", "jobs")
    until(lambda: bool(manifests.condition(world.made("hippo", "jobs")[0], "Complete")))
    assert world.told("hippo") == "Applied: the SQL was applied"
    assert "CREATE TABLE" not in str([job, world.cluster("hippo")])


def test_a_failure_is_told_and_a_mended_configmap_is_tried_at_once(world: World) -> None:
    world.ask("lion", f"{SQL}-- to be mended")
    pod = world.attempt("lion")
    world.ends(pod, FAILED)
    message = "SQLFailed: the statement that ends on line 2 failed: undefined_table"
    until(lambda: world.told("lion") == f"{message} (SQLSTATE 42P01)", seconds=60)
    assert world.record("lion") is None
    world.write("lion", SQL)
    world.ends(world.attempt("lion", other_than=manifests.name(pod)), APPLIED)
    becomes_applied(world, "lion")
    until(lambda: len(world.made("lion", KINDS)) == 1)


def test_a_pod_that_was_taken_away_is_told_and_its_sql_said_to_be_perhaps_applied(
    world: World,
) -> None:
    world.ask("okapi", SQL)
    pod = world.attempt("okapi")
    world.who.kubectl("delete", "pod", manifests.name(pod), "-n", TEAM)
    told = "JobFailed: the Job failed: BackoffLimitExceeded; the SQL may have been applied"
    until(lambda: world.told("okapi") == told, seconds=60)


def test_a_job_whose_pod_is_refused_is_said_to_have_none(world: World) -> None:
    world.start("kudu")
    world.who.apply(NO_MORE_PODS)
    world.wants("kudu", SQL)
    until(lambda: any(event["reason"] == "FailedCreate" for event in world.events("Job")))
    world.rests("kudu")
    told = "Reconciling: a Job is made to run the SQL, and has no Pod yet"
    assert (world.told("kudu"), world.made("kudu", "pods")) == (told, [])
    world.who.kubectl("delete", "resourcequota", "no-more-pods", "-n", TEAM)
    world.ends(world.attempt("kudu"), APPLIED)
    becomes_applied(world, "kudu")


def test_the_jobs_account_may_enter_the_instance_and_read_what_it_needs(world: World) -> None:
    world.ask("zebra", SQL)
    account = world.attempt("zebra")["spec"]["serviceAccountName"]
    who = (f"--as=system:serviceaccount:{TEAM}:{account}", "-n", TEAM)
    allowed = {
        words: world.who.can(*words.split(), *who)
        for words in (
            "get configmap/zebra-sql",
            "get postgresclusters.postgres-operator.crunchydata.com/zebra",
            "list pods",
            "create pods/zebra-00-0 --subresource=exec",
            "create pods/another --subresource=exec",
            "get configmap/another",
            "list configmaps",
            "get secrets",
            "create pods",
            "update postgresclusters.postgres-operator.crunchydata.com/zebra",
        )
    }
    assert [words for words, yes in allowed.items() if yes] == [
        "get configmap/zebra-sql",
        "get postgresclusters.postgres-operator.crunchydata.com/zebra",
        "list pods",
        "create pods/zebra-00-0 --subresource=exec",
    ]


def test_with_its_own_account_the_job_comes_as_far_as_to_the_container(world: World) -> None:
    """There is no kubelet behind the Pod: the API server says so, and refuses nothing before."""
    world.ask("gnu", SQL)
    refused = "Kubernetes: no usable answer to create pods/exec in namespace team-a (400)"
    assert world.runs(world.attempt("gnu")) == (75, Outcome("again", refused))


def test_at_rest_nothing_is_written(world: World) -> None:
    world.ask("tapir", SQL)
    world.ends(world.attempt("tapir"), APPLIED)
    becomes_applied(world, "tapir")
    until(lambda: len(world.made("tapir", KINDS)) == 1)
    until(lambda: bool(manifests.condition(world.made("tapir", "jobs")[0], "Complete")))
    world.rests("tapir")

    def versions() -> list[str]:
        found = [world.cluster("tapir"), *world.made("tapir", KINDS)]
        return [manifests.metadata(one)["resourceVersion"] for one in found]

    before = versions()
    world.rests("tapir")
    assert versions() == before


@pytest.mark.parametrize("world", ["decorator"], indirect=True)
def test_nothing_of_pgos_is_touched_from_the_first_look_to_the_record(world: World) -> None:
    asked = world.ask("moose", SQL)
    world.pgo_says("moose", MEMORY)
    world.who.apply(backup(asked))
    its = pgos(world, "moose")
    first = world.attempt("moose")
    world.ends(first, FAILED)
    until(lambda: world.told("moose").startswith("SQLFailed"), seconds=60)
    world.write("moose", f"{SQL}-- mended")
    world.ends(world.attempt("moose", other_than=manifests.name(first)), APPLIED)
    becomes_applied(world, "moose")
    world.rests("moose")
    assert pgos(world, "moose") == its
    assert its["status"] == MEMORY
    assert world.cluster("moose")["metadata"]["finalizers"] == [FINALIZER]


def pgos(world: World, name: str) -> Manifest:
    """Return what PGO wrote: status, backup, and the record of who wrote which field."""
    found = world.who.get(f"postgrescluster/{name}", "-n", TEAM, "--show-managed-fields")
    entries = manifests.metadata(found)["managedFields"]
    return {
        "status": found["status"],
        "fields": [entry for entry in entries if entry["manager"] == MANAGER],
        "backup": world.who.get(f"job/{name}-backup", "-n", TEAM),
    }


def test_deleting_a_cluster_waits_for_nobody_here_and_takes_all_along(world: World) -> None:
    asked = world.ask("ibex", SQL)
    world.attempt("ibex")
    assert manifests.metadata(asked).get("finalizers", []) == (
        [FINALIZER] if world.mode == "decorator" else []
    )
    world.who.kubectl("delete", "postgrescluster", "ibex", "-n", TEAM, "--wait=false")
    if world.mode == "decorator":
        patch = '{"metadata": {"finalizers": null}}'
        world.who.kubectl(
            "patch", "postgrescluster", "ibex", "-n", TEAM, "--type=merge", "-p", patch
        )
    world.who.kubectl("wait", "--for=delete", "postgrescluster/ibex", "-n", TEAM, "--timeout=30s")
    selector = f"database.ddupan.top/init-sql-uid={manifests.uid(asked)}"
    words = (f"{KINDS},pods", "-n", TEAM, "-l", selector)
    until(lambda: world.who.get(*words)["items"] == [], seconds=60)

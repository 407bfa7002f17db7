"""A cluster that Crunchy's operator has, or may have: nothing of its memory is written."""

from __future__ import annotations

from copy import deepcopy

import pytest

from hooks.core.contract import Request
from hooks.core.manifests import Manifest
from hooks.initsql.outcome import Outcome
from hooks.initsql.pgo import InitSqlPgoHooks
from tests.builders import merged
from tests.initsql.builders import (
    CONFIG,
    cluster,
    config_map,
    ended,
    job_pod,
    pod,
    request,
)
from tests.initsql.calls import applied, decorated, job, listed, services
from tests.initsql.fakes import MemoryKubernetes

PREFIX = "database.ddupan.top/init-sql"
FROM, APPLIED, STATE = f"{PREFIX}-from", f"{PREFIX}-applied", f"{PREFIX}-state"
STARTED = "Reconciling: a Job is made to run the SQL, and has no Pod yet"

MEMORY = {
    "pgbackrest": {"restore": {"id": "x"}},
    "conditions": [{"type": "PostgresDataInitialized", "status": "True"}],
}
"""What the operator remembers in the status, and reads back."""

MANAGED = {
    "managedFields": [{"manager": "postgrescluster-controller", "subresource": "status"}],
}


def annotated(**changes: object) -> Manifest:
    """Return a cluster of the operator whose SQL is asked for by annotation."""
    meta = MANAGED | {"annotations": {FROM: "seed/init.sql"}}
    parent = cluster(metadata=meta, spec={"databaseInitSQL": None}, status=MEMORY)
    return merged(parent, dict(changes))


FIRST = decorated(request(annotated(), pod(), config_map()))
JOB = job(FIRST)
ATTEMPT = JOB["metadata"]["name"]


def test_an_annotation_has_a_job_made_and_the_status_is_left_alone() -> None:
    assert [kind for kind, _ in listed(FIRST)] == ["Job", "ServiceAccount", "Role", "RoleBinding"]
    assert (FIRST.status, FIRST.annotations) == (None, {STATE: STARTED})
    assert "--mode=decorator" in JOB["spec"]["template"]["spec"]["containers"][0]["args"]


def test_success_is_recorded_in_an_annotation() -> None:
    done = ended(JOB, "Complete")
    answer = decorated(request(annotated(), pod(), config_map(), children=(done,)))
    assert (answer.status, listed(answer), answer.recheck) == (None, [("Job", ATTEMPT)], None)
    assert answer.annotations == {APPLIED: "seed", STATE: "Applied: the SQL was applied"}


def test_a_settled_cluster_is_answered_with_nothing_to_write() -> None:
    notes = {APPLIED: "seed", STATE: "Applied: the SQL was applied"}
    parent = annotated(metadata={"annotations": notes})
    answer = decorated(request(parent, pod(), config_map(), children=(ended(JOB, "Complete"),)))
    assert (answer.status, answer.annotations) == (None, {})
    without_job = decorated(request(parent, pod(), config_map()))
    assert (without_job.status, without_job.annotations, listed(without_job)) == (None, {}, [])


def test_a_failure_is_told_in_an_annotation_and_stands_while_it_is_tried_again() -> None:
    told = Outcome("failed", "the statement that ends on line 7 failed", "42P01", 7).write()
    its_pod = job_pod(JOB, "terminated", message=told)
    broken = ended(JOB, "Failed")
    text = "SQLFailed: the statement that ends on line 7 failed (SQLSTATE 42P01)"
    waiting = annotated(metadata={"annotations": {STATE: STARTED}})
    late = ended(JOB, "Failed", at="2026-03-01T12:00:00Z")
    answer = decorated(request(waiting, pod(), config_map(), its_pod, children=(late,)))
    assert (answer.annotations, answer.status) == ({STATE: text}, None)
    parent = annotated(metadata={"annotations": {STATE: text}})
    again = decorated(request(parent, pod(), config_map(), its_pod, children=(broken,)))
    assert (again.annotations, len(again.children)) == ({}, 5)


def test_without_the_annotation_everything_of_ours_goes() -> None:
    notes = {FROM: None, APPLIED: "seed", STATE: "Applied: the SQL was applied"}
    parent = annotated(metadata={"annotations": notes})
    answer = decorated(request(parent, pod(), children=(ended(JOB, "Complete"),)))
    assert answer.annotations == {APPLIED: None, STATE: None}
    assert (answer.status, listed(answer)) == (None, [])


def test_the_field_is_left_to_an_operator_that_does_it_itself() -> None:
    parent = cluster(metadata=MANAGED, status=MEMORY | {"databaseInitSQL": "seed"})
    answer = decorated(request(parent, pod(), config_map()))
    assert (answer.status, listed(answer), answer.recheck) == (None, [], None)
    assert answer.annotations == {
        STATE: "DeferredToOperator: the operator of this cluster runs spec.databaseInitSQL itself"
    }


def test_a_record_of_the_field_is_left_to_an_operator_too() -> None:
    status = MEMORY | {"databaseInitSQL": "seed"}
    parent = cluster(metadata=MANAGED, spec={"databaseInitSQL": None}, status=status)
    assert decorated(request(parent)).status is None


def test_without_an_operator_success_of_the_field_changes_that_one_field_of_the_status() -> None:
    parent = cluster(status=MEMORY)
    before = deepcopy(parent)
    started = decorated(request(parent, pod(), config_map()))
    assert started.status is None
    done = ended(job(started), "Complete")
    answer = decorated(request(parent, pod(), config_map(), children=(done,)))
    assert answer.status == MEMORY | {"databaseInitSQL": "seed"}
    assert parent == before
    settled = merged(parent, {"status": {"databaseInitSQL": "seed"}})
    assert decorated(request(settled, children=(done,))).status is None


def test_without_an_operator_a_record_without_its_field_is_taken_away() -> None:
    status = MEMORY | {"databaseInitSQL": "seed"}
    parent = cluster(spec={"databaseInitSQL": None}, status=status)
    assert decorated(request(parent)).status == MEMORY


def test_what_ran_for_the_annotation_proves_nothing_for_the_field() -> None:
    parent = cluster(status=MEMORY)
    answer = decorated(request(parent, pod(), config_map(), children=(ended(JOB, "Complete"),)))
    assert answer.status is None
    assert [name for kind, name in listed(answer) if kind == "Job"] != [ATTEMPT]


def test_a_config_map_that_metacontroller_does_not_relate_is_read_live() -> None:
    api = MemoryKubernetes({("configmaps", "seed"): config_map()})
    assert decorated(request(annotated(), pod()), api).children == FIRST.children


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("seed", "the key is missing", id="no-key"),
        pytest.param("/init.sql", "the name of the ConfigMap is missing or none", id="no-name"),
    ],
)
def test_an_annotation_that_cannot_be_used_is_told_and_nothing_changes(
    text: str, problems: str
) -> None:
    parent = annotated(metadata={"annotations": {FROM: text}})
    answer = decorated(request(parent, pod(), children=(JOB,)))
    assert answer.annotations == {STATE: f"InvalidSpec: metadata.annotations[{FROM}]: {problems}"}
    assert (answer.status, answer.children) == (None, (FIRST.children[0],))


def test_with_such_an_annotation_the_rights_of_a_job_go_when_it_has_ended() -> None:
    parent = annotated(metadata={"annotations": {FROM: "seed"}})
    rights = applied(FIRST.children[1:])
    answer = decorated(request(parent, pod(), children=(ended(JOB, "Failed"), *rights)))
    assert listed(answer) == [("Job", ATTEMPT)]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"spec": {"shutdown": True}}, "the cluster is shut down"),
        pytest.param({"spec": {"paused": True}}, "the cluster is paused"),
        pytest.param(
            {"spec": {"standby": {"enabled": True}}}, "the cluster is a standby of another"
        ),
        pytest.param(
            {"spec": {"users": [{"name": "app"}]}}, "the operator has not made the users yet"
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-03-01T10:00:00Z"}},
            "the cluster is being deleted",
        ),
    ],
)
def test_a_cluster_at_rest_gets_no_job(changes: dict[str, object], why: str) -> None:
    answer = decorated(request(annotated(**changes), pod(), config_map()))
    assert (answer.annotations, listed(answer)) == ({STATE: f"Reconciling: {why}"}, [])


def test_once_the_operator_has_made_the_users_the_sql_runs() -> None:
    status = MEMORY | {"usersRevision": "1"}
    parent = annotated(spec={"users": [{"name": "app"}]}, status=status)
    assert listed(decorated(request(parent, pod(), config_map())))[0][0] == "Job"


def test_deletion_does_not_wait_for_us() -> None:
    hooks = InitSqlPgoHooks(CONFIG, lambda _action, _outcome: None)
    answer = hooks.finalize(Request(parent=annotated(), finalizing=True), services())
    assert (answer.finalized, answer.status) == (True, None)

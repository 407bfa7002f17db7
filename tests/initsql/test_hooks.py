"""A cluster that is ours, from asking for SQL to its record and back."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from hooks.core.conditions import stamp
from hooks.core.contract import Request
from hooks.core.errors import Denied
from hooks.core.manifests import Manifest
from hooks.initsql.hooks import InitSqlHooks
from hooks.initsql.outcome import Outcome
from tests.builders import EARLIER, NOW, merged
from tests.initsql.builders import (
    CONFIG,
    NAME,
    NAMESPACE,
    SQL,
    UID,
    cluster,
    config_map,
    ended,
    job_pod,
    pod,
    request,
)
from tests.initsql.calls import applied, composite, job, listed, services
from tests.initsql.fakes import MemoryKubernetes

FIRST = composite(request(cluster(), pod(), config_map()))
JOB = job(FIRST)
ATTEMPT = JOB["metadata"]["name"]
LABEL_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
RIGHTS = [("ServiceAccount", ATTEMPT), ("Role", ATTEMPT), ("RoleBinding", ATTEMPT)]


def condition(status: str, reason: str, message: str, **more: object) -> Manifest:
    return {
        "type": "DatabaseInitSQLApplied",
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": stamp(NOW),
        **more,
    }


STARTED = condition("Unknown", "Reconciling", "a Job is made to run the SQL, and has no Pod yet")


def failed(*, at: str = EARLIER, outcome: Outcome | None = None) -> tuple[Manifest, Manifest]:
    """Return the first Job, failed, and its Pod."""
    told = outcome or Outcome("failed", "the statement that ends on line 1 failed", "42601", 1)
    return (
        ended(JOB, "Failed", at=at, reason="BackoffLimitExceeded"),
        job_pod(JOB, "terminated", message=told.write()),
    )


def test_a_job_with_its_account_and_rights_is_asked_for() -> None:
    assert listed(FIRST) == [("Job", ATTEMPT), *RIGHTS]
    assert FIRST.status == {"observedGeneration": 3, "conditions": [STARTED]}


def test_the_job_is_small_restricted_and_says_nothing_of_the_sql() -> None:
    spec = FIRST.children[0]["spec"]
    container = spec["template"]["spec"]["containers"][0]
    digest = FIRST.children[0]["metadata"]["annotations"]["database.ddupan.top/init-sql-digest"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 600)
    assert container["args"] == [
        "run-init-sql",
        "--mode=composite",
        "--namespace=team-a",
        "--cluster=hippo",
        f"--digest={digest}",
        "--seconds=600",
        "--termination-log=/dev/termination-log",
        "--pod=hippo-instance1-abcd-0",
    ]
    assert "env" not in container
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert "CREATE" not in json.dumps(FIRST.children)


def test_the_jobs_pod_is_no_instance_of_the_cluster() -> None:
    labels = FIRST.children[0]["spec"]["template"]["metadata"]["labels"]
    assert [label for label in labels if "crunchydata" in label] == []


def test_the_job_may_read_what_it_needs_and_enter_the_observed_pods_only() -> None:
    role = FIRST.children[2]
    operator = "postgres-operator.crunchydata.com"
    assert [
        (rule["apiGroups"], rule["resources"], rule.get("resourceNames"), rule["verbs"])
        for rule in role["rules"]
    ] == [
        ([""], ["configmaps"], ["seed"], ["get"]),
        ([operator], ["postgresclusters"], ["hippo"], ["get"]),
        ([""], ["pods"], None, ["list"]),
        ([""], ["pods/exec"], ["hippo-instance1-abcd-0"], ["create", "get"]),
    ]


def test_rights_that_are_lost_while_no_pod_is_seen_enter_no_pod_at_all() -> None:
    again = composite(request(cluster(), config_map(), children=(JOB,)))
    assert listed(again) == [("Job", ATTEMPT), *RIGHTS]
    rules = again.children[2]["rules"]
    assert [rule["resources"] for rule in rules] == [["configmaps"], ["postgresclusters"], ["pods"]]


def test_a_running_job_is_held_alone_whatever_config_map_or_release_there_is() -> None:
    broken = ended(merged(JOB, {"metadata": {"name": "older"}}), "Failed")
    held = config_map(other="x")
    answer = composite(request(cluster(), pod("replica"), held, children=(JOB, broken)))
    assert answer.children[0] == FIRST.children[0]
    assert listed(answer) == [("Job", ATTEMPT), *RIGHTS]


def test_a_complete_job_is_the_record_and_its_rights_go() -> None:
    done = ended(JOB, "Complete")
    answer = composite(request(cluster(), pod(), config_map(), children=(done,)))
    told = condition("True", "Applied", "the SQL was applied", observedGeneration=3)
    assert answer.status == {
        "databaseInitSQL": "seed",
        "observedGeneration": 3,
        "conditions": [told],
    }
    assert (listed(answer), answer.recheck) == ([("Job", ATTEMPT)], None)


def test_a_status_that_was_lost_is_made_again_from_the_job_that_is_still_there() -> None:
    answer = composite(request(cluster(), children=(ended(JOB, "Complete"),)))
    assert answer.status["databaseInitSQL"] == "seed"


def test_a_job_that_is_gone_is_not_made_again_once_the_record_is_there() -> None:
    answer = composite(request(cluster(status={"databaseInitSQL": "seed"}), pod(), config_map()))
    assert (answer.status["databaseInitSQL"], listed(answer)) == ("seed", [])


def test_sql_that_was_changed_after_it_was_applied_is_told_and_not_run() -> None:
    parent = cluster(status={"databaseInitSQL": "seed"})
    changed = config_map(**{"init.sql": "SELECT 2;"})
    answer = composite(request(parent, pod(), changed, children=(ended(JOB, "Complete"),)))
    assert listed(answer) == [("Job", ATTEMPT)]
    assert answer.status["conditions"][0]["message"] == (
        "the SQL was applied; it was changed since, and is not run again"
    )


def test_a_failed_job_is_kept_and_told_by_line_and_code() -> None:
    broken, its_pod = failed(at=stamp(NOW))
    answer = composite(request(cluster(), pod(), config_map(), its_pod, children=(broken,)))
    message = "the statement that ends on line 1 failed (SQLSTATE 42601)"
    told = condition("False", "SQLFailed", message, observedGeneration=3)
    assert answer.status == {"observedGeneration": 3, "conditions": [told]}
    assert (listed(answer), answer.recheck) == ([("Job", ATTEMPT)], 10.0)


def test_the_next_attempt_is_listed_beside_the_failed_one_and_the_failure_stands() -> None:
    broken, its_pod = failed()
    told = condition("False", "SQLFailed", "x", observedGeneration=3)
    parent = cluster(status={"conditions": [told]})
    second = composite(request(parent, pod(), config_map(), its_pod, children=(broken,)))
    name = ATTEMPT.removesuffix("1") + "2"
    assert listed(second)[:2] == [("Job", ATTEMPT), ("Job", name)]
    assert second.status["conditions"] == [told]
    running = composite(request(parent, pod(), config_map(), children=(broken, job(second))))
    assert listed(running)[0] == ("Job", name)
    assert ("Job", ATTEMPT) not in listed(running)
    assert running.status["conditions"] == [told]


def test_a_job_that_is_being_deleted_proves_nothing() -> None:
    going = merged(ended(JOB, "Complete"), {"metadata": {"deletionTimestamp": EARLIER}})
    answer = composite(request(cluster(), pod(), config_map(), children=(going,)))
    assert "databaseInitSQL" not in answer.status


def test_without_the_field_everything_goes_and_other_parts_of_the_status_stay() -> None:
    others = {"type": "Other", "status": "True"}
    status = {
        "databaseInitSQL": "seed",
        "usersRevision": "abc",
        "conditions": [others, STARTED],
    }
    parent = cluster(spec={"databaseInitSQL": None}, status=status)
    answer = composite(request(parent, pod(), children=(JOB,)))
    assert answer.status == {
        "usersRevision": "abc",
        "observedGeneration": 3,
        "conditions": [others],
    }
    assert listed(answer) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"spec": {"databaseInitSQL": {"name": "seed", "key": None}}},
            "spec.databaseInitSQL: the key is missing",
        ),
        pytest.param(
            {"spec": {"databaseInitSQL": {"name": "Not/A/Name", "key": "k"}}},
            "spec.databaseInitSQL: the name of the ConfigMap is missing or none",
        ),
        pytest.param(
            {"metadata": {"annotations": {"database.ddupan.top/init-sql-max-attempts": "0"}}},
            "metadata.annotations[database.ddupan.top/init-sql-max-attempts]:"
            " must be a number from 1 to 999999999",
        ),
        pytest.param(
            {
                "metadata": {
                    "annotations": {"database.ddupan.top/init-sql-max-attempts": "9" * 5000}
                }
            },
            "metadata.annotations[database.ddupan.top/init-sql-max-attempts]:"
            " must be a number from 1 to 999999999",
            id="a-number-that-python-refuses-to-read",
        ),
        pytest.param(
            {"spec": {"databaseInitSQL": {"name": "seed", "key": "k" * 254}}},
            "spec.databaseInitSQL: the key is longer than that of a ConfigMap can be",
        ),
    ],
)
def test_a_spec_that_cannot_be_used_is_told_and_nothing_changes(
    changes: Manifest, message: str
) -> None:
    parent = cluster(status={"databaseInitSQL": "older"}, **changes)
    answer = composite(request(parent, pod(), children=(JOB,)))
    told = answer.status["conditions"][0]
    assert (told["reason"], told["message"]) == ("InvalidSpec", message)
    assert answer.status["databaseInitSQL"] == "older"
    assert answer.children == (FIRST.children[0],)


def test_with_a_spec_that_cannot_be_used_the_rights_of_a_job_go_when_it_has_ended() -> None:
    parent = cluster(spec={"databaseInitSQL": {"key": ""}})
    running = composite(request(parent, children=applied(FIRST.children)))
    assert running.children == FIRST.children
    rights = applied(FIRST.children[1:])
    over = composite(request(parent, children=(ended(JOB, "Failed"), *rights)))
    assert listed(over) == [("Job", ATTEMPT)]


@pytest.mark.parametrize("over", [None, "Failed"], ids=["still-kept-alive", "ended-by-its-limit"])
def test_what_the_jobs_container_said_is_proof_although_another_one_kept_its_pod_alive(
    over: str | None,
) -> None:
    its_pod = job_pod(JOB, "terminated", message=Outcome("applied", "the SQL was applied").write())
    beside = {"name": "a-proxy", "state": {"running": {}}}
    its_pod["status"]["containerStatuses"].insert(0, beside)
    seen = ended(JOB, over, reason="DeadlineExceeded") if over else JOB
    answer = composite(request(cluster(), pod(), config_map(), its_pod, children=(seen,)))
    assert answer.status["databaseInitSQL"] == "seed"
    assert listed(answer) == [("Job", ATTEMPT)]


@pytest.mark.parametrize("standby", [True, "yes", [], {"enabled": False}])
def test_a_standby_that_is_not_described_as_one_is_none(standby: object) -> None:
    answer = composite(request(cluster(spec={"standby": standby}), pod(), config_map()))
    assert listed(answer)[0] == ("Job", ATTEMPT)


def test_a_cluster_that_the_operator_manages_is_left_as_it_is() -> None:
    status = {"pgbackrest": {"restore": {"id": "x"}}, "databaseInitSQL": "seed"}
    finalizers = ["postgres-operator.crunchydata.com/finalizer"]
    parent = cluster(metadata={"finalizers": finalizers}, status=status)
    answer = composite(request(parent, pod(), config_map()))
    assert (answer.status, listed(answer)) == (status, [])


def test_a_config_map_that_is_not_related_is_read_live() -> None:
    api = MemoryKubernetes({("configmaps", "seed"): config_map()})
    assert composite(request(cluster(), pod()), api).children == FIRST.children
    denied = MemoryKubernetes({("configmaps", "seed"): Denied("Kubernetes", "may not", code="403")})
    told = composite(request(cluster(), pod()), denied).status["conditions"][0]
    assert (told["reason"], told["message"]) == (
        "DependencyUnavailable",
        "Kubernetes: may not (403)",
    )


def test_the_same_request_has_the_same_answer() -> None:
    broken, its_pod = failed(at=stamp(NOW - timedelta(seconds=3)))
    once = request(cluster(), pod(), config_map(), its_pod, children=(broken,))
    parent = cluster(status=composite(once).status)
    again = request(parent, its_pod, config_map(), pod(), children=(broken,))
    assert composite(again) == composite(once)


@pytest.mark.parametrize("attempt", [1, 9, 999, 1_000_000])
@pytest.mark.parametrize("name", ["x" * 253, f"{'x' * 36}-y", f"{'x' * 35}.y.z", "a.b.c", "1-2"])
def test_names_fit_whatever_the_cluster_is_called_and_however_often_it_was_tried(
    name: str, attempt: int
) -> None:
    member = pod(metadata={"labels": {"postgres-operator.crunchydata.com/cluster": name}})
    parent = cluster(metadata={"name": name})
    first = job(composite(request(parent, member, config_map())))
    tried = {"database.ddupan.top/init-sql-attempt": str(attempt)}
    last = merged(ended(first, "Failed"), {"metadata": {"annotations": tried}})
    answer = composite(request(parent, member, config_map(), children=(last,)))
    made = job(answer)["metadata"]["name"]
    assert LABEL_NAME.fullmatch(made)
    assert made.endswith(f"-{attempt + 1}")


def test_customize_names_pods_and_the_config_map_in_the_clusters_namespace() -> None:
    hooks = InitSqlHooks(CONFIG, lambda _action, _outcome: None)
    assert hooks.customize(Request(parent=cluster())) == [
        {
            "apiVersion": "v1",
            "resource": "pods",
            "namespace": NAMESPACE,
            "labelSelector": {"matchLabels": {"database.ddupan.top/init-sql-uid": UID}},
        },
        {
            "apiVersion": "v1",
            "resource": "pods",
            "namespace": NAMESPACE,
            "labelSelector": {
                "matchLabels": {"postgres-operator.crunchydata.com/cluster": NAME},
                "matchExpressions": [
                    {
                        "key": "postgres-operator.crunchydata.com/instance",
                        "operator": "Exists",
                    }
                ],
            },
        },
        {
            "apiVersion": "v1",
            "resource": "configmaps",
            "namespace": NAMESPACE,
            "names": ["seed"],
        },
    ]


@pytest.mark.parametrize("spec", [None, [], {"databaseInitSQL": 3}, {"databaseInitSQL": {}}])
def test_customize_never_fails(spec: object) -> None:
    hooks = InitSqlHooks(CONFIG, lambda _action, _outcome: None)
    parent = cluster(metadata={"name": "x" * 100}) | {"spec": spec}
    assert [rule["resource"] for rule in hooks.customize(Request(parent=parent))] == ["pods"]


def test_deletion_does_not_wait_for_us() -> None:
    hooks = InitSqlHooks(CONFIG, lambda _action, _outcome: None)
    call = Request(parent=cluster(), children=request(cluster(), children=(JOB,)).children)
    answer = hooks.finalize(call, services())
    assert (answer.finalized, answer.children) == (True, (FIRST.children[0],))


def test_sql_is_nowhere_in_the_answers() -> None:
    secret = "CREATE ROLE x PASSWORD 's3cret'; SELECT 's3cret';"
    parent, held = cluster(), config_map(**{"init.sql": secret})
    answer = composite(request(parent, pod(), held))
    done = composite(request(parent, pod(), held, children=applied((answer.children[0],))))
    assert "s3cret" not in json.dumps([answer.status, answer.children, done.status, done.children])
    assert SQL not in json.dumps(FIRST.children)

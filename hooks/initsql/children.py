"""The children of a cluster: one Job for each attempt, and the account and rights it has.

All four have one name. The account and its rights are there while their Job runs, and only then.
"""

from __future__ import annotations

from collections.abc import Iterator

from hooks.core import contract, manifests
from hooks.core.contract import Request
from hooks.core.decision import Decision
from hooks.core.manifests import Manifest
from hooks.initsql.decide import Attempt, last_failed
from hooks.initsql.facts import Facts
from hooks.initsql.jobs import ATTEMPT, CONTAINER, DIGEST, ORIGIN, SOURCE, UID, Job, observed
from hooks.initsql.model import Config

_TERMINATION_LOG = "/dev/termination-log"
_RBAC = "rbac.authorization.k8s.io"
KINDS = frozenset(
    {
        ("batch/v1", "Job"),
        ("v1", "ServiceAccount"),
        (f"{_RBAC}/v1", "Role"),
        (f"{_RBAC}/v1", "RoleBinding"),
    }
)


def desired(
    decision: Decision[Attempt], facts: Facts, request: Request, config: Config
) -> tuple[Manifest, ...]:
    """Return what should exist.

    A Job that runs is listed whatever is asked for by now, and alone: the failed one before it has
    been kept for its logs, and goes. It and its rights are held as they were made; they are not
    those of a new decision. A Job that has ended is listed while it is there, and not made again.
    """
    there = {_identity(child): child for child in contract.hold(request)}
    running = [job for job in facts.jobs if job.state == "unfinished"]
    if running:
        return tuple(child for job in running for child in _as_made(job, there, facts))
    kept = tuple(there["Job", job.name] for job in _kept(facts))
    attempt = decision.action
    if attempt is None:
        return kept
    name = facts.wish.job_name(attempt.digest, attempt.number)
    source = facts.wish.source.name if facts.wish.source else ""
    return (*kept, _job(name, attempt, facts, config), *_account(name, source, facts))


def held(request: Request) -> tuple[Manifest, ...]:
    """Return what exists as it is, but for the rights of Jobs that have ended."""
    running = {job.name for job in observed(request) if job.state == "unfinished"}
    return tuple(
        child
        for child in contract.hold(request)
        if child.get("kind") == "Job" or manifests.name(child) in running
    )


def _as_made(job: Job, there: dict[tuple[str, str], Manifest], facts: Facts) -> Iterator[Manifest]:
    """Yield a Job that runs, and its rights; those that are missing are made again."""
    yield there["Job", job.name]
    for made in _account(job.name, job.source, facts):
        yield there.get(_identity(made), made)


def _identity(child: Manifest) -> tuple[str, str]:
    return str(child.get("kind")), manifests.name(child)


def _kept(facts: Facts) -> Iterator[Job]:
    """Yield what is kept of the Jobs that have ended: proof of success, or the last failure."""
    complete = [job for job in facts.jobs if job.state == "complete"]
    failed = last_failed(facts.jobs)
    if complete:
        yield from complete
    elif failed is not None:
        yield failed


def _labels(facts: Facts) -> dict[str, str]:
    return {
        "app.kubernetes.io/component": "init-sql",
        "app.kubernetes.io/managed-by": "database-hooks",
        UID: facts.wish.uid,
    }


def _metadata(name: str, facts: Facts) -> Manifest:
    return {"name": name, "namespace": facts.wish.namespace, "labels": _labels(facts)}


def _job(name: str, attempt: Attempt, facts: Facts, config: Config) -> Manifest:
    notes = {
        DIGEST: attempt.digest,
        ATTEMPT: str(attempt.number),
        SOURCE: facts.wish.source.name if facts.wish.source else "",
        ORIGIN: facts.wish.origin,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(name, facts) | {"annotations": notes},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": config.deadline_seconds,
            "template": {
                "metadata": {"labels": _labels(facts)},
                "spec": _pod(name, attempt, facts, config),
            },
        },
    }


def _pod(name: str, attempt: Attempt, facts: Facts, config: Config) -> Manifest:
    secrets = [{"name": secret} for secret in config.pull_secrets]
    return {
        "restartPolicy": "Never",
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(attempt, facts, config)],
    } | ({"imagePullSecrets": secrets} if secrets else {})


def _container(attempt: Attempt, facts: Facts, config: Config) -> Manifest:
    return {
        "name": CONTAINER,
        "image": config.image,
        "imagePullPolicy": config.pull_policy,
        "args": _arguments(attempt, facts, config),
        "resources": {
            "requests": {"cpu": config.cpu, "memory": config.memory},
            "limits": {"memory": config.memory},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "terminationMessagePath": _TERMINATION_LOG,
        "terminationMessagePolicy": "File",
    }


def _arguments(attempt: Attempt, facts: Facts, config: Config) -> list[str]:
    wish = facts.wish
    return [
        "run-init-sql",
        f"--mode={wish.mode}",
        f"--namespace={wish.namespace}",
        f"--cluster={wish.name}",
        f"--digest={attempt.digest}",
        f"--seconds={config.deadline_seconds}",
        f"--termination-log={_TERMINATION_LOG}",
        *(f"--pod={pod}" for pod in facts.instances.pods()),
    ]


def _account(name: str, source: str, facts: Facts) -> tuple[Manifest, ...]:
    """Return the account of a Job and what it may: read three kinds of things, and exec."""
    rules = [
        _rule("", "configmaps", ["get"], [source]),
        _rule("postgres-operator.crunchydata.com", "postgresclusters", ["get"], [facts.wish.name]),
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    pods = list(facts.instances.pods())
    if pods:  # a rule without names would be for every Pod
        rules.append(_rule("", "pods/exec", ["create", "get"], pods))
    about = _metadata(name, facts)
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": about,
            "automountServiceAccountToken": False,
        },
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": about, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": name, "namespace": facts.wish.namespace}
            ],
        },
    )


def _rule(group: str, resource: str, verbs: list[str], names: list[str]) -> Manifest:
    return {
        "apiGroups": [group],
        "resources": [resource],
        "resourceNames": names,
        "verbs": verbs,
    }

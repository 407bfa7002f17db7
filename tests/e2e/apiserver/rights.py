"""The rights of the program: those that are given, those that are used, and one less."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hooks.core import manifests
from hooks.core.manifests import Manifest
from tests.app.running import until
from tests.e2e.apiserver.installation import NAMESPACE
from tests.e2e.apiserver.operation import Operation

USER = f"system:serviceaccount:{NAMESPACE}:{NAMESPACE}"
REASON = re.compile(r'RBAC: allowed by \w+ "\S+" of (?P<kind>\w+) "(?P<name>\S+)" to .*')


@dataclass(frozen=True)
class Right:
    """One verb on one kind, and the role that gives it."""

    role: str
    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} by {self.role}"


@contextmanager
def taken_away(operation: Operation, right: Right) -> Iterator[None]:
    """Give the right back afterwards."""
    before = operation.administrator.get(right.role, "-n", NAMESPACE)["rules"]
    _write_rules(operation, right.role, [*_without(before, right)])
    until(lambda: not _may(operation, right))
    try:
        yield
    finally:
        _write_rules(operation, right.role, before)
        until(lambda: _may(operation, right))


def _without(rules: list[Manifest], right: Right) -> Iterator[Manifest]:
    for rule in rules:
        left = rule["verbs"]
        if right.resource in _resources(rule):
            left = [verb for verb in left if verb != right.verb]
        if left:
            yield {**rule, "verbs": left}


def _write_rules(operation: Operation, role: str, rules: list[Manifest]) -> None:
    patch = json.dumps({"rules": rules})
    operation.administrator.kubectl("patch", role, "-n", NAMESPACE, "--type=merge", "-p", patch)


def _may(operation: Operation, right: Right) -> bool:
    namespace = NAMESPACE if right.role.startswith("role/") else "team-a"
    words = (right.verb, right.resource, "-n", namespace, f"--as={USER}")
    return operation.administrator.can(*words)


def given(operation: Operation) -> set[Right]:
    """Return what the roles that were applied give."""
    selector = f"--selector=app.kubernetes.io/name={NAMESPACE}"
    roles = operation.administrator.get("clusterroles,roles", "-n", NAMESPACE, selector)["items"]
    return {
        Right(f"{role['kind'].lower()}/{manifests.name(role)}", verb, resource)
        for role in roles
        for rule in role["rules"]
        for resource in _resources(rule)
        for verb in rule["verbs"]
    }


def _resources(rule: Manifest) -> list[str]:
    """Return the plurals of a rule, with the group as kubectl takes it."""
    (group,) = rule["apiGroups"]
    return [f"{resource}.{group}".rstrip(".") for resource in rule["resources"]]


def refused(event: Manifest) -> bool:
    """Say whether the API server did not let a request through."""
    return bool(event["annotations"]["authorization.k8s.io/decision"] != "allow")


def rights_behind(event: Manifest) -> Iterator[Right]:
    """Yield the right by which a request was let through, if it is one of our roles."""
    reason = REASON.fullmatch(event["annotations"]["authorization.k8s.io/reason"])
    if reason and "objectRef" in event:
        what = event["objectRef"]
        resource = f"{what['resource']}.{what.get('apiGroup', '')}".rstrip(".")
        yield Right(f"{reason['kind'].lower()}/{reason['name']}", event["verb"], resource)

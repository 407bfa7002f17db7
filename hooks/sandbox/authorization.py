"""Who may do what: Roles and RoleBindings, evaluated as the API server does.

Idea: a ServiceAccount may do what the Roles bound to it in the namespace say, and nothing else.
Everybody else is one of us and may do all.

Limits: no ClusterRoles, groups or non-resource URLs. Whether somebody may grant what a Role says is
not asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.sandbox.kinds import ROLE, ROLE_BINDING, SERVICE_ACCOUNT, ApiError, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hooks.core.manifests import Manifest
    from hooks.sandbox.port import Cluster

    Allow = Callable[[str, str, str, str, str | None, str | None], bool]
    """Of user, verb, group, resource (with /status), namespace and name."""

_PREFIX = "system:serviceaccount:"


def service_account(namespace: str, name: str) -> str:
    """Return the user that a ServiceAccount's token stands for."""
    return f"{_PREFIX}{namespace}:{name}"


def forbidden(
    user: str, verb: str, kind: Kind, resource: str, namespace: str | None, name: str | None
) -> ApiError:
    """Say that a user may not do something."""
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    what = f'cannot {verb} resource "{resource}" in API group "{kind.group}" {where}'
    named = f'{kind.resource} "{name}"' if name else kind.resource
    return ApiError(403, "Forbidden", f'{named} is forbidden: User "{user}" {what}')


def by_roles(cluster: Cluster) -> Allow:
    """Return what the Roles and RoleBindings of a cluster allow to its ServiceAccounts."""

    def allow(
        user: str, verb: str, group: str, resource: str, namespace: str | None, name: str | None
    ) -> bool:
        if not user.startswith(_PREFIX):
            return True
        rules = _rules(cluster, user, namespace) if namespace else ()
        return any(_covers(rule, verb, group, resource, name) for rule in rules)

    return allow


def _rules(cluster: Cluster, user: str, namespace: str) -> Iterator[Manifest]:
    """Yield the rules that are bound to a living ServiceAccount in a namespace."""
    home, _, account = user.removeprefix(_PREFIX).partition(":")
    if cluster.get(SERVICE_ACCOUNT, home, account) is None:
        return
    subject = {"kind": "ServiceAccount", "namespace": home, "name": account}
    for binding in cluster.list(ROLE_BINDING, namespace):
        reference = binding["roleRef"]
        subjects = binding.get("subjects") or ()
        bound = any(subject.items() <= {"namespace": "", **one}.items() for one in subjects)
        if bound and reference["kind"] == ROLE.kind:
            role = cluster.get(ROLE, namespace, reference["name"])
            yield from (role or {}).get("rules") or ()


def _covers(rule: Manifest, verb: str, group: str, resource: str, name: str | None) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        _holds(rule.get("verbs") or (), verb)
        and _holds(rule.get("apiGroups") or (), group)
        and _holds(rule.get("resources") or (), resource)
        and (not names or name in names)
    )


def _holds(values: Sequence[str], wanted: str) -> bool:
    return "*" in values or wanted in values

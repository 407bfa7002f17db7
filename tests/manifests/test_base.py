"""The base: how the hooks run, and what they may do."""

from pathlib import Path
from typing import Any

import pytest

from tests.manifests.manifests import BASE, ROOT, Manifest, json_patch, load

YAML_FILES = sorted(
    path
    for folder in ("crds", "samples", "metacontroller")
    for path in (ROOT / folder).rglob("*.yaml")
)
OBJECTS = load(*(path for path in sorted(BASE.glob("*.yaml")) if path.stem != "kustomization"))


def one(kind: str, name: str = "database-hooks") -> Manifest:
    """Return the object of a kind and name."""
    found: Manifest
    (found,) = (o for o in OBJECTS if o["kind"] == kind and o["metadata"]["name"] == name)
    return found


def pod() -> Manifest:
    """Return the pod's spec."""
    found: Manifest = one("Deployment")["spec"]["template"]["spec"]
    return found


def container() -> Manifest:
    """Return the one container."""
    found: Manifest
    (found,) = pod()["containers"]
    return found


def keys_with_null(value: Any, path: str = "") -> list[str]:  # noqa: ANN401 -- any YAML value
    """Return the paths that hold nothing, which are slips of indentation."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        found
        for key, child in items
        for found in (
            [f"{path}.{key}"]
            if child is None
            else keys_with_null(child, f"{path}.{key}")
            if isinstance(child, dict | list)
            else []
        )
    ]


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_document_is_an_object_without_nulls(path: Path) -> None:
    """A JSON patch is a list, of changes instead of objects."""
    patch = path.read_text().startswith("- op:")
    for document in json_patch(path) if patch else load(path):
        assert ({"op", "path"} if patch else {"apiVersion", "kind"}) <= document.keys()
        assert keys_with_null(document) == []


def test_the_base_lists_all_its_files_and_no_crd() -> None:
    (kustomization,) = load(BASE / "kustomization.yaml")
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert sorted(kustomization["resources"]) == sorted(files)
    assert [o["kind"] for o in OBJECTS if o["kind"] in {"CustomResourceDefinition", "Secret"}] == []


def test_the_pod_meets_the_restricted_standard() -> None:
    security = pod()["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod().keys()
    kinds = {key for volume in pod()["volumes"] for key in volume if key != "name"}
    assert kinds == {"secret", "emptyDir"}
    labels = one("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_pod_stops_only_after_its_calls_are_answered() -> None:
    """Five seconds until nobody calls any more, thirty-five for the calls that run."""
    assert container()["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert pod()["terminationGracePeriodSeconds"] >= 5 + 35


def test_the_probes_ask_the_port_that_the_service_sends_to() -> None:
    (port,) = container()["ports"]
    assert port == {"name": "http", "containerPort": 8080, "protocol": "TCP"}
    assert container()["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container()["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    (served,) = one("Service")["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (8080, "http")


def test_everything_selects_the_same_pods() -> None:
    deployment = one("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert one("Service")["spec"]["selector"] == labels
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels


def test_a_rollout_and_a_drain_keep_a_pod_serving() -> None:
    deployment = one("Deployment")["spec"]
    assert deployment["replicas"] > one("PodDisruptionBudget")["spec"]["minAvailable"] >= 1
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_no_environment_variable_holds_a_secret() -> None:
    sources = [e["valueFrom"] for e in container()["env"] if "valueFrom" in e]
    assert [source for source in sources if "secretKeyRef" in source] == []
    mounts = {m["name"]: m["mountPath"] for m in container()["volumeMounts"]}
    files = {e["name"]: e.get("value") for e in container()["env"]}
    assert files["HOOK_TOKEN_FILES"] == f"{mounts['token']}/token"


def test_the_hooks_may_read_by_name_and_write_nothing() -> None:
    rules = {
        (role["kind"], role["metadata"]["name"], group, resource): rule["verbs"]
        for role in OBJECTS
        if role["kind"] in {"Role", "ClusterRole"}
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    own = "database.ddupan.top"
    assert rules == {
        ("ClusterRole", "database-hooks", own, "postgresqltenants"): ["get", "list"],
        ("ClusterRole", "database-hooks", own, "postgresqlinstances"): ["get", "list"],
        ("ClusterRole", "database-hooks", "external-secrets.io", "externalsecrets"): ["get"],
        ("ClusterRole", "database-hooks-target-secrets", "", "secrets"): ["get"],
        ("Role", "database-hooks-admin-secrets", "", "secrets"): ["get"],
    }


def test_every_role_is_bound_to_the_service_account() -> None:
    subject = {"kind": "ServiceAccount", "name": "database-hooks", "namespace": "database-hooks"}
    bindings = [o for o in OBJECTS if o["kind"].endswith("RoleBinding")]
    assert [b["subjects"] for b in bindings] == [[subject]] * len(bindings)
    bound = {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings}
    roles = {(o["kind"], o["metadata"]["name"]) for o in OBJECTS if o["kind"].endswith("Role")}
    assert bound == roles
    assert pod()["serviceAccountName"] == one("ServiceAccount")["metadata"]["name"]

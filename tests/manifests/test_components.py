"""The components: each adds what it is for, and takes away nothing else.

How kustomize puts them together is tried with kustomize itself, in tests/e2e/chart.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hooks.telemetry import Metrics
from tests.docs.pages import ROOT, headings
from tests.manifests.manifests import BASE, COMPONENTS, Manifest, json_patch, load
from tests.manifests.test_controllers import HOOKS

DIRECTORIES = sorted(path for path in COMPONENTS.iterdir() if path.is_dir())
ACCOUNT = {"kind": "ServiceAccount", "name": "database-hooks", "namespace": "database-hooks"}
TROUBLESHOOTING = ROOT / "docs" / "troubleshooting.md"


def kustomization(component: str) -> Any:  # noqa: ANN401  a parsed file
    (found,) = load(COMPONENTS / component / "kustomization.yaml")
    return found


def named(section: Manifest) -> set[str]:
    """Return the files that a kustomization uses."""
    generated = {file for each in section.get("configMapGenerator", ()) for file in each["files"]}
    patches = {patch["path"] for patch in section.get("patches", ())}
    return {*section.get("resources", ())} | patches | generated


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda path: path.name)
def test_a_component_uses_every_file_beside_it(directory: Any) -> None:  # noqa: ANN401
    found = kustomization(directory.name)
    assert (found["apiVersion"], found["kind"]) == ("kustomize.config.k8s.io/v1alpha1", "Component")
    assert named(found) == {path.name for path in directory.iterdir()} - {"kustomization.yaml"}


RIGHTS = {
    "druid": {
        "database-hooks-druid": ("namespaces", ["get"]),
        "database-hooks-druid-secrets": ("secrets", ["get"]),
    },
    "init-sql-job": {"database-hooks-init-sql": ("configmaps", ["get"])},
}


@pytest.mark.parametrize("component", RIGHTS)
def test_a_component_gives_these_rights_and_no_others(component: str) -> None:
    objects = load(COMPONENTS / component / "rbac.yaml")
    rights = {
        o["metadata"]["name"]: (*rule["resources"], rule["verbs"])
        for o in objects
        if o["kind"] == "ClusterRole"
        for rule in o["rules"]
        if rule["apiGroups"] == [""]
    }
    assert rights == RIGHTS[component]
    bound = {
        o["roleRef"]["name"]: o["subjects"] for o in objects if o["kind"] == "ClusterRoleBinding"
    }
    assert bound == {name: [ACCOUNT] for name in rights}
    assert len(objects) == len(rights) + len(bound)


@pytest.mark.parametrize("component", ["init-sql", "init-sql-pgo"])
def test_both_ways_of_init_sql_bring_what_their_jobs_need(component: str) -> None:
    assert kustomization(component)["components"] == ["../init-sql-job"]


def test_the_jobs_run_the_image_of_the_hooks() -> None:
    (replacement,) = kustomization("init-sql-job")["replacements"]
    container = "spec.template.spec.containers.[name=hooks]"
    assert replacement["source"]["fieldPath"] == f"{container}.image"
    assert replacement["targets"][0]["fieldPaths"] == [
        f"{container}.env.[name=INIT_SQL_IMAGE].value"
    ]


def test_without_postgresql_goes_what_only_postgresql_needs() -> None:
    deleted = {
        (o["kind"], o["metadata"]["name"])
        for o in load(COMPONENTS / "without-postgresql" / "delete.yaml")
        if o["$patch"] == "delete"
    }
    base = load(*(path for path in sorted(BASE.glob("*.yaml")) if path.stem != "kustomization"))
    only = {"CompositeController", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert deleted == {(o["kind"], o["metadata"]["name"]) for o in base if o["kind"] in only}


def test_without_postgresql_no_setting_of_openbao_is_left() -> None:
    (base,) = load(BASE / "deployment.yaml")
    (patch,) = load(COMPONENTS / "without-postgresql" / "settings.yaml")
    ours, theirs = (
        {v["name"]: v for v in o["spec"]["template"]["spec"]["containers"][0]["env"]}
        for o in (patch, base)
    )
    left = set(theirs) - {name for name, v in ours.items() if v.get("$patch") == "delete"}
    assert left == {"CONTROLLER_NAMESPACE", "HOOK_TOKEN_FILES"}
    assert ours["RESOURCES"]["value"] == "ingestion,initsql"


@pytest.mark.parametrize("hook", ["sync", "customize", "finalize"])
def test_tls_reaches_every_controller_that_has_the_hook(hook: str) -> None:
    (target,) = (
        patch["target"]
        for patch in kustomization("tls")["patches"]
        if patch["path"] == f"{hook}.yaml"
    )
    reached = {name for name in HOOKS if re.fullmatch(target.get("name", ".*"), name)}
    assert reached == {name for name, hooks in HOOKS.items() if hook in hooks}


def test_metacontroller_checks_the_certificate_by_the_ca_of_the_secret() -> None:
    patch = json_patch(COMPONENTS / "tls" / "sync.yaml")
    assert [(each["op"], each["path"]) for each in patch] == [
        ("replace", "/spec/hooks/sync/webhook/service/protocol"),
        ("add", "/spec/hooks/sync/webhook/caBundle"),
    ]
    reference = {"name": "database-hooks-tls", "namespace": "database-hooks", "key": "ca.crt"}
    assert patch[1]["value"] == {"secretRef": reference}


RULES = load(COMPONENTS / "monitoring" / "prometheusrule.yaml")[0]["spec"]["groups"][0]["rules"]
DASHBOARD = json.loads((COMPONENTS / "monitoring" / "database-hooks.json").read_text())


def expressions() -> list[str]:
    return [rule["expr"] for rule in RULES] + [
        target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]
    ]


def samples() -> dict[str, set[str]]:
    """Return the names that a scrape has, and the labels that each may have."""
    found: dict[str, set[str]] = {}
    metrics = Metrics()
    metrics.duration.labels("r", "h", "OK").observe(1)
    metrics.effects.labels("r", "o", "ok").inc()
    metrics.rejected.labels("r", "h").inc()
    for family in metrics.registry.collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("expression", expressions())
def test_alerts_and_panels_use_metrics_and_labels_that_there_are(expression: str) -> None:
    known = samples()
    used = re.findall(r"\b(hooks_\w+)(?:\{([^}]*)\})?", expression)
    assert used
    for name, matchers in used:
        assert name in known
        assert set(re.findall(r"(\w+)\s*[=!]~?\"", matchers)) <= known[name]
    grouped = {
        label.strip()
        for part in re.findall(r"by \(([^)]*)\)", expression)
        for label in part.split(",")
    }
    assert grouped <= set().union(*(known[name] for name, _ in used))


def test_every_alert_has_its_entry_in_the_manual() -> None:
    alerts = {rule["alert"] for rule in RULES}
    found = {title for title in headings(TROUBLESHOOTING, level=3) if title.startswith("Database")}
    assert found == alerts


def test_every_alert_says_what_and_why_and_how_bad() -> None:
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_the_panels_of_the_dashboard_are_all_different() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels)

"""The charts on a real API server: installed, changed, uninstalled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.chart.conftest import Admin
from tests.e2e.chart.rendering import CHART, CRD_CHART
from tests.manifests.contracts import CONTRACTS
from tests.manifests.manifests import SAMPLES

NAMESPACE = "database-hooks"
HERE = ("--namespace", NAMESPACE)
ALL = ("--set", "druid.enabled=true", "--set", "initSql.mode=composite")
OURS = ("-l", "app.kubernetes.io/name=database-hooks")


@pytest.fixture(scope="module")
def installed(admin: Admin) -> Iterator[Admin]:
    """Install both charts as the manual says."""
    admin.run("kubectl", "create", "namespace", NAMESPACE)
    restricted = "pod-security.kubernetes.io/enforce=restricted"
    admin.run("kubectl", "label", "namespace", NAMESPACE, restricted)
    kinds = ("--set", "druid=true", "--set", "initSql=true")
    admin.run("helm", "install", "database-hooks-crds", CRD_CHART, *HERE, *kinds)
    admin.established()
    admin.run("helm", "install", "database-hooks", CHART, *HERE, *ALL)
    yield admin
    admin.run("kubectl", "delete", "namespace", NAMESPACE)


def names(admin: Admin, kind: str, *where: str) -> list[str]:
    return [item["metadata"]["name"] for item in admin.get(kind, *OURS, *where)["items"]]


def test_what_is_installed_is_there(installed: Admin) -> None:
    assert names(installed, "compositecontrollers") == [
        "druidingestions.druid.apache.org",
        "init-sql.database.ddupan.top",
        "postgresqlinstances.database.ddupan.top",
        "postgresqltenants.database.ddupan.top",
    ]
    assert names(installed, "clusterroles") == [
        "database-hooks",
        "database-hooks-druid",
        "database-hooks-druid-secrets",
        "database-hooks-init-sql",
        "database-hooks-target-secrets",
    ]


def test_its_pods_are_admitted_where_only_restricted_ones_are(installed: Admin) -> None:
    deployment = "deployment/database-hooks"
    replicas = "jsonpath={.status.replicas}=2"
    installed.run("kubectl", "wait", deployment, *HERE, f"--for={replicas}", "--timeout=30s")
    assert len(names(installed, "pods", *HERE)) == 2


def test_an_upgrade_changes_what_it_is_told_to(installed: Admin) -> None:
    image = ("--set", "image.tag=0.2.0")
    installed.run("helm", "upgrade", "database-hooks", CHART, *HERE, *ALL, *image)
    (deployment,) = installed.get("deployments", *OURS, *HERE)["items"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert (container["image"], variables["INIT_SQL_IMAGE"]) == ("database-hooks:0.2.0",) * 2


def test_what_is_uninstalled_is_gone_but_for_the_crds_and_their_objects(installed: Admin) -> None:
    installed.run("kubectl", "create", "namespace", "druid")
    installed.run("kubectl", "apply", "-f", SAMPLES / "druidingestion-sql.yaml")
    for release in ("database-hooks", "database-hooks-crds"):
        installed.run("helm", "uninstall", release, *HERE)
    kinds = "deployments,services,serviceaccounts,networkpolicies,poddisruptionbudgets"
    assert names(installed, kinds, *HERE) == []
    assert names(installed, "compositecontrollers,clusterroles,clusterrolebindings") == []
    kept = {f"{c.plural}.{c.group}" for c in CONTRACTS.values()}
    assert set(names(installed, "crds")) == kept
    assert len(installed.get("druidingestions", "-n", "druid")["items"]) == 1

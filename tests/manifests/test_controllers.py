"""What Metacontroller is told: parents, children, hooks, and how it calls them."""

from __future__ import annotations

from typing import Any

import pytest

from hooks.ingestion.hooks import IngestionHooks
from hooks.initsql.hooks import InitSqlHooks
from hooks.initsql.pgo import InitSqlPgoHooks
from hooks.instance.hooks import InstanceHooks
from hooks.tenant.hooks import TenantHooks
from tests.manifests.contracts import CONTRACTS
from tests.manifests.manifests import BASE, COMPONENTS, Manifest, load

FILES = [
    *sorted(BASE.glob("compositecontroller-*.yaml")),
    *sorted(COMPONENTS.glob("*/*controller-*.yaml")),
]
CONTROLLERS = {o["metadata"]["name"]: o for o in load(*FILES)}
INSTANCES, TENANTS = (
    "postgresqlinstances.database.ddupan.top",
    "postgresqltenants.database.ddupan.top",
)
INGESTIONS = "druidingestions.druid.apache.org"
INIT_SQL, INIT_SQL_PGO = "init-sql.database.ddupan.top", "init-sql-pgo.database.ddupan.top"
HOOKS = {
    INSTANCES: {"sync": "/instance/sync", "finalize": "/instance/finalize"},
    TENANTS: {
        "sync": "/tenant/sync",
        "finalize": "/tenant/finalize",
        "customize": "/tenant/customize",
    },
    INGESTIONS: {
        "sync": "/ingestion/sync",
        "finalize": "/ingestion/finalize",
        "customize": "/ingestion/customize",
    },
    # Deleting a database cluster must not depend on us.
    INIT_SQL: {"sync": "/initsql/sync", "customize": "/initsql/customize"},
    INIT_SQL_PGO: {"sync": "/initsql-pgo/sync", "customize": "/initsql-pgo/customize"},
}

ANSWERED_BY: dict[str, Any] = {
    INSTANCES: InstanceHooks,
    TENANTS: TenantHooks,
    INGESTIONS: IngestionHooks,
    INIT_SQL: InitSqlHooks,
    INIT_SQL_PGO: InitSqlPgoHooks,
}


def child(api_version: str, resource: str, method: str) -> Manifest:
    strategy = {"updateStrategy": {"method": method}}
    return {"apiVersion": api_version, "resource": resource} | strategy


JOB = [
    child("batch/v1", "jobs", "OnDelete"),
    child("v1", "serviceaccounts", "OnDelete"),
    child("rbac.authorization.k8s.io/v1", "roles", "OnDelete"),
    child("rbac.authorization.k8s.io/v1", "rolebindings", "OnDelete"),
]
SPECS: dict[str, Manifest] = {
    INSTANCES: {
        "parentResource": {
            "apiVersion": "database.ddupan.top/v1alpha1",
            "resource": "postgresqlinstances",
        },
        "childResources": [],
        "generateSelector": True,
        "resyncPeriodSeconds": 60,
    },
    TENANTS: {
        "parentResource": {
            "apiVersion": "database.ddupan.top/v1alpha1",
            "resource": "postgresqltenants",
        },
        "childResources": [child("external-secrets.io/v1", "externalsecrets", "InPlace")],
        "generateSelector": True,
        "resyncPeriodSeconds": 3600,
    },
    INGESTIONS: {
        "parentResource": {
            "apiVersion": "druid.apache.org/v1alpha1",
            "resource": "druidingestions",
        },
        "childResources": [],
        "generateSelector": True,
        "resyncPeriodSeconds": 60,
    },
    INIT_SQL: {
        "parentResource": {
            "apiVersion": "postgres-operator.crunchydata.com/v1beta1",
            "resource": "postgresclusters",
            "labelSelector": {"matchLabels": {"database.ddupan.top/init-sql": "composite"}},
        },
        "childResources": JOB,
        "generateSelector": True,
        "resyncPeriodSeconds": 60,
    },
    INIT_SQL_PGO: {
        "resources": [
            {
                "apiVersion": "postgres-operator.crunchydata.com/v1beta1",
                "resource": "postgresclusters",
                "labelSelector": {"matchLabels": {"database.ddupan.top/init-sql": "decorator"}},
            }
        ],
        "attachments": JOB,
        "resyncPeriodSeconds": 60,
    },
}


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_called_the_same_way(name: str) -> None:
    assert CONTROLLERS[name]["spec"]["hooks"] == {
        hook: {
            "version": "v2",
            "webhook": {
                "service": {
                    "name": "database-hooks",
                    "namespace": "database-hooks",
                    "port": 8080,
                    "protocol": "http",
                },
                "path": path,
                "timeout": "30s",
                "authorization": {
                    "type": "Bearer",
                    "secretRef": {
                        "name": "database-hooks-token",
                        "namespace": "database-hooks",
                        "key": "token",
                    },
                },
            },
        }
        for hook, path in HOOKS[name].items()
    }


@pytest.mark.parametrize("name", SPECS)
def test_a_controller_has_its_parent_children_and_resync(name: str) -> None:
    spec = {k: v for k, v in CONTROLLERS[name]["spec"].items() if k != "hooks"}
    assert spec == SPECS[name]


@pytest.mark.parametrize("name", SPECS)
def test_a_controller_lists_the_kinds_that_its_hooks_may_answer(name: str) -> None:
    spec = SPECS[name]
    rules = spec["childResources"] if "childResources" in spec else spec["attachments"]
    listed = {(rule["apiVersion"], rule["resource"]) for rule in rules}
    hooks = ANSWERED_BY[name]
    assert listed == {(version, f"{kind.lower()}s") for version, kind in hooks.children}
    assert {path.split("/")[1] for path in HOOKS[name].values()} == {hooks.resource}


def test_there_is_no_other_controller() -> None:
    assert sorted(CONTROLLERS) == sorted(SPECS)
    assert {o["kind"] for o in CONTROLLERS.values()} == {
        "CompositeController",
        "DecoratorController",
    }


@pytest.mark.parametrize("name", SPECS)
def test_the_finalizer_made_of_a_controllers_name_is_valid(name: str) -> None:
    """The API server allows 63 characters after the slash."""
    assert len(f"compositecontroller-{name}") <= 63


def test_every_parent_is_one_of_our_crds() -> None:
    parents = {
        (parent["apiVersion"], parent["resource"])
        for spec in SPECS.values()
        for parent in [spec.get("parentResource") or spec["resources"][0]]
    }
    assert parents == {(f"{c.group}/{c.version}", c.plural) for c in CONTRACTS.values()}

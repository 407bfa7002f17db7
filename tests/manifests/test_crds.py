"""The CRDs say what the API contract says: its fields, defaults, choices and columns."""

import pytest
from jsonschema import Draft202012Validator

from tests.manifests.manifests import CRDS, Manifest, crd, load, properties, schema, version

KINDS = ["PostgreSQLInstance", "PostgreSQLTenant"]
NONE = "no default"

# Path -> type, required, default: the tables of the contract, and the objects that hold them.
INSTANCE_SPEC = {
    "spec": ("object", True, NONE),
    "spec.endpoint": ("object", True, NONE),
    "spec.endpoint.host": ("string", True, NONE),
    "spec.endpoint.hostaddr": ("string", True, NONE),
    "spec.endpoint.port": ("int32", False, 5432),
    "spec.endpoint.database": ("string", False, "postgres"),
    "spec.endpoint.sslMode": ("string", False, "verify-full"),
    "spec.adminCredentialRef": ("object", True, NONE),
    "spec.adminCredentialRef.name": ("string", True, NONE),
    "spec.adminCredentialRef.usernameKey": ("string", False, "username"),
    "spec.adminCredentialRef.passwordKey": ("string", False, "password"),
}
CONDITIONS = {
    "status.conditions": ("array", False, NONE),
    "status.conditions[]": ("object", False, NONE),
    "status.conditions[].type": ("string", True, NONE),
    "status.conditions[].status": ("string", True, NONE),
    "status.conditions[].observedGeneration": ("int64", False, NONE),
    "status.conditions[].lastTransitionTime": ("date-time", True, NONE),
    "status.conditions[].reason": ("string", True, NONE),
    "status.conditions[].message": ("string", True, NONE),
}
INSTANCE_STATUS = {
    "status": ("object", False, NONE),
    "status.observedGeneration": ("int64", False, NONE),
    "status.phase": ("string", False, NONE),
    "status.postgresqlVersion": ("string", False, NONE),
} | CONDITIONS
TENANT_SPEC = {
    "spec": ("object", True, NONE),
    "spec.instanceRef": ("string", True, NONE),
    "spec.database": ("string", False, NONE),
    "spec.loginRole": ("string", False, NONE),
    "spec.extensions": ("array", False, []),
    "spec.extensions[]": ("string", False, NONE),
    "spec.credential": ("object", False, NONE),
    "spec.credential.secretName": ("string", False, NONE),
    "spec.deletionPolicy": ("string", False, "Retain"),
}
TENANT_STATUS = {
    "status": ("object", False, NONE),
    "status.observedGeneration": ("int64", False, NONE),
    "status.phase": ("string", False, NONE),
    "status.database": ("string", False, NONE),
    "status.loginRole": ("string", False, NONE),
    "status.databaseOID": ("int64", False, NONE),
    "status.credential": ("object", False, NONE),
    "status.credential.secretRef": ("object", False, NONE),
    "status.credential.secretRef.name": ("string", True, NONE),
    "status.credential.openBaoURL": ("string", False, NONE),
} | CONDITIONS
TOP = {
    "apiVersion": ("string", False, NONE),
    "kind": ("string", False, NONE),
    "metadata": ("object", False, NONE),
}
FIELDS = {
    "PostgreSQLInstance": TOP | INSTANCE_SPEC | INSTANCE_STATUS,
    "PostgreSQLTenant": TOP | TENANT_SPEC | TENANT_STATUS,
}
CONDITION_STATUS = {"status.conditions[].status": ["True", "False", "Unknown"]}
ENUMS = {
    "PostgreSQLInstance": {
        "spec.endpoint.sslMode": ["disable", "require", "verify-ca", "verify-full"],
        "status.phase": ["Pending", "Validating", "InitializingRegistry", "Ready", "Deleting"],
    }
    | CONDITION_STATUS,
    "PostgreSQLTenant": {
        "spec.deletionPolicy": ["Retain", "Delete"],
        "status.phase": [
            "Pending",
            "Planned",
            "CredentialCreated",
            "RoleCreated",
            "DatabaseCreated",
            "ExternalSecretCreated",
            "CredentialProjected",
            "Ready",
            "Deleting",
        ],
    }
    | CONDITION_STATUS,
}
READY = '.status.conditions[?(@.type=="Ready")].status'
COLUMNS = {
    "PostgreSQLInstance": [
        ("Endpoint", "string", ".spec.endpoint.host"),
        ("Phase", "string", ".status.phase"),
        ("Ready", "string", READY),
        ("Age", "date", ".metadata.creationTimestamp"),
    ],
    "PostgreSQLTenant": [
        ("Instance", "string", ".spec.instanceRef"),
        ("Database", "string", ".status.database"),
        ("Phase", "string", ".status.phase"),
        ("Secret", "string", ".status.credential.secretRef.name"),
        ("Ready", "string", READY),
        ("Age", "date", ".metadata.creationTimestamp"),
    ],
}
NAMES = {
    "PostgreSQLInstance": ("Cluster", "postgresqlinstances", "pginstance"),
    "PostgreSQLTenant": ("Namespaced", "postgresqltenants", "pgtenant"),
}


def described(node: Manifest, *, required: bool) -> tuple[str, bool, object]:
    """Return a field's type (its format where it has one), need and default."""
    return str(node.get("format", node["type"])), required, node.get("default", NONE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fields_are_those_of_the_contract(kind: str) -> None:
    found = {
        path: described(node, required=required)
        for path, node, required in properties(schema(kind))
    }
    assert found == FIELDS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_choices_are_those_of_the_contract(kind: str) -> None:
    found = {path: node["enum"] for path, node, _ in properties(schema(kind)) if "enum" in node}
    assert found == ENUMS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_columns_are_those_of_the_contract(kind: str) -> None:
    found = [
        (column["name"], column["type"], column["jsonPath"])
        for column in version(kind)["additionalPrinterColumns"]
    ]
    assert found == COLUMNS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_the_names_and_the_scope_are_those_of_the_contract(kind: str) -> None:
    manifest = crd(kind)
    spec, (scope, plural, short_name) = manifest["spec"], NAMES[kind]
    assert manifest["metadata"]["name"] == f"{plural}.database.ddupan.top"
    assert (spec["group"], spec["scope"]) == ("database.ddupan.top", scope)
    assert spec["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [short_name],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_one_version_is_served_stored_and_has_a_status_of_its_own(kind: str) -> None:
    found = version(kind)
    assert (found["name"], found["served"], found["storage"]) == ("v1alpha1", True, True)
    assert found["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_is_structural(kind: str) -> None:
    """Every field has a type, nothing is let through unnamed."""
    nodes = {"": schema(kind)} | {path: node for path, node, _ in properties(schema(kind))}
    assert [path for path, node in nodes.items() if "type" not in node] == []
    lists = {path for path, node in nodes.items() if node["type"] == "array"}
    assert [path for path in lists if "items" not in nodes[path]] == []
    open_ended = {"additionalProperties", "x-kubernetes-preserve-unknown-fields", "$ref"}
    assert [path for path, node in nodes.items() if open_ended & node.keys()] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_default_is_valid(kind: str) -> None:
    refused = [
        path
        for path, node, _ in properties(schema(kind))
        if "default" in node and not Draft202012Validator(node).is_valid(node["default"])
    ]
    assert refused == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_string_and_list_is_bounded(kind: str) -> None:
    """Without bounds the API server refuses validation rules as too costly."""
    unbounded = [
        path
        for path, node, _ in properties(schema(kind))
        if path not in TOP
        and not {"maxLength", "maxItems", "enum", "format", "properties"} & node.keys()
    ]
    assert unbounded == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_explained(kind: str) -> None:
    unexplained = {
        path
        for path, node, _ in properties(schema(kind))
        if not node.get("description", "").strip()
    }
    assert unexplained == {"metadata", "status.conditions[]"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_condition_type_is_there_once(kind: str) -> None:
    conditions = schema(kind)["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_extensions_are_a_set() -> None:
    extensions = schema("PostgreSQLTenant")["properties"]["spec"]["properties"]["extensions"]
    assert extensions["x-kubernetes-list-type"] == "set"


def test_tenants_are_selectable_by_instance() -> None:
    assert version("PostgreSQLTenant")["selectableFields"] == [{"jsonPath": ".spec.instanceRef"}]


def test_the_kustomization_lists_every_crd() -> None:
    (kustomization,) = load(CRDS / "kustomization.yaml")
    files = sorted(path.name for path in CRDS.glob("*.yaml") if path.name != "kustomization.yaml")
    assert sorted(kustomization["resources"]) == files

"""What the API contract says of each kind, as the tests of the CRDs compare it.

A field is its type (its format where it has one), whether it is required, and its default.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NONE = "no default"

Field = tuple[str, bool, object]
READY = '.status.conditions[?(@.type=="Ready")].'


def optional(kind: str, default: object = NONE) -> Field:
    return kind, False, default


def required(kind: str) -> Field:
    return kind, True, NONE


TOP = {
    "apiVersion": optional("string"),
    "kind": optional("string"),
    "metadata": optional("object"),
}
STATUS = {
    "status": optional("object"),
    "status.observedGeneration": optional("int64"),
    "status.conditions": optional("array"),
    "status.conditions[]": optional("object"),
    "status.conditions[].type": required("string"),
    "status.conditions[].status": required("string"),
    "status.conditions[].observedGeneration": optional("int64"),
    "status.conditions[].lastTransitionTime": required("date-time"),
    "status.conditions[].reason": required("string"),
    "status.conditions[].message": required("string"),
}
CONDITION_STATUS = {"status.conditions[].status": ["True", "False", "Unknown"]}
AGE = ("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True)
class Contract:
    """One kind.

    Attributes:
        open: the fields below which anything is let through.
    """

    group: str
    version: str
    scope: str
    plural: str
    short_names: tuple[str, ...]
    fields: dict[str, Field]
    enums: dict[str, list[str]]
    columns: list[tuple[str, str, str]]
    selectable: list[str] = field(default_factory=list)
    open: frozenset[str] = frozenset()


INSTANCE = Contract(
    group="database.ddupan.top",
    version="v1alpha1",
    scope="Cluster",
    plural="postgresqlinstances",
    short_names=("pginstance",),
    fields={
        **TOP,
        "spec": required("object"),
        "spec.endpoint": required("object"),
        "spec.endpoint.host": required("string"),
        "spec.endpoint.hostaddr": required("string"),
        "spec.endpoint.port": optional("int32", 5432),
        "spec.endpoint.database": optional("string", "postgres"),
        "spec.endpoint.sslMode": optional("string", "verify-full"),
        "spec.adminCredentialRef": required("object"),
        "spec.adminCredentialRef.name": required("string"),
        "spec.adminCredentialRef.usernameKey": optional("string", "username"),
        "spec.adminCredentialRef.passwordKey": optional("string", "password"),
        **STATUS,
        "status.phase": optional("string"),
        "status.postgresqlVersion": optional("string"),
    },
    enums=CONDITION_STATUS
    | {
        "spec.endpoint.sslMode": ["disable", "require", "verify-ca", "verify-full"],
        "status.phase": ["Pending", "Validating", "InitializingRegistry", "Ready", "Deleting"],
    },
    columns=[
        ("Endpoint", "string", ".spec.endpoint.host"),
        ("Phase", "string", ".status.phase"),
        ("Ready", "string", f"{READY}status"),
        AGE,
    ],
)
TENANT = Contract(
    group="database.ddupan.top",
    version="v1alpha1",
    scope="Namespaced",
    plural="postgresqltenants",
    short_names=("pgtenant",),
    fields={
        **TOP,
        "spec": required("object"),
        "spec.instanceRef": required("string"),
        "spec.database": optional("string"),
        "spec.loginRole": optional("string"),
        "spec.extensions": optional("array", []),
        "spec.extensions[]": optional("string"),
        "spec.credential": optional("object"),
        "spec.credential.secretName": optional("string"),
        "spec.deletionPolicy": optional("string", "Retain"),
        **STATUS,
        "status.phase": optional("string"),
        "status.database": optional("string"),
        "status.loginRole": optional("string"),
        "status.databaseOID": optional("int64"),
        "status.credential": optional("object"),
        "status.credential.secretRef": optional("object"),
        "status.credential.secretRef.name": required("string"),
        "status.credential.openBaoURL": optional("string"),
    },
    enums=CONDITION_STATUS
    | {
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
    },
    columns=[
        ("Instance", "string", ".spec.instanceRef"),
        ("Database", "string", ".status.database"),
        ("Phase", "string", ".status.phase"),
        ("Secret", "string", ".status.credential.secretRef.name"),
        ("Ready", "string", f"{READY}status"),
        AGE,
    ],
    selectable=[".spec.instanceRef"],
)
CLUSTER = Contract(
    group="postgres-operator.crunchydata.com",
    version="v1beta1",
    scope="Namespaced",
    plural="postgresclusters",
    short_names=(),
    fields={
        **TOP,
        "spec": required("object"),
        "spec.databaseInitSQL": optional("object"),
        "spec.databaseInitSQL.name": required("string"),
        "spec.databaseInitSQL.key": required("string"),
        **STATUS,
        "status.databaseInitSQL": optional("string"),
    },
    enums=CONDITION_STATUS,
    columns=[("Init SQL", "string", ".status.databaseInitSQL"), AGE],
    open=frozenset({"spec", "status"}),
)

"""The validation rules of the CRDs, evaluated as the API server evaluates them."""

import pytest

from hooks.sandbox.rules import Node, broken_rules
from tests.manifests.manifests import Manifest, changed, schema

BEFORE = ["Pending", "Planned"]
AFTER = [
    "CredentialCreated",
    "RoleCreated",
    "DatabaseCreated",
    "ExternalSecretCreated",
    "CredentialProjected",
    "Ready",
    "Deleting",
]


def tenant(phase: str | None, spec: Manifest) -> Manifest:
    manifest: Manifest = {
        "apiVersion": "database.ddupan.top/v1alpha1",
        "kind": "PostgreSQLTenant",
        "metadata": {"name": "orders", "namespace": "team-a"},
        "spec": {"instanceRef": "shared", **spec},
    }
    return manifest if phase is None else changed(manifest, "status.phase", phase)


def refused(new: Manifest, old: Manifest | None) -> list[str]:
    """Return the fields that an update (or, without an old object, a creation) is refused for."""
    root = Node(schema(new["kind"]), new, old, "")
    return [f".{problem.path}" for problem in broken_rules(root)]


OTHER = {
    "instanceRef": "other",
    "database": "other",
    "loginRole": "other",
    "credential": {"secretName": "other"},
}
WRITTEN_OUT = {
    "database": "orders",
    "loginRole": "orders",
    "credential": {"secretName": "shared-orders-postgresql"},
}


@pytest.mark.parametrize("phase", AFTER)
def test_what_exists_outside_is_immutable(phase: str) -> None:
    assert refused(tenant(phase, OTHER), tenant(phase, {})) == [
        ".spec.instanceRef",
        ".spec.database",
        ".spec.loginRole",
        ".spec.credential.secretName",
    ]


@pytest.mark.parametrize("phase", [None, *BEFORE])
def test_everything_may_change_before_anything_exists(phase: str | None) -> None:
    assert refused(tenant(phase, OTHER), tenant(phase, {})) == []


def test_a_status_without_phase_permits_changes() -> None:
    assert refused(tenant(None, OTHER), changed(tenant(None, {}), "status", {})) == []


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        pytest.param(WRITTEN_OUT, {}, [], id="defaults-written-out"),
        pytest.param({}, WRITTEN_OUT, [], id="defaults-left-out"),
        pytest.param({"credential": {}}, {}, [], id="empty-credential"),
        pytest.param({}, {"database": "other"}, [".spec.database"], id="database-left-out"),
        pytest.param({}, {"loginRole": "other"}, [".spec.loginRole"], id="role-left-out"),
        pytest.param(
            {"credential": {}},
            {"credential": {"secretName": "other"}},
            [".spec.credential.secretName"],
            id="secret-left-out",
        ),
        pytest.param(
            {"instanceRef": "other"},
            {},
            [".spec.instanceRef", ".spec.credential.secretName"],
            id="instance-changes-the-default-secret",
        ),
        pytest.param(
            {"instanceRef": "other", "credential": {"secretName": "mine"}},
            {"credential": {"secretName": "mine"}},
            [".spec.instanceRef"],
            id="instance-leaves-a-named-secret",
        ),
        pytest.param({"deletionPolicy": "Delete"}, {}, [], id="deletion-policy"),
        pytest.param({}, {"extensions": ["pg_trgm"]}, [], id="removed-extension-is-reported-later"),
    ],
)
def test_only_effective_changes_are_refused(
    new: Manifest, old: Manifest, fields: list[str]
) -> None:
    assert refused(tenant("Ready", new), tenant("Ready", old)) == fields


def test_a_status_write_is_never_refused() -> None:
    assert refused(tenant("Pending", {}), tenant("Ready", {})) == []


@pytest.mark.parametrize(("length", "fields"), [(141, []), (142, [".spec.instanceRef"])])
def test_the_name_of_the_external_secret_must_fit(length: int, fields: list[str]) -> None:
    new = changed(tenant(None, {"instanceRef": "i" * 100}), "metadata.name", "n" * length)
    assert refused(new, None) == fields


def ingestion(task: str | None, cluster: str = "tiny", kind: str = "kafka") -> Manifest:
    manifest: Manifest = {
        "apiVersion": "druid.apache.org/v1alpha1",
        "kind": "DruidIngestion",
        "metadata": {"name": "clicks", "namespace": "druid"},
        "spec": {"druidCluster": cluster, "ingestion": {"type": kind}},
    }
    return manifest if task is None else changed(manifest, "status.taskId", task)


@pytest.mark.parametrize("task", [None, ""])
def test_an_ingestion_may_change_before_druid_has_it(task: str | None) -> None:
    assert refused(ingestion(task, "other", "sql"), ingestion(task)) == []


@pytest.mark.parametrize(
    ("cluster", "kind", "fields"),
    [
        pytest.param("tiny", "kafka", [], id="nothing"),
        pytest.param("other", "kafka", [".spec.druidCluster"], id="the-cluster"),
        pytest.param("tiny", "kinesis", [".spec.ingestion.type"], id="the-type"),
        pytest.param("tiny", "Kafka", [], id="the-long-name-of-the-type"),
        pytest.param("tiny", "Kinesis", [".spec.ingestion.type"], id="a-long-name-of-another"),
        pytest.param("tiny", "nonsense", [".spec.ingestion.type"], id="no-type"),
    ],
)
def test_what_druid_has_keeps_its_cluster_and_type(
    cluster: str, kind: str, fields: list[str]
) -> None:
    assert refused(ingestion("clicks", cluster, kind), ingestion("clicks")) == fields


def test_an_unknown_type_that_stays_is_not_refused() -> None:
    """The controller reports it; refusing every other edit would help nobody."""
    assert refused(ingestion("clicks", kind="x"), ingestion("clicks", kind="x")) == []


@pytest.mark.parametrize("kind", ["PostgreSQLTenant", "DruidIngestion"])
def test_every_message_names_its_field_and_a_way_out(kind: str) -> None:
    rules = schema(kind)["x-kubernetes-validations"]
    assert [
        r["message"] for r in rules if r["fieldPath"].removeprefix(".") not in r["message"]
    ] == []
    assert [r["message"] for r in rules if ": " not in r["message"]] == []

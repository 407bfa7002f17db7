"""Which values of a DruidIngestion the API server lets through, and what becomes of old objects."""

import pytest

from tests.manifests.manifests import SAMPLES, changed, load, problems, schema, with_defaults

(INGESTION,) = load(SAMPLES / "druidingestion-native-batch.yaml")
FIELDS: dict[str, list[tuple[object, bool]]] = {
    "spec.ingestion.type": [("Kafka", True), ("nonsense", True), (1, False), (None, False)],
    "spec.ingestion.spec": [("", True), ("{}", True), ({}, False)],
    "spec.ingestion.nativeSpec": [({"any": [1, {"thing": None}]}, True), ("{}", False)],
    "spec.ingestion.rules": [([{"type": "loadForever"}], True), (["loadForever"], False)],
    "spec.suspend": [(True, True), ("true", False)],
    "spec.auth": [
        ({"type": "", "secretRef": {}}, True),  # as druid-operator writes it
        ({"secretRef": {"name": "login"}}, True),
        ({}, True),
        ("basic", False),
    ],
    "spec.retryPolicy.maxRetries": [(0, True), (10, True), (11, False), (-1, False)],
    "spec.retryPolicy.backoffSeconds": [(1, True), (86400, True), (0, False), (86401, False)],
    "spec.deletionPolicy": [("Terminate", True), ("Orphan", True), ("Delete", False)],
    "spec.drift": [("Report", True), ("Restore", True), ("Ignore", False)],
    "spec.tls": [({}, True), ({"caSecretRef": {}}, False), ({"caSecretRef": {"name": ""}}, False)],
    "status": [
        ({"taskId": "", "currentIngestionSpec.json": ""}, True),
        ({"taskId": "t"}, False),
        ({"currentIngestionSpec.json": "{}"}, False),
    ],
}
CASES = [
    pytest.param(path, value, accepted, id=f"{path}={value!r:.40}-{accepted}")
    for path, values in FIELDS.items()
    for value, accepted in values
]


@pytest.mark.parametrize(("path", "value", "accepted"), CASES)
def test_a_value_is_accepted_or_refused(path: str, value: object, *, accepted: bool) -> None:
    assert (problems(changed(INGESTION, path, value)) == []) is accepted


@pytest.mark.parametrize("spec", [{}, {"druidCluster": "c"}, {"ingestion": {"type": "sql"}}])
def test_a_cluster_and_a_type_are_required(spec: dict[str, object]) -> None:
    assert problems(changed(INGESTION, "spec", spec)) != []


def test_an_object_of_druid_operator_stays_as_it_is_but_for_defaults() -> None:
    spec = {
        "suspend": False,
        "druidCluster": "tiny-cluster",
        "auth": {"type": "", "secretRef": {}},
        "ingestion": {"type": "native-batch", "spec": "{}"},
    }
    written = {"apiVersion": "druid.apache.org/v1alpha1", "kind": "DruidIngestion", "spec": spec}
    assert problems(written) == []
    keys = {"usernameKey": "OperatorUserName", "passwordKey": "OperatorPassword"}
    assert with_defaults(written, schema("DruidIngestion"))["spec"] == spec | {
        "auth": {"type": "", "secretRef": {}} | keys,
        "deletionPolicy": "Terminate",
        "drift": "Report",
    }

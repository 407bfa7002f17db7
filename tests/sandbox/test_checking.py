"""`hooks check` says what would be refused, where, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hooks.sandbox.checking import check, main
from tests.builders import merged
from tests.docs.pages import ROOT

TENANT = {
    "apiVersion": "database.ddupan.top/v1alpha1",
    "kind": "PostgreSQLTenant",
    "metadata": {"name": "orders", "namespace": "team-a"},
    "spec": {"instanceRef": "shared"},
}
INSTANCE = {
    "apiVersion": "database.ddupan.top/v1alpha1",
    "kind": "PostgreSQLInstance",
    "metadata": {"name": "shared"},
    "spec": {
        "endpoint": {"host": "postgresql.example.internal", "hostaddr": "192.0.2.10"},
        "adminCredentialRef": {"name": "shared-postgresql-admin"},
    },
}
INGESTION = {
    "apiVersion": "druid.apache.org/v1alpha1",
    "kind": "DruidIngestion",
    "metadata": {"name": "gates", "namespace": "druid"},
    "spec": {"druidCluster": "tiny", "ingestion": {"type": "kafka", "spec": '{\n"type": kafka}'}},
}
CLUSTER = {
    "apiVersion": "postgres-operator.crunchydata.com/v1beta1",
    "kind": "PostgresCluster",
    "metadata": {
        "name": "hippo",
        "namespace": "team-a",
        "labels": {"database.ddupan.top/init-sql": "decorator"},
        "annotations": {"database.ddupan.top/init-sql-from": "hippo-init-sql"},
    },
    "spec": {},
}


def said(directory: Path, *documents: object) -> list[str]:
    """Write the documents to one file, and return the lines without the file."""
    path = directory / "objects.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return [str(finding).removeprefix(f"{path}: ") for finding in check(path)]


def test_nothing_is_wrong_with_the_samples_and_the_recorded_calls(
    capsys: pytest.CaptureFixture[str],
) -> None:
    samples, calls = ROOT / "samples", ROOT / "tests" / "fixtures" / "calls"
    assert main([samples, calls]) == 0
    count = len([*samples.glob("*.yaml"), *calls.glob("*.json")])
    assert capsys.readouterr().out == f"files: {count}, problems: 0\n"


def test_a_date_without_quotes_is_a_string_as_kubectl_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    dated = merged(TENANT, {"metadata": {"annotations": {"since": "DATE"}}})
    path.write_text(yaml.safe_dump(dated).replace("DATE", "2026-05-04"))
    assert list(check(path)) == []


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(
            {"spec": {"deletionPolicy": "Drop", "instanceRef": "shared"}},
            'spec.deletionPolicy: Unsupported value: "Drop": supported values: "Retain", "Delete"',
            id="schema",
        ),
        pytest.param(
            {"spec": {"databse": "orders", "instanceRef": "shared"}},
            "spec.databse: unknown field",
            id="misspelled",
        ),
        pytest.param(
            {"metadata": {"labels": {"team": "no spaces"}}},
            'metadata.labels: Invalid value: "no spaces": must be a valid label value',
            id="metadata",
        ),
        pytest.param(
            {"metadata": {"labels": {"shard": 7}}},
            "metadata.labels: every value must be a string",
            id="no text",
        ),
    ],
)
def test_what_the_api_server_refuses_is_told(
    tmp_path: Path, change: dict[str, object], line: str
) -> None:
    assert line in [
        each.partition(" team-a/orders: ")[2] for each in said(tmp_path, merged(TENANT, change))
    ]


def test_a_rule_of_the_crd_is_asked(tmp_path: Path) -> None:
    long = {"metadata": {"name": "a" * 60}, "spec": {"instanceRef": "b" * 182}}
    told = [line for line in said(tmp_path, merged(TENANT, long)) if "at most 241" in line]
    assert [line.partition(": ")[0] for line in told] == [f"PostgreSQLTenant team-a/{'a' * 60}"]


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        pytest.param(
            merged(TENANT, {"metadata": {"name": "or-ders"}, "spec": {"loginRole": "orders"}}),
            "PostgreSQLTenant team-a/or-ders: InvalidSpec: spec.database: 'or-ders' is no"
            " PostgreSQL identifier ^[a-z][a-z0-9_]{0,62}$"
            " (it defaults to metadata.name: set spec.database)",
            id="a default",
        ),
        pytest.param(
            merged(INSTANCE, {"spec": {"endpoint": {"hostaddr": "2001:db8::7::1"}}}),
            "PostgreSQLInstance shared: InvalidSpec:"
            " spec.endpoint.hostaddr: '2001:db8::7::1' is not one IPv4 or IPv6 address",
            id="an address",
        ),
        pytest.param(
            INGESTION,
            "DruidIngestion druid/gates: InvalidSpec:"
            " spec.ingestion.spec: line 2, column 9: Expecting value",
            id="JSON in a text",
        ),
        pytest.param(
            CLUSTER,
            "PostgresCluster team-a/hippo: InvalidSpec:"
            " metadata.annotations[database.ddupan.top/init-sql-from]: the key is missing",
            id="an annotation",
        ),
    ],
)
def test_what_only_the_hooks_refuse_is_told(
    tmp_path: Path, manifest: dict[str, object], line: str
) -> None:
    assert said(tmp_path, manifest) == [line]


@pytest.mark.parametrize(
    ("api", "kind", "text"),
    [
        pytest.param(
            "database.ddupan.top/v1",
            "PostgreSQLTenant",
            "but database.ddupan.top/v1alpha1 PostgreSQLTenant",
            id="version",
        ),
        pytest.param(
            "druid.apache.org/v1alpha1",
            "DruidIngest",
            "but druid.apache.org/v1alpha1 DruidIngestion",
            id="kind",
        ),
    ],
)
def test_a_kind_of_ours_that_does_not_exist_is_told_with_the_one_that_does(
    tmp_path: Path, api: str, kind: str, text: str
) -> None:
    (line,) = said(tmp_path, TENANT | {"apiVersion": api, "kind": kind})
    assert line == f"{kind} team-a/orders: there is no {api} {kind}, {text}"


def test_a_kind_of_somebody_else_is_named_and_is_no_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store.yaml"
    store = {"apiVersion": "external-secrets.io/v1", "kind": "SecretStore"}
    path.write_text(yaml.safe_dump(store | {"metadata": {"name": "openbao"}}))
    assert main([path]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: SecretStore openbao: not checked: no schema of it is here",
        "files: 1, problems: 0",
    ]


def test_a_file_that_is_no_yaml_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("spec: [\n")
    (line,) = map(str, check(path))
    assert line == (
        f"{path}: while parsing a flow node expected the node content, but found '<stream end>'"
        ' in "<unicode string>", line 2, column 1: ^'
    )


def test_a_file_of_json_that_is_no_recorded_call_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "call.json"
    path.write_text('{"resource": "tenant", "hook": "sync", "request": {}, "answer": {}}')
    assert [str(finding) for finding in check(path)] == [
        f"{path}: parent is missing or not an object with metadata"
    ]

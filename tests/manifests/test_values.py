"""Which values the API server lets through, field by field."""

import pytest

from tests.manifests.manifests import SAMPLES, changed, load, problems, schema, with_defaults

(INSTANCE,) = load(SAMPLES / "postgresqlinstance-minimal.yaml")
(TENANT,) = load(SAMPLES / "postgresqltenant-minimal.yaml")

LABEL = "a" * 63
IDENTIFIERS = [
    ("a", True),
    ("orders_2026", True),
    ("a" * 63, True),
    ("a" * 64, False),
    ("1abc", False),
    ("Abc", False),
    ("_abc", False),
    ("my-app", False),
    ('a"b', False),
    ("a b", False),
    ("ä", False),
    ("", False),
]
OBJECT_NAMES = [
    ("shared", True),
    ("9", True),
    ("eu.shared-1", True),
    (f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}", True),
    ("a" * 254, False),
    ("Shared", False),
    ("-shared", False),
    ("shared-", False),
    ("a..b", False),
    ("a_b", False),
    ("team/shared", False),
    ("", False),
]
SECRET_KEYS = [
    ("username", True),
    ("db-user.name_1", True),
    (".pgpass", True),
    ("k" * 253, True),
    ("k" * 254, False),
    ("user name", False),
    ("a/b", False),
    ("..", False),
    (".", False),
    ("", False),
]
FIELDS: dict[str, list[tuple[object, bool]]] = {
    "spec.endpoint.host": [
        ("localhost", True),
        ("postgresql.example.internal", True),
        ("PG.Example.internal", True),
        ("1.pool.ntp.org", True),
        ("10-0-0-1", True),
        ("3com", True),
        ("xn--bcher-kva.example", True),
        (f"{LABEL}.{LABEL}.{LABEL}.{'a' * 61}", True),
        (f"{LABEL}.{LABEL}.{LABEL}.{'a' * 62}", False),
        ("a" * 64, False),
        ("192.0.2.10", False),
        ("2001:db8::1", False),
        ("a,b", False),
        ("/var/run/postgresql", False),
        ("a..b", False),
        ("example.org.", False),
        ("-a.example", False),
        ("a_b.example", False),
        ("host name", False),
        ("host:5432", False),
        ("", False),
        (None, False),
    ],
    "spec.endpoint.hostaddr": [
        ("192.0.2.10", True),
        ("255.255.255.255", True),
        ("2001:db8::10", True),
        ("2001:DB8:0:0:8:800:200C:417A", True),
        ("::1", True),
        ("::2:3:4:5:6:7:8", True),
        ("1:2:3:4:5:6:7::", True),
        ("::ffff:192.0.2.10", True),
        ("192.0.2.10,192.0.2.11", False),
        ("2001:db8::1,2001:db8::2", False),
        ("192.0.2.10:5432", False),
        ("[::1]", False),
        ("fe80::1%eth0", False),
        ("192.0.2.0/24", False),
        ("192.0.2.256", False),
        ("192.0.2.010", False),
        ("192.0.2", False),
        ("localhost", False),
        ("", False),
    ],
    "spec.endpoint.port": [
        (1, True),
        (65535, True),
        (0, False),
        (65536, False),
        (-1, False),
        ("5432", False),
        (5432.5, False),
    ],
    "spec.endpoint.database": [*IDENTIFIERS, (None, True)],
    "spec.endpoint.sslMode": [
        ("disable", True),
        ("verify-ca", True),
        ("prefer", False),
        ("Verify-Full", False),
        ("", False),
    ],
    "spec.adminCredentialRef.name": [*OBJECT_NAMES],
    "spec.adminCredentialRef.usernameKey": [*SECRET_KEYS],
    "spec.adminCredentialRef.passwordKey": [*SECRET_KEYS],
    "spec.instanceRef": [*OBJECT_NAMES],
    "spec.database": [*IDENTIFIERS, (None, False)],
    "spec.loginRole": [*IDENTIFIERS, (None, False)],
    "spec.credential": [({}, True), ("secret", False), (None, False)],
    "spec.credential.secretName": [*OBJECT_NAMES],
    "spec.extensions": [
        ([], True),
        (["pg_trgm", "uuid-ossp"], True),
        (["PostGIS", "_a"], True),
        (["e" * 63], True),
        (["e" * 64], False),
        (["a--b"], False),
        (["-a"], False),
        (["a-"], False),
        (["a.b"], False),
        (["a/b"], False),
        (['a"b'], False),
        ([""], False),
        ([1], False),
        ([f"e{n}" for n in range(129)], False),
        ("pg_trgm", False),
    ],
    "spec.deletionPolicy": [("Retain", True), ("Delete", True), ("delete", False), ("", False)],
    "status.databaseOID": [(1, True), (3_000_000_000, True), (4_294_967_296, False), (-1, False)],
    "status.phase": [("Pending", True), ("Ready", True), ("Failed", False), ("Retained", False)],
}
INSTANCE_FIELDS = ("spec.endpoint", "spec.adminCredentialRef")
CASES = [
    pytest.param(path, value, accepted, id=f"{path}={value!r:.40}-{accepted}")
    for path, values in FIELDS.items()
    for value, accepted in values
]


@pytest.mark.parametrize(("path", "value", "accepted"), CASES)
def test_a_value_is_accepted_or_refused(path: str, value: object, *, accepted: bool) -> None:
    manifest = INSTANCE if path.startswith(INSTANCE_FIELDS) else TENANT
    assert (problems(changed(manifest, path, value)) == []) is accepted


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (INSTANCE, "spec"),
        (INSTANCE, "spec.endpoint"),
        (INSTANCE, "spec.endpoint.host"),
        (INSTANCE, "spec.endpoint.hostaddr"),
        (INSTANCE, "spec.adminCredentialRef"),
        (INSTANCE, "spec.adminCredentialRef.name"),
        (TENANT, "spec"),
        (TENANT, "spec.instanceRef"),
    ],
)
def test_a_required_field_cannot_be_left_out(manifest: dict[str, object], path: str) -> None:
    *parents, leaf = path.split(".")
    incomplete = changed(manifest, path, None)
    node = incomplete
    for name in parents:
        node = node[name]
    del node[leaf]
    assert problems(incomplete) == [".".join(["$", *parents])]


def test_the_least_of_an_instance_gets_the_fixed_defaults() -> None:
    assert with_defaults(INSTANCE, schema("PostgreSQLInstance"))["spec"] == {
        "endpoint": {
            "host": "postgresql.example.internal",
            "hostaddr": "192.0.2.10",
            "port": 5432,
            "database": "postgres",
            "sslMode": "verify-full",
        },
        "adminCredentialRef": {
            "name": "shared-postgresql-admin",
            "usernameKey": "username",
            "passwordKey": "password",
        },
    }


def test_defaults_that_depend_on_other_fields_stay_omitted() -> None:
    assert with_defaults(TENANT, schema("PostgreSQLTenant"))["spec"] == {
        "instanceRef": "shared",
        "extensions": [],
        "deletionPolicy": "Retain",
    }


CONDITION = {
    "type": "Ready",
    "status": "False",
    "observedGeneration": 3,
    "lastTransitionTime": "2026-01-02T03:04:05Z",
    "reason": "InstanceNotReady",
    "message": "",
}


@pytest.mark.parametrize("manifest", [INSTANCE, TENANT])
@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"status": "Maybe"}, False, id="another status"),
        pytest.param({"status": True}, False, id="a boolean"),
        pytest.param({"reason": ""}, False, id="no reason"),
        pytest.param({"reason": "not one word"}, False, id="a sentence as reason"),
        pytest.param({"message": None}, False, id="null message"),
        pytest.param({"observedGeneration": -1}, False, id="negative generation"),
    ],
)
def test_a_condition_is_a_metav1_condition(
    manifest: dict[str, object], change: dict[str, object], *, accepted: bool
) -> None:
    reported = changed(manifest, "status.conditions", [CONDITION | change])
    assert (problems(reported) == []) is accepted

"""Which settings are taken, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from hooks.settings import SETTINGS, Settings, SettingsError


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The least that is needed."""
    for name in ("token", "jwt"):
        (tmp_path / name).write_text(name)
    return {
        "HOOK_TOKEN_FILES": str(tmp_path / "token"),
        "CONTROLLER_NAMESPACE": "database-hooks",
        "OPENBAO_ADDRESS": "https://openbao.openbao.svc:8200/",
        "OPENBAO_ROLE": "database-hooks",
        "OPENBAO_JWT_FILE": str(tmp_path / "jwt"),
        "SECRET_STORE_NAME": "openbao",
    }


def problems(environ: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(environ)
    return caught.value.problems


def test_the_least_settings_are_filled_up_with_defaults(
    environ: dict[str, str], tmp_path: Path
) -> None:
    assert Settings.from_env(environ).model_dump() == {
        "listen_address": "0.0.0.0:8080",
        "resources": ("instance", "tenant", "initsql", "ingestion"),
        "log_level": "info",
        "hook_token_files": (tmp_path / "token",),
        "tls_cert_file": None,
        "tls_key_file": None,
        "controller_namespace": "database-hooks",
        "kubeconfig": None,
        "postgres_ca_file": None,
        "registry_schema": "tenant_registry",
        "connect_keepers": (),
        "sweep_seconds": 600.0,
        "openbao_address": "https://openbao.openbao.svc:8200",
        "openbao_consumer_address": "https://openbao.openbao.svc:8200",
        "openbao_ca_file": None,
        "openbao_namespace": "",
        "openbao_mount": "secret",
        "openbao_base_path": "postgresql",
        "openbao_auth": "kubernetes",
        "openbao_role": "database-hooks",
        "openbao_auth_mount": "kubernetes",
        "openbao_jwt_file": tmp_path / "jwt",
        "openbao_token_file": None,
        "openbao_role_id_file": None,
        "openbao_secret_id_file": None,
        "secret_store_name": "openbao",
        "secret_store_kind": "SecretStore",
        "secret_refresh_interval": "1h",
        "druid_ca_file": None,
        "druid_secret_namespaces": (),
        "init_sql_image": "database-hooks:0.1.0",
        "init_sql_pull_policy": "IfNotPresent",
        "init_sql_pull_secrets": (),
        "init_sql_seconds": 3600,
        "init_sql_cpu": "100m",
        "init_sql_memory": "256Mi",
        "request_seconds": 20.0,
        "max_in_flight": 24,
        "threads": 32,
    }


def test_an_empty_variable_counts_as_unset(environ: dict[str, str]) -> None:
    empty = {setting.name: " " for setting in SETTINGS} | environ
    assert Settings.from_env(empty) == Settings.from_env(environ)


@pytest.mark.parametrize(
    ("name", "text", "field", "expected"),
    [
        ("LISTEN_ADDRESS", "[::]:8443", "listen_address", "[::]:8443"),
        ("RESOURCES", "tenant, ingestion", "resources", ("tenant", "ingestion")),
        ("LOG_LEVEL", "DEBUG", "log_level", "debug"),
        ("CONNECT_KEEPERS", "backup, Monitoring ", "connect_keepers", ("backup", "Monitoring")),
        ("SWEEP_SECONDS", "90.5", "sweep_seconds", 90.5),
        ("OPENBAO_ADDRESS", "http://127.0.0.1:8200", "openbao_address", "http://127.0.0.1:8200"),
        (
            "OPENBAO_CONSUMER_ADDRESS",
            "https://b.org//",
            "openbao_consumer_address",
            "https://b.org",
        ),
        ("OPENBAO_MOUNT", "/team/kv/", "openbao_mount", "team/kv"),
        ("OPENBAO_BASE_PATH", "/apps/pg/", "openbao_base_path", "apps/pg"),
        ("OPENBAO_BASE_PATH", "secrets", "openbao_base_path", "secrets"),
        ("OPENBAO_BASE_PATH", "database", "openbao_base_path", "database"),
        ("OPENBAO_AUTH_MOUNT", "kubernetes/prod", "openbao_auth_mount", "kubernetes/prod"),
        ("OPENBAO_NAMESPACE", "team/", "openbao_namespace", "team"),
        ("SECRET_STORE_KIND", "ClusterSecretStore", "secret_store_kind", "ClusterSecretStore"),
        ("SECRET_REFRESH_INTERVAL", "1h30m", "secret_refresh_interval", "1h30m"),
        ("SECRET_REFRESH_INTERVAL", "0.5s", "secret_refresh_interval", "0.5s"),
        ("DRUID_SECRET_NAMESPACES", "druid,ops", "druid_secret_namespaces", ("druid", "ops")),
        (
            "INIT_SQL_IMAGE",
            "r.org:5000/hooks@sha256:0f",
            "init_sql_image",
            "r.org:5000/hooks@sha256:0f",
        ),
        ("INIT_SQL_MEMORY", "1.5Gi", "init_sql_memory", "1.5Gi"),
    ],
)
def test_good_values(
    environ: dict[str, str], name: str, text: str, field: str, expected: object
) -> None:
    assert getattr(Settings.from_env(environ | {name: text}), field) == expected


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("LISTEN_ADDRESS", "8080", "must be host:port"),
        ("LOG_LEVEL", "loud", "input should be 'debug', 'info', 'warning' or 'error'"),
        ("HOOK_TOKEN_FILES", "/none/token", "there is no file /none/token"),
        ("CONTROLLER_NAMESPACE", "Team_A", "must be the name of a namespace"),
        ("CONTROLLER_NAMESPACE", "a" * 64, "must be the name of a namespace"),
        ("KUBECONFIG", "/none", "there is no file /none"),
        ("POSTGRES_CA_FILE", "/none", "there is no file /none"),
        ("REGISTRY_SCHEMA", "pg_mine", "must be a lower-case identifier that is not pg_..."),
        ("REGISTRY_SCHEMA", 'a"b', "must be a lower-case identifier that is not pg_..."),
        ("CONNECT_KEEPERS", "backup,,x", "must be the name of a role, not public"),
        ("CONNECT_KEEPERS", "public", "must be the name of a role, not public"),
        ("SWEEP_SECONDS", "0", "input should be greater than or equal to 1"),
        ("SWEEP_SECONDS", "nan", "input should be a finite number"),
        ("OPENBAO_ADDRESS", "openbao:8200", "must be an http:// or https:// URL"),
        ("OPENBAO_ADDRESS", "https://[::1", "must be an http:// or https:// URL"),
        ("OPENBAO_ADDRESS", "https://u:p@b", "must hold no user, query, fragment or space"),
        ("OPENBAO_CONSUMER_ADDRESS", "https://b?x", "must hold no user, query, fragment or space"),
        ("OPENBAO_MOUNT", "/", "must be names of letters, digits, '.', '_' or '-' between slashes"),
        (
            "OPENBAO_BASE_PATH",
            "a/../b",
            "must be names of letters, digits, '.', '_' or '-' between slashes",
        ),
        (
            "OPENBAO_BASE_PATH",
            "a//b",
            "must be names of letters, digits, '.', '_' or '-' between slashes",
        ),
        ("OPENBAO_BASE_PATH", "data/pg", "begins inside the mount: leave data/ away"),
        ("OPENBAO_BASE_PATH", "/metadata", "begins inside the mount: leave metadata/ away"),
        ("OPENBAO_BASE_PATH", "secret/pg", "begins inside the mount: leave secret/ away"),
        ("OPENBAO_AUTH", "userpass", "input should be 'kubernetes', 'approle' or 'token'"),
        ("OPENBAO_JWT_FILE", "/none", "there is no file /none"),
        ("SECRET_STORE_NAME", "a/b", "must be the name of an object"),
        ("SECRET_STORE_KIND", "Store", "input should be 'SecretStore' or 'ClusterSecretStore'"),
        ("SECRET_REFRESH_INTERVAL", "0s", "must be a Go duration above zero, as 1h or 90s"),
        ("SECRET_REFRESH_INTERVAL", "-1h", "must be a Go duration above zero, as 1h or 90s"),
        ("SECRET_REFRESH_INTERVAL", "1 h", "must be a Go duration above zero, as 1h or 90s"),
        ("DRUID_CA_FILE", "/none", "there is no file /none"),
        ("DRUID_SECRET_NAMESPACES", "druid,*", "must be the name of a namespace"),
        ("INIT_SQL_IMAGE", "two words", "must be the name of an image"),
        ("INIT_SQL_PULL_POLICY", "Often", "input should be 'Always', 'IfNotPresent' or 'Never'"),
        ("INIT_SQL_PULL_SECRETS", "a/b", "must be the name of an object"),
        ("INIT_SQL_SECONDS", "59", "input should be greater than or equal to 60"),
        ("INIT_SQL_CPU", "much", "must be a Kubernetes quantity, as 128Mi"),
        ("REQUEST_SECONDS", "1", "input should be greater than or equal to 5"),
        ("MAX_IN_FLIGHT", "0", "input should be greater than or equal to 1"),
    ],
)
def test_bad_values(environ: dict[str, str], name: str, text: str, problem: str) -> None:
    assert problems(environ | {name: text}) == [f"{name}: {problem}"]


def test_settings_that_need_each_other(environ: dict[str, str], tmp_path: Path) -> None:
    token = str(tmp_path / "token")
    assert problems(environ | {"TLS_CERT_FILE": token}) == [
        "TLS_CERT_FILE, TLS_KEY_FILE: set both or neither"
    ]
    assert problems(environ | {"OPENBAO_AUTH": "token"}) == [
        "OPENBAO_TOKEN_FILE: is required with OPENBAO_AUTH=token"
    ]
    assert problems(environ | {"OPENBAO_AUTH": "approle", "OPENBAO_ROLE_ID_FILE": token}) == [
        "OPENBAO_SECRET_ID_FILE: is required with OPENBAO_AUTH=approle"
    ]
    assert problems(environ | {"OPENBAO_MOUNT": "team/kv", "OPENBAO_BASE_PATH": "team/kv/a"}) == [
        "OPENBAO_BASE_PATH: begins inside the mount: leave team/kv/ away"
    ]
    assert problems(environ | {"THREADS": "24"}) == [
        "THREADS: must be above MAX_IN_FLIGHT, or probes and customize would wait"
    ]


def test_openbao_is_needed_by_tenants_only(environ: dict[str, str]) -> None:
    others = {name: text for name, text in environ.items() if not name.startswith("OPENBAO")}
    del others["SECRET_STORE_NAME"]
    assert Settings.from_env(others | {"RESOURCES": "instance,ingestion"}).openbao_address == ""
    assert problems(others | {"RESOURCES": "ingestion, tenant"})[-2:] == [
        "OPENBAO_ADDRESS: is required to serve tenants",
        "SECRET_STORE_NAME: is required to serve tenants",
    ]
    assert problems(others | {"RESOURCES": "ingestion,druid"}) == [
        "RESOURCES: input should be 'instance', 'tenant', 'initsql' or 'ingestion'"
    ]


def test_every_problem_is_told_at_once() -> None:
    found = problems({"LISTEN_ADDRESS": "x", "THREADS": "3", "OPENBAO_AUTH": "approle"})
    assert found == [
        "LISTEN_ADDRESS: must be host:port",
        "HOOK_TOKEN_FILES: is required",
        "CONTROLLER_NAMESPACE: is required",
        "OPENBAO_ROLE_ID_FILE: is required with OPENBAO_AUTH=approle",
        "OPENBAO_SECRET_ID_FILE: is required with OPENBAO_AUTH=approle",
        "OPENBAO_ADDRESS: is required to serve tenants",
        "SECRET_STORE_NAME: is required to serve tenants",
        "THREADS: must be above MAX_IN_FLIGHT, or probes and customize would wait",
    ]


def test_a_problem_never_repeats_what_may_be_a_secret(environ: dict[str, str]) -> None:
    assert "p4ss" not in str(problems(environ | {"OPENBAO_ADDRESS": "https://u:p4ss@b"}))


def test_every_setting_is_documented_and_none_is_a_secret() -> None:
    assert [setting.name for setting in SETTINGS if not setting.meaning] == []
    suspicious = ("TOKEN", "PASSWORD", "SECRET_ID", "KEY")
    assert [setting.name for setting in SETTINGS if setting.name.endswith(suspicious)] == []


def test_a_documented_default_is_the_default(environ: dict[str, str]) -> None:
    files = ("OPENBAO_JWT_FILE",)
    defaults = {each.name: each.default for each in SETTINGS if each.name not in files}
    assert Settings.from_env(defaults | environ) == Settings.from_env(environ)

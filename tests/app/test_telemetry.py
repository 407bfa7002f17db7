"""What the log may say, and how it says it."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog
from prometheus_client import generate_latest

from hooks import __version__, telemetry
from hooks.effects.ports import Row

PASSWORD = "hunter2-never-shown"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    output = io.StringIO()
    telemetry.setup("info", stream=output)
    yield output
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_our_lines_are_json_with_time_level_and_context(stream: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        structlog.get_logger("hooks.test").info("hook", seconds=0.5, names=frozenset("ba"))
    (line,) = lines(stream)
    assert line.pop("time").endswith("Z")
    assert line == {
        "event": "hook",
        "level": "info",
        "logger": "hooks.test",
        "request_id": "r-1",
        "seconds": 0.5,
        "names": ["a", "b"],
    }


def test_lines_of_libraries_and_warnings_are_json_too(stream: io.StringIO) -> None:
    logging.getLogger("gunicorn.error").info("Listening at: %s", "here")
    logging.getLogger("urllib3").warning("password=%s", PASSWORD)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    assert [(line["logger"], line["level"]) for line in lines(stream)] == [
        ("gunicorn.error", "info"),
        ("urllib3", "warning"),
        ("py.warnings", "warning"),
    ]
    assert [line["event"] for line in lines(stream)][:2] == ["Listening at: here", "password=***"]


def test_libraries_never_go_below_warning_since_they_print_bodies(stream: io.StringIO) -> None:
    telemetry.setup("debug", stream=stream)
    logging.getLogger("kubernetes.client.rest").debug("response body: %s", PASSWORD)
    structlog.get_logger("hooks.test").debug("ours")
    assert [line["event"] for line in lines(stream)] == ["ours"]


def test_a_traceback_is_redacted(stream: io.StringIO) -> None:
    error = ValueError(f"postgresql://admin:{PASSWORD}@db:5432/x")
    structlog.get_logger("hooks.test").error("hook", exc_info=error)
    (line,) = lines(stream)
    assert "ValueError: postgresql://admin:***@db:5432/x" in line["exception"]


@pytest.mark.parametrize(
    ("key", "masked"),
    [
        ("password", True),
        ("admin_password", True),
        ("adminPassword", True),
        ("PGPASSWORD", True),
        ("Authorization", True),
        ("token", True),
        ("X-Vault-Token", True),
        ("verifier", True),
        ("secret", True),
        ("secret_id", True),
        ("private_key", True),
        ("clientSecret", True),
        ("secret_name", False),
        ("secretRef", False),
        ("token_files", False),
        ("name", False),
        ("kv_path", False),
        ("credential_version", False),
    ],
)
def test_a_secret_is_known_by_the_last_word_of_its_key(key: str, *, masked: bool) -> None:
    expected = telemetry.MASK if masked else "some value"
    told = telemetry.redact(None, "info", {key: "some value", "deep": [{key: "some value"}]})
    assert told == {key: expected, "deep": [{key: expected}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy in a row", "*** in a row"),
        ("md5d41d8cd98f00b204e9800998ecf8427e", "***"),
        ("token hvs.CAESIJ9-x_y refused", "token *** refused"),
        ("s.abcdefghijklmnopqrstuvwx", "***"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
        ("jwt eyJhbGciOi.eyJpc3Mi.c2ln end", "jwt *** end"),
        ("postgres://u:p4ss@h/db and https://u:p@h", "postgres://u:***@h/db and https://u:***@h"),
        ("host=db password=p4ss user=u", "host=db password=*** user=u"),
        ("host=db password='p4 ss' user=u", "host=db password=*** user=u"),
        ('{"password": "p4ss", "name": "n"}', '{"password": ***, "name": "n"}'),
        ("{'secret': 'p4 ss', 'n': 1}", "{'secret': ***, 'n': 1}"),
        (r'"{\"token\":\"p4ss\",\"n\":1}"', r'"{\"token\":***,\"n\":1}"'),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", "***"),
        ("services.example.org is not Ready", "services.example.org is not Ready"),
        ("the admin Secret team/db has no key password", None),
        ("waiting for the password: not stored yet", None),
        ("https://openbao.openbao.svc:8200/v1/secret/data/postgresql/a/b", None),
        ("hooks.effects.postgres", None),
    ],
)
def test_a_secret_is_known_by_its_shape_and_other_text_stays(
    text: str, expected: str | None
) -> None:
    told = telemetry.redact(None, "info", {"event": text, "inside": {"list": (text,)}})
    wanted = text if expected is None else expected
    assert told == {"event": wanted, "inside": {"list": [wanted]}}


@dataclass(frozen=True, slots=True)
class CreateRole:
    uid: str
    login: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class InsertRow:
    row: Row


def test_an_effect_is_one_line_and_one_count(stream: io.StringIO) -> None:
    metrics = telemetry.Metrics()
    telemetry.Effects(metrics)("tenant", CreateRole("u-1", PASSWORD), "ok")
    (line,) = lines(stream)
    line.pop("time")
    assert line == {
        "event": "effect",
        "level": "info",
        "logger": "hooks.telemetry",
        "resource": "tenant",
        "operation": "create_role",
        "outcome": "ok",
        "arguments": {"uid": "u-1"},
    }
    page = generate_latest(metrics.registry).decode()
    labels = 'operation="create_role",outcome="ok",resource="tenant"'
    assert f"hooks_effects_total{{{labels}}} 1.0" in page


def test_an_effect_with_a_value_inside_is_told_field_by_field(stream: io.StringIO) -> None:
    row = Row("u", "i", "main", "ns", "n", "db", "role", "a/b", "sec", extensions=frozenset("ba"))
    telemetry.Effects(telemetry.Metrics())("tenant", InsertRow(row), "Taken")
    told = lines(stream)[0]["arguments"]["row"]
    assert (told["secret_name"], told["extensions"], told["state"]) == (
        "sec",
        ["a", "b"],
        "planned",
    )


def test_the_version_is_a_metric() -> None:
    page = generate_latest(telemetry.Metrics().registry).decode()
    assert f'hooks_build_info{{version="{__version__}"}} 1.0' in page

"""Passwords inside specifications are not shown, wherever Druid quotes them."""

from __future__ import annotations

import json

import pytest

from hooks.ingestion.document import read
from hooks.ingestion.masking import Masker
from tests.ingestion.world import KAFKA, SQL, IngestionWorld, edited, text_of

S3 = {
    "type": "s3",
    "uris": ["s3://bucket/file"],
    "properties": {
        "accessKeyId": {"type": "default", "password": "AKIAPLAIN"},
        "secretAccessKey": {"type": "environment", "variable": "AWS_SECRET"},
    },
}
JAAS = 'org.apache.Login required username="u" password="jaas-secret";'


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            S3,
            {
                "type": "s3",
                "uris": ["s3://bucket/file"],
                "properties": {
                    "accessKeyId": {"type": "default", "password": "***"},
                    "secretAccessKey": {"type": "environment", "variable": "AWS_SECRET"},
                },
            },
            id="S3",
        ),
        pytest.param(
            {"sasl.jaas.config": JAAS, "bootstrap.servers": "b:9092"},
            {"sasl.jaas.config": "***", "bootstrap.servers": "b:9092"},
            id="JAAS",
        ),
        pytest.param(
            {"ssl.keystore.password": "k", "secretKey": "abcd", "sasToken": 12345, "x": None},
            {"ssl.keystore.password": "***", "secretKey": "***", "sasToken": "***", "x": None},
            id="by name",
        ),
        pytest.param(
            {"connectURI": "jdbc:postgresql://u:pass-word@db:5432/x", "query": "SELECT 1"},
            {"connectURI": "jdbc:postgresql://u:***@db:5432/x", "query": "SELECT 1"},
            id="in an address",
        ),
        pytest.param(
            {"query": 'EXTERN(\'{"type":"s3","secretAccessKey":"in-sql"}\')'},
            {"query": 'EXTERN(\'{"type":"s3","secretAccessKey":"***"}\')'},
            id="in SQL",
        ),
        pytest.param(
            {"note": "the value hunter22 again", "password": "hunter22"},
            {"note": "the value *** again", "password": "***"},
            id="elsewhere",
        ),
        pytest.param(
            {"maxNumTasks": 2, "tokenizer": "standard", "keys": ["a"], "partitionKey": "b"},
            {"maxNumTasks": 2, "tokenizer": "standard", "keys": ["a"], "partitionKey": "b"},
            id="innocent names",
        ),
    ],
)
def test_secrets_are_masked_and_nothing_else(document: object, expected: object) -> None:
    written = json.dumps(document)
    content = read(written)
    assert json.loads(Masker.of(content).document(content, written)) == expected


@pytest.mark.parametrize("number", [1, 2, 5, 6, 7, 8, 9])
def test_a_specification_without_secrets_is_shown_as_it_was_written(number: int) -> None:
    text = text_of(number)
    content = read(text)
    assert Masker.of(content).document(content, text) == text


@pytest.mark.parametrize(
    "quoted",
    [
        "cannot read with key AKIAPLAIN here",
        '{"error":"bad {\\"password\\":\\"AKIAPLAIN\\"}"}',
        "password=AKIAPLAIN&x=1",
    ],
)
def test_druids_words_are_masked(quoted: str) -> None:
    shown = Masker.of(read(json.dumps(S3))).text(quoted)
    assert "AKIAPLAIN" not in shown
    assert "***" in shown


@pytest.mark.parametrize(
    "unit", ["x", "password", "a-", "\\", "password=", 'password":"', "a://", "http://a:", " "]
)
def test_a_long_text_does_not_take_long(unit: str) -> None:
    """Each of these took minutes with a pattern that goes back and forth."""
    text = unit * (200_000 // len(unit))
    assert len(Masker.of({"query": text}).text(text, limit=10)) <= 10


def test_of_very_many_secrets_none_is_looked_for_and_nothing_is_shown() -> None:
    """Each in each text would keep the whole process busy for minutes."""
    content = read(json.dumps({"notes": ["x"], **{f"password{n}": f"pass{n}" for n in range(201)}}))
    masker = Masker.of(content)
    assert masker.text("pass200 x") == "***"
    shown = json.loads(masker.document(content, json.dumps(content)))
    assert shown == {"notes": ["***"], **{f"password{n}": "***" for n in range(201)}}


def test_a_text_is_cut_between_two_characters() -> None:
    assert Masker(()).text("äöü", limit=3) == "ä"


def test_nothing_secret_of_a_life_is_in_any_status(world: IngestionWorld) -> None:
    world.hidden |= {"jaas-secret", "AKIAPLAIN"}
    properties = {"bootstrap.servers": "b:9092", "sasl.jaas.config": JAAS}
    world.make(
        edited(KAFKA, "spec", "ioConfig", "consumerProperties", value=properties),
        "kafka",
        auth=world.log_in("admin", "a-long-password"),
    )
    world.settle()
    world.druid.supervisors.lose_stream("checkout_clicks", f"bad login {JAAS}")
    world.settle()
    assert world.condition() == ("False", "SupervisorUnhealthy")
    world.make(edited(text_of(1), "spec", "ioConfig", "inputSource", value=S3), name="batch")
    world.settle("batch")
    id_ = world.status("batch")["taskId"]
    world.druid.tasks.fail(id_, "Access denied to AKIAPLAIN", parse_errors=["row AKIAPLAIN"])
    world.settle("batch")
    assert world.condition("Ready", "batch") == ("False", "TaskFailed")
    assert "Access denied to ***" in world.message("Ready", "batch")


def test_a_large_specification_is_shown_as_a_digest(world: IngestionWorld) -> None:
    world.make(edited(SQL, "query", value="SELECT 1 -- " + "x" * 300_000), "sql")
    world.settle()
    shown = world.status()["currentIngestionSpec.json"]
    assert shown.startswith("sha256:")
    assert shown.endswith("bytes, too large to be kept here)")

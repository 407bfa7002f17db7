"""Whoever sees a reason finds it in the runbook."""

import ast
import re
from collections.abc import Iterator
from types import ModuleType
from typing import get_args

import pytest

from hooks.core.conditions import READY, RECONCILING
from hooks.core.errors import EffectError
from hooks.effects.ports import druid
from hooks.ingestion import reasons as ingestion
from hooks.ingestion.model import ADOPT_ID, LET_GO, OTHER_FINALIZER, TAKE_OVER, TYPES
from hooks.ingestion.record import State
from hooks.ingestion.report import SUSPENSION
from hooks.ingestion.report import TYPES as TYPES_OF_CONDITIONS
from hooks.initsql import reasons as init_sql
from hooks.initsql.model import APPLIED, FROM, MAX_ATTEMPTS, STATE
from hooks.initsql.report import CONDITION
from hooks.instance import decide as instance
from hooks.tenant import absent, reasons
from hooks.tenant import decide as tenant
from tests.docs.pages import OPERATIONS, ROOT, headings, rows, section, text
from tests.manifests.manifests import properties, schema

INGESTION = ROOT / "docs" / "druid-ingestion.md"
INIT_SQL = ROOT / "docs" / "database-init-sql.md"


def errors(kind: type[EffectError]) -> Iterator[type[EffectError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from errors(child)


def reasons_of_errors(*, of_druid: bool) -> set[str]:
    """Return the reasons that errors carry: those of Druid's port, or all others."""
    return {
        kind.reason
        for kind in errors(EffectError)
        if (kind.__module__ == druid.__name__) is of_druid
    }


def constants(module: ModuleType) -> set[str]:
    """Return the reasons that a module names."""
    return {
        value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)
    }


def given_by_the_code() -> set[str]:
    """Return the reasons of gates and of errors, and those outside of gates."""
    of_gates = (
        *(gate.reasons for gate in instance.PRESENT),
        *(gate.reasons for gate in tenant.PRESENT),
        *(gate.reasons for gate in absent.ABSENT),
    )
    return (
        {READY, RECONCILING, instance.INVALID_SPEC}
        | constants(reasons)
        | frozenset[str]().union(*of_gates)
        | reasons_of_errors(of_druid=False)
    )


def runbook() -> list[str]:
    found = re.findall(r"^### (.+)$", section(OPERATIONS, "Runbook"), re.M)
    assert set(found) <= set(headings(OPERATIONS, level=3))
    return found


def test_the_runbook_has_a_heading_for_every_reason_and_for_nothing_else() -> None:
    assert sorted(runbook()) == sorted(given_by_the_code())


def test_every_reason_of_an_ingestion_is_on_its_page_and_nothing_else() -> None:
    found = re.findall(r"^### (.+)$", section(INGESTION, "Reasons"), re.M)
    assert sorted(found) == sorted(constants(ingestion) | reasons_of_errors(of_druid=True))


def test_every_reason_of_init_sql_is_on_its_page_and_nothing_else() -> None:
    found = re.findall(r"^### (.+)$", section(INIT_SQL, "When it fails"), re.M)
    assert sorted(found) == sorted(constants(init_sql))


def test_the_page_of_init_sql_has_its_annotations_and_its_condition() -> None:
    found = {row[0].strip("`") for row in rows(section(INIT_SQL, "Annotations"))}
    assert found == {FROM, MAX_ATTEMPTS, APPLIED, STATE}
    assert f'@.type=="{CONDITION}"' in section(INIT_SQL, "When it fails")


def test_the_page_of_ingestions_names_every_field() -> None:
    fields = {
        path.rpartition(".")[2]
        for path, _, _ in properties(schema("DruidIngestion"))
        if path.startswith(("spec.", "status.")) and not path.endswith("[]")
    }
    inside = ("status.history[].", "status.conditions[].", "status.applied.", "status.task.rows.")
    fields -= {
        path.rpartition(".")[2]
        for path, _, _ in properties(schema("DruidIngestion"))
        if path.startswith(inside)
    } - {"name", "key"}
    page = text(INGESTION)
    assert sorted(field for field in fields if not re.search(rf"\b{field}\b", page)) == []


def test_the_page_of_ingestions_has_its_annotations_and_the_other_finalizer() -> None:
    found = {row[0].strip("`") for row in rows(section(INGESTION, "Annotations"))}
    assert found == {TAKE_OVER, ADOPT_ID, LET_GO}
    assert OTHER_FINALIZER in section(INGESTION, "Beside druid-operator")


def test_the_page_of_ingestions_has_every_state() -> None:
    table = rows(section(INGESTION, "States"))
    found = {state for cells in table for state in re.findall(r"`(\w+)`", cells[0])}
    assert found == {*get_args(State), "Pending", "Suspended"}


def test_the_page_of_ingestions_has_every_condition() -> None:
    found = [cells[0].strip("`") for cells in rows(section(INGESTION, "Conditions"))]
    assert found == [*TYPES_OF_CONDITIONS, SUSPENSION]


def test_the_page_of_ingestions_has_every_type_under_both_names() -> None:
    short_and_long = {
        (row[0].strip("`"), row[1].strip("`")) for row in rows(section(INGESTION, "Types"))
    }
    expected = {(short, long) for long, short in TYPES.items() if long != short}
    assert short_and_long == expected


@pytest.mark.parametrize("kind", ["PostgreSQLInstance", "PostgreSQLTenant"])
def test_a_page_lists_the_reasons_phases_and_fields_of_its_kind(kind: str) -> None:
    page = text(ROOT / "docs" / f"{kind.lower().replace('sql', 'sql-')}.md")
    status = schema(kind)["properties"]["status"]["properties"]
    promised = set(re.findall(r"\b[A-Z]\w+\b", status["conditions"]["description"]))
    words = {*(promised & set(runbook())), *status["phase"]["enum"], *status}
    spec = schema(kind)["properties"]["spec"]["properties"]
    words |= {leaf for field in spec.values() for leaf in field.get("properties", {})} | set(spec)
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", page)) == []


def nodes() -> Iterator[ast.AST]:
    for module in sorted((ROOT / "hooks" / "tenant").glob("*.py")):
        yield from ast.walk(ast.parse(module.read_text()))


def literal(node: ast.AST) -> str:
    """Return a text of the code, with {} where something is filled in."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)


def shown_conflicts() -> list[list[str]]:
    """Return what the table quotes, each in the pieces between its dots."""
    return [
        [piece.strip() for piece in quoted.split("...")]
        for message, _do in rows(section(OPERATIONS, "Conflict"))
        for quoted in re.findall(r"`([^`]+)`", message)
    ]


def test_the_messages_in_the_table_of_conflicts_are_messages_of_the_code() -> None:
    known = "\n".join(map(literal, nodes()))
    ends = {" ".join(piece.split()[-4:]) for pieces in shown_conflicts() for piece in pieces}
    assert sorted(end for end in ends if end not in known) == []


def test_every_message_of_a_conflict_is_in_the_table() -> None:
    messages = [
        literal(node.args[1])
        for node in nodes()
        if isinstance(node, ast.Call) and len(node.args) > 1
        if isinstance(node.args[0], ast.Name) and node.args[0].id == "CONFLICT"
    ]
    assert messages
    table = shown_conflicts()
    unknown = [
        message for message in messages if not any(quotes(pieces, message) for pieces in table)
    ]
    assert unknown == []


def quotes(pieces: list[str], message: str) -> bool:
    """Say whether a message is quoted; where it is filled in, three words in a row are enough."""
    words = [word for piece in pieces for word in piece.split()]
    runs = (" ".join(words[at : at + 3]) for at in range(len(words) - 2))
    return all(piece in message for piece in pieces) or any(run in message for run in runs)

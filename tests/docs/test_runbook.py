"""Whoever sees a reason finds it in the runbook."""

import ast
import re
from collections.abc import Iterator

import pytest

from hooks.core.conditions import READY, RECONCILING
from hooks.core.errors import EffectError
from hooks.instance import decide as instance
from hooks.tenant import absent, reasons
from hooks.tenant import decide as tenant
from tests.docs.pages import OPERATIONS, ROOT, headings, rows, section, text
from tests.manifests.manifests import schema


def errors(kind: type[EffectError]) -> Iterator[type[EffectError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from errors(child)


def given_by_the_code() -> set[str]:
    """Return the reasons of gates and of errors, and those outside of gates."""
    of_gates = (
        *(gate.reasons for gate in instance.PRESENT),
        *(gate.reasons for gate in tenant.PRESENT),
        *(gate.reasons for gate in absent.ABSENT),
    )
    return (
        {READY, RECONCILING, instance.INVALID_SPEC}
        | {value for name, value in vars(reasons).items() if name.isupper()}
        | frozenset[str]().union(*of_gates)
        | {kind.reason for kind in errors(EffectError)}
    )


def runbook() -> list[str]:
    found = re.findall(r"^### (.+)$", section(OPERATIONS, "Runbook"), re.M)
    assert set(found) <= set(headings(OPERATIONS, level=3))
    return found


def test_the_runbook_has_a_heading_for_every_reason_and_for_nothing_else() -> None:
    assert sorted(runbook()) == sorted(given_by_the_code())


@pytest.mark.parametrize("kind", ["PostgreSQLInstance", "PostgreSQLTenant"])
def test_a_page_lists_the_reasons_phases_and_fields_of_its_kind(kind: str) -> None:
    page = text(ROOT / "docs" / f"{kind.lower().replace('sql', 'sql-')}.md")
    status = schema(kind)["properties"]["status"]["properties"]
    promised = set(re.findall(r"\b[A-Z]\w+\b", status["conditions"]["description"]))
    words = {*(promised & set(runbook())), *status["phase"]["enum"], *status}
    spec = schema(kind)["properties"]["spec"]["properties"]
    words |= {leaf for field in spec.values() for leaf in field.get("properties", {})} | set(spec)
    assert sorted(word for word in words if not re.search(rf"\b{word}\b", page)) == []


def literals() -> str:
    """Return every text in the Tenant's code, with {} where something is filled in."""
    found = []
    for module in sorted((ROOT / "hooks" / "tenant").glob("*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            found.append(
                "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts
                )
            )
    return "\n".join(found)


def test_the_messages_in_the_table_of_conflicts_are_messages_of_the_code() -> None:
    shown = [
        piece.strip()
        for message, _do in rows(section(OPERATIONS, "Conflict"))
        for quoted in re.findall(r"`([^`]+)`", message)
        for piece in quoted.split("...")
    ]
    known = literals()
    ends = {" ".join(piece.split()[-4:]) for piece in shown}
    assert sorted(end for end in ends if end not in known) == []

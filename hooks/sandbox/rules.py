"""Evaluate the x-kubernetes-validations rules of a CRD.

Idea: Google's own CEL runtime judges; here values become what Kubernetes shows to a rule (declared
fields only, of metadata only the name) and the answers become its messages. This is the only
module that imports the runtime.

Limits: values are untyped, so a wrong field name or type is found when the rule is asked, not when
the CRD is loaded; no cost budget; a date-time stays a string; of the functions that Kubernetes
adds only isIP and isCIDR, so a CRD that uses another one is refused when it is loaded.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from hooks.sandbox.openapi import Problem, child_schema, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hooks.core.manifests import Manifest

_RULES = "x-kubernetes-validations"
_REASONS = {
    "FieldValueForbidden": "Forbidden",
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "if"),
        *("function", "import", "let", "loop", "package", "namespace", "return", "var", "void"),
        "while",
    )
)


@dataclass(frozen=True, slots=True)
class Node:
    """A place in an object: its schema, what stands there, and what stood there before.

    `old` is None on creation and where nothing can be told to be the same. The root's path is
    empty.
    """

    schema: Manifest
    value: Any
    old: Any
    path: str


def check_rules(schema: Manifest) -> None:
    """Compile every rule in a schema.

    Raises:
        ValueError: A rule does not compile, or wants what this evaluator does not have.
    """
    for rule in schema.get(_RULES, ()):
        if rule.get("optionalOldSelf"):
            raise ValueError(f"optionalOldSelf is not supported here: {rule['rule']}")
        for text in filter(None, (rule["rule"], rule.get("messageExpression"))):
            _program(text)
    children = [schema.get("items"), schema.get("additionalProperties")]
    for child in [*children, *(schema.get("properties") or {}).values()]:
        if isinstance(child, dict):
            check_rules(child)


def broken_rules(node: Node) -> Iterator[Problem]:
    """Yield a problem for each rule that is false, or fails, at this place."""
    rules = node.schema.get(_RULES, ()) if node.value is not None else ()
    variables = _variables(node) if rules else {}
    for rule in rules:
        # A rule about a transition is asked only where there was something before.
        if node.old is None and re.search(r"\boldSelf\b", rule["rule"]):
            continue
        answer = _program(rule["rule"]).eval(data=variables)
        if answer.type() != cel.Type.BOOL:
            text = f"{answer.value()} evaluating rule: {rule.get('message') or rule['rule']}"
            yield Problem(node.path, f"Invalid value: {shown(node.schema.get('type'))}: {text}")
        elif not answer.value():
            yield _problem(node, rule, variables)


def _problem(node: Node, rule: Manifest, variables: Manifest) -> Problem:
    detail = (rule.get("message") or f"failed rule: {rule['rule']}").strip()
    if rule.get("messageExpression"):
        made = _program(rule["messageExpression"]).eval(data=variables)
        detail = made.value() if made.type() == cel.Type.STRING else detail
    reason = _REASONS.get(rule.get("reason", ""), "Invalid value")
    if not isinstance(node.value, dict | list) and reason in ("Invalid value", "Duplicate value"):
        reason += f": {shown(node.value)}"
    return Problem((node.path + rule.get("fieldPath", "")).lstrip("."), f"{reason}: {detail}")


def _variables(node: Node) -> Manifest:
    variables: Manifest = {
        "self": _seen(node.value, node.schema),
        "oldSelf": _seen(node.old, node.schema),
    }
    if not node.path:
        for name, value in (("self", node.value), ("oldSelf", node.old)):
            if value is not None:
                variables[name] |= _root_fields(value)
    return variables


def _root_fields(value: Manifest) -> Manifest:
    names = {k: v for k, v in value["metadata"].items() if k in ("name", "generateName")}
    return {"apiVersion": value["apiVersion"], "kind": value["kind"], "metadata": names}


def _seen(value: object, schema: Manifest) -> object:
    """Return what a rule sees of a value: fields that no schema declares are not there."""
    if isinstance(value, list):
        return [_seen(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    declared = schema.get("properties") or {}
    return {
        _escaped(key) if key in declared else key: _seen(item, child)
        for key, item in value.items()
        if (child := child_schema(schema, key)) is not None
    }


def _escaped(name: str) -> str:
    """Spell a property as Kubernetes does where its name is no CEL identifier."""
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _function(name: str, implementation: Callable[[str], bool]) -> cel.FunctionDecl:
    overload = cel.Overload(
        f"{name}_string",
        return_type=cel.Type.BOOL,
        parameters=[cel.Type.STRING],
        impl=implementation,
    )
    return cel.FunctionDecl(name, [overload])


@cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN},
        extensions=[
            ext_strings.ExtStrings(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
        ],
        functions=[
            _function("isIP", _parses(ipaddress.ip_address)),
            _function("isCIDR", _parses(ipaddress.ip_interface)),
        ],
    )


@cache
def _program(rule: str) -> cel.Expression:
    try:
        return _environment().compile(rule)
    except RuntimeError as error:
        raise ValueError(f"this rule does not compile: {rule}: {error}") from error

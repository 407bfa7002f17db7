"""Label selectors, as LabelSelector objects spell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hooks.core import manifests
from hooks.sandbox.runner_state import SyncError

if TYPE_CHECKING:
    from hooks.core.manifests import Manifest


class BadSelector(SyncError):
    """A label selector makes no sense."""


def matches(selector: Manifest | None, obj: Manifest) -> bool:
    """Say whether an object's labels satisfy a selector; None and an empty one select everything.

    Raises:
        BadSelector: It has an unknown operator.
    """
    return satisfies(selector, manifests.metadata(obj).get("labels") or {})


def satisfies(selector: Manifest | None, texts: Manifest) -> bool:
    """Say whether labels, or whatever is like them, satisfy a selector.

    Raises:
        BadSelector: It has an unknown operator.
    """
    wanted = (selector or {}).get("matchLabels") or {}
    expressions = (selector or {}).get("matchExpressions") or ()
    held = [_holds(expression, texts) for expression in expressions]
    return all(held) and all(texts.get(key) == value for key, value in wanted.items())


def _holds(expression: Manifest, texts: Manifest) -> bool:
    key, values = expression.get("key"), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return key in texts and texts[key] in values
        case "NotIn":
            return key not in texts or texts[key] not in values
        case "Exists":
            return key in texts
        case "DoesNotExist":
            return key not in texts
        case operator:
            raise BadSelector(f"{operator} is not a valid label selector operator")

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
    labels = manifests.metadata(obj).get("labels") or {}
    wanted = (selector or {}).get("matchLabels") or {}
    expressions = (selector or {}).get("matchExpressions") or ()
    held = [_holds(expression, labels) for expression in expressions]
    return all(held) and all(labels.get(key) == value for key, value in wanted.items())


def _holds(expression: Manifest, labels: Manifest) -> bool:
    key, values = expression.get("key"), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case operator:
            raise BadSelector(f"{operator} is not a valid label selector operator")

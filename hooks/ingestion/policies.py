"""Compaction and retention rules of the datasource: are they in Druid as the spec wants them?

They are written once for each change. What Druid refuses does not undo the submission.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hooks.core.manifests import Manifest
from hooks.effects.ports.druid import Answer, Cluster
from hooks.ingestion.document import Document
from hooks.ingestion.identity import canonical, digest
from hooks.ingestion.model import Spec

Kind = Literal["compaction", "rules"]
MAX_TEXT = 4096
_SUCCESS = range(200, 300)


@dataclass(frozen=True, slots=True)
class Applied:
    """What Druid has from us, as status.applied remembers it.

    Attributes:
        datasource: whose they are.
        compaction, rules: hashes; empty for none of ours.
        refused: kind, content and circumstances that Druid refused; not sent again while so.
        error: what it said then, masked.
    """

    datasource: str = ""
    compaction: str = ""
    rules: str = ""
    refused: str = ""
    error: str = ""

    @classmethod
    def legacy(cls, status: Manifest, datasource: str) -> Applied:
        """Take over the rules that the controller inside druid-operator applied."""
        rules = status.get("rules")
        if not isinstance(rules, list) or not rules:
            return cls()
        return cls(datasource=datasource, rules=digest(canonical(rules)))

    @classmethod
    def of(cls, entry: object) -> Applied:
        """Read status.applied."""
        if not isinstance(entry, dict):
            return cls()
        return cls(**{name: str(entry.get(name) or "") for name in cls.__slots__})

    def to_status(self) -> Manifest:
        """Write status.applied; what is empty is left out."""
        texts = {name: getattr(self, name) for name in self.__slots__}
        return {name: text for name, text in texts.items() if text}


@dataclass(frozen=True, slots=True)
class Policy:
    """One write that is wanted.

    Attributes:
        hash: of the content; empty: it is to be removed.
    """

    kind: Kind
    datasource: str
    hash: str

    def refusal(self, fingerprint: str) -> str:
        """Return what a refusal is remembered by."""
        return f"{self.kind}/{digest(self.datasource, self.hash, fingerprint)}"


def wanted(spec: Spec, applied: Applied, fingerprint: str) -> Policy | None:
    """Return the next write, or None when all is done that Druid takes."""
    for policy in _differences(spec, applied):
        return None if applied.refused == policy.refusal(fingerprint) else policy
    return None


def _differences(spec: Spec, applied: Applied) -> Iterator[Policy]:
    """Yield every write that is wanted; what an earlier datasource has goes first."""
    datasource = spec.ingestion.datasource
    have: dict[Kind, str] = {"compaction": applied.compaction, "rules": applied.rules}
    if applied.datasource not in ("", datasource):
        yield from (Policy(kind, applied.datasource, "") for kind in have if have[kind])
        return
    want: dict[Kind, str] = {"compaction": _hash(spec.compaction), "rules": _hash(spec.rules)}
    for kind, content in want.items():
        if datasource and content != have[kind]:
            yield Policy(kind, datasource, content)


def removal(applied: Applied) -> Policy | None:
    """Return the next removal of what is ours; None when nothing is left of it."""
    have: dict[Kind, str] = {"compaction": applied.compaction, "rules": applied.rules}
    kinds = (kind for kind, content in have.items() if content)
    return next((Policy(kind, applied.datasource, "") for kind in kinds), None)


def without(policy: Policy, applied: Applied) -> Applied:
    """Return what is left once one was removed."""
    if policy.kind == "rules":
        return replace(applied, rules="")
    return replace(applied, compaction="")


def settled(spec: Spec, applied: Applied) -> bool:
    """Say whether Druid has all of them."""
    return not any(_differences(spec, applied))


def _hash(content: Mapping[str, object] | Sequence[Document] | None) -> str:
    return digest(canonical(content)) if content else ""


def write(policy: Policy, spec: Spec, cluster: Cluster) -> Answer | None:
    """Write one; None when it was a removal that cannot be refused."""
    if not policy.hash:
        return remove(policy, cluster)
    if policy.kind == "rules":
        return cluster.set_rules(policy.datasource, spec.rules or ())
    return cluster.set_compaction({"dataSource": policy.datasource, **(spec.compaction or {})})


def remove(policy: Policy, cluster: Cluster) -> Answer | None:
    """Take one away."""
    if policy.kind == "rules":
        return cluster.set_rules(policy.datasource, ())
    cluster.delete_compaction(policy.datasource)
    return None


def after(policy: Policy, answer: Answer | None, applied: Applied, refusal: str) -> Applied | None:
    """Return what is remembered of a refusal; None: Druid took it, and it must be read back.

    The error is in Druid's words, not masked.
    """
    if answer is None or answer.code in _SUCCESS:
        return None
    return replace(applied, refused=refusal, error=f"{policy.kind}: {answer.text}")


def read_back(policy: Policy, spec: Spec, applied: Applied, cluster: Cluster) -> Applied:
    """Return what is remembered once Druid shows it; unchanged while it does not.

    Druid fills in defaults, so presence counts, and the number and types of rules.
    """
    if policy.kind == "rules":
        rules = (spec.rules or ()) if policy.hash else ()
        found = cluster.rules(policy.datasource)
        there = [one.get("type") for one in found] == [one.get("type") for one in rules]
    else:
        there = (cluster.compaction(policy.datasource) is not None) == bool(policy.hash)
    if not there:
        return applied
    if policy.kind == "rules":
        applied = replace(applied, rules=policy.hash)
    else:
        applied = replace(applied, compaction=policy.hash)
    kept = policy.datasource if applied.rules or applied.compaction else ""
    return replace(applied, datasource=kept, refused="", error="")

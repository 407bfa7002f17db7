"""Which versions and which admin roles a test is for; all, if nothing is said.

What a test of the contract leaves out here has a test of its own in test_adapter_versions.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

AdminKind = Literal["createrole", "superuser"]

CREATEROLE: tuple[AdminKind, ...] = ("createrole",)
SUPERUSER: tuple[AdminKind, ...] = ("superuser",)

T = TypeVar("T", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Suits:
    """Versions and kinds of admin roles."""

    since: int = 0
    before: int = 1000
    kinds: tuple[AdminKind, ...] = CREATEROLE + SUPERUSER

    def version(self, version: int) -> bool:
        return self.since <= version < self.before


_ONLY: dict[Callable[..., object], Suits] = {}


def only(suits: Suits) -> Callable[[T], T]:
    """Run a test where it suits only; a decorator, also for tests that are imported."""

    def register(test: T) -> T:
        _ONLY[test] = suits
        return test

    return register


def suits(test: Callable[..., object], module: object) -> Suits:
    """Return what was said about the test, or else, as SUITS, about its module."""
    found = _ONLY.get(test, getattr(module, "SUITS", Suits()))
    assert isinstance(found, Suits)
    return found

"""Measure everything and print a table: `python -m bench`.

It measures and never judges: the exit code is 0 whatever the figures are.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import crowd, idle, memory, provisioning
from bench.figures import Figure, table
from bench.stage import staged

FEW = 10
MIXED = 3


@dataclass(frozen=True, slots=True)
class Scale:
    """How often each thing is done."""

    provisioned: int = 24
    idle: int = 200
    tenants: int = 300
    requests: int = 10_000
    customized: int = 3_000
    large: int = 10


QUICK = Scale(provisioned=3, idle=30, tenants=24, requests=250, customized=500, large=3)


def main() -> None:
    """Run all measurements."""
    scale = _scale()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        figures = _measure(Path(directory), scale)
    print(f"\nIn {time.monotonic() - began:.0f} s:\n\n{table(figures)}")


def _scale() -> Scale:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--tenants", type=int, help="Ready Tenants in the large world")
    given = parser.parse_args()
    scale = QUICK if given.quick else Scale()
    return replace(scale, tenants=given.tenants) if given.tenants else scale


def _measure(directory: Path, scale: Scale) -> list[Figure]:
    found: list[Figure] = []
    with ExitStack() as worlds:
        with _told("two worlds"):
            few = worlds.enter_context(staged(directory / "few", **memory.DOCKERFILE))
            many = worlds.enter_context(staged(directory / "many", **memory.DOCKERFILE))
        with _told("from nothing to Ready"):
            found += provisioning.measure(many, scale.provisioned)
        with _told(f"{FEW} and {scale.tenants} Ready Tenants"):
            ten = few.populate(range(FEW))
            made = scale.provisioned + 1  # by the measurement before
            crowded = many.populate(range(made, max(scale.tenants, made + FEW)))
            gc.freeze()  # the doubles live here: their objects are not to be walked again
        with _told("idle"):
            found += idle.measure(few, ten[0], scale.idle)
        with _told("customize"):
            found += idle.customize(few, ten[0], scale.customized)
        with _told("many Tenants"):
            found += crowd.measure((few, ten), (many, crowded))
        with _told("memory"), staged(directory / "plain") as plain:
            asked = (few, ten[:MIXED]), (plain, plain.populate(range(MIXED)))
            found += memory.measure(*asked, scale.requests)
        with _told("a large request"):
            found += memory.large(few, ten[0], scale.large)
    return found


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what is being done, and how long it took."""
    print(f"{what} ...", flush=True)
    began = time.monotonic()
    yield
    print(f"  {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()

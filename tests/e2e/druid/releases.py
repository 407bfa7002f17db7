"""Which Druids there are.

No release is whole on Maven Central, so there are two: one reads streams, the other has SQL as
tasks, and users with passwords.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.druid import artifacts

COORDINATOR = "coordinator"
"""It is the Overlord too, and holds the metadata."""

SERVICES = (COORDINATOR, "indexer", "broker", "router", "historical")


@dataclass(frozen=True, slots=True)
class Release:
    """A version, and what Maven Central has of it beyond the services."""

    version: str
    extensions: tuple[str, ...]
    authenticated: bool = False
    heaps: Mapping[str, str] = field(default_factory=dict)

    @property
    def jars(self) -> Path:
        """Return the directory of its services' jars."""
        return artifacts.jars(f"{self.version}/services")

    @property
    def extension_directory(self) -> Path:
        """Return the directory that holds a directory for each of its extensions."""
        [directory] = {artifacts.jars(f"{self.version}/{each}").parent for each in self.extensions}
        return directory

    def heap(self, service: str) -> str:
        """Return the size of a service's heap."""
        usual = {COORDINATOR: "384m", "indexer": "640m", "router": "192m"}
        return self.heaps.get(service) or usual.get(service, "256m")


STREAMING = Release("33.0.0", ("druid-kafka-indexing-service",))
SQL = Release(
    "27.0.0",
    ("druid-multi-stage-query", "druid-basic-security"),
    authenticated=True,
    heaps={"indexer": "1200m"},
)
RELEASES = {release.version: release for release in (STREAMING, SQL)}

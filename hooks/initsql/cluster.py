"""A PostgresCluster as the init-SQL step sees it: the field, and the record of its success.

The step changes the status of the cluster that it is given. `deep_copy` makes one that shares
nothing with it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field


@dataclass(slots=True)
class DatabaseInitSQL:
    """Where the SQL is.

    Attributes:
        name: of a ConfigMap in the cluster's namespace.
        key: in its data.
    """

    name: str
    key: str


@dataclass(slots=True)
class ClusterSpec:
    """The part of `spec` that matters here."""

    database_init_sql: DatabaseInitSQL | None = None


@dataclass(slots=True)
class ClusterStatus:
    """The part of `status` that matters here.

    Attributes:
        database_init_sql: set once the SQL was applied, to the name of its ConfigMap.
    """

    database_init_sql: str | None = None


@dataclass(slots=True)
class PostgresCluster:
    """One cluster."""

    namespace: str
    name: str
    spec: ClusterSpec = field(default_factory=ClusterSpec)
    status: ClusterStatus = field(default_factory=ClusterStatus)

    def deep_copy(self) -> PostgresCluster:
        """Return an independent copy."""
        return deepcopy(self)

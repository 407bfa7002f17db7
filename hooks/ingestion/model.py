"""What a DruidIngestion asks for, with every default computed, or everything wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from hooks.core import manifests
from hooks.core.manifests import Manifest
from hooks.ingestion.document import Document
from hooks.ingestion.identity import Endpoint

Type = Literal["native-batch", "index-hadoop", "sql", "kafka", "kinesis"]

TYPES: dict[str, Type] = {
    "native-batch": "native-batch",
    "NativeBatchIndexParallel": "native-batch",
    "index-hadoop": "index-hadoop",
    "HadoopIndexHadoop": "index-hadoop",
    "sql": "sql",
    "QueryControllerSQL": "sql",
    "kafka": "kafka",
    "Kafka": "kafka",
    "kinesis": "kinesis",
    "Kinesis": "kinesis",
}
STREAMING: frozenset[str] = frozenset({"kafka", "kinesis"})

TAKE_OVER = "druid.apache.org/take-over"
"""Annotation "true": take the object over from the controller that druid-operator has in it."""
ADOPT_ID = "druid.apache.org/adopt-id"
"""Annotation: the task or supervisor of this id, which somebody else submitted, is ours."""
LET_GO = "druid.apache.org/let-go"
"""Annotation "true": delete the object now, whatever Druid still runs."""
OTHER_FINALIZER = "druidingestion.datainfra.io/finalizer"
"""The controller inside druid-operator puts it on every object that it serves."""

_TRUE = "true"


@dataclass(frozen=True, slots=True)
class Config:
    """What the deployment decides for all DruidIngestions.

    Attributes:
        controller_namespace: where this program runs; its Secrets are for no object elsewhere.
        secret_namespaces: namespaces from which objects of other namespaces may take a login.
    """

    controller_namespace: str
    secret_namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a login is."""

    namespace: str
    name: str
    username_key: str
    password_key: str


@dataclass(frozen=True, slots=True)
class Tls:
    """How the Router is trusted, and known to know us; names of Secrets, empty for none."""

    ca_secret: str = ""
    ca_key: str = "ca.crt"
    client_secret: str = ""
    verify: bool = True


@dataclass(frozen=True, slots=True)
class Connection:
    """The way to the cluster, which a deletion needs too."""

    namespace: str
    cluster: str
    secret: SecretRef | None
    tls: Tls | None


@dataclass(frozen=True, slots=True)
class Ingestion:
    """A specification that can be sent.

    Attributes:
        document: what was written, as a value.
        written: the text it was written as.
        hash: equal for equal content; of a stream without `suspended`, which is no new content.
        datasource: empty when only Druid can tell, as for SQL.
        own_id: the id that the user chose; empty for none.
        warnings: what Druid will not notice.
    """

    type: Type
    document: Document = field(repr=False)
    written: str = field(repr=False)
    hash: str
    datasource: str
    own_id: str
    warnings: tuple[str, ...] = ()

    @property
    def endpoint(self) -> Endpoint:
        """Return where it is submitted."""
        if self.type in STREAMING:
            return "supervisor"
        return "sql" if self.type == "sql" else "task"

    @property
    def streaming(self) -> bool:
        """Say whether it becomes a supervisor, which never ends by itself."""
        return self.type in STREAMING


@dataclass(frozen=True, slots=True)
class Spec:
    """A valid DruidIngestion.

    Attributes:
        suspend: whether it should not run now; the user's own `suspended` in a stream counts.
        compaction, rules: to be applied to the datasource; None for not managed by this object.
        taken_by_other: the controller inside druid-operator serves this object.
        adopt_id: what to take over; empty for nothing.
    """

    uid: str
    name: str
    generation: int
    connection: Connection
    ingestion: Ingestion
    suspend: bool = False
    compaction: Document | None = None
    rules: tuple[Document, ...] | None = None
    max_retries: int = 0
    backoff_seconds: int = 60
    restore_drift: bool = False
    taken_by_other: bool = False
    adopt_id: str = ""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why a DruidIngestion cannot be used."""

    reason: str
    message: str


def orphaned(parent: Manifest) -> bool:
    """Say whether a deletion leaves Druid as it is; needs no valid spec."""
    spec = parent.get("spec")
    return isinstance(spec, dict) and spec.get("deletionPolicy") == "Orphan"


def let_go(parent: Manifest) -> bool:
    """Say whether somebody approved that a deletion waits for nothing."""
    return manifests.annotations(parent).get(LET_GO) == _TRUE


def taken_by_other(parent: Manifest) -> bool:
    """Say whether the controller inside druid-operator serves this object."""
    finalizers = manifests.metadata(parent).get("finalizers") or ()
    return OTHER_FINALIZER in finalizers and manifests.annotations(parent).get(TAKE_OVER) != _TRUE

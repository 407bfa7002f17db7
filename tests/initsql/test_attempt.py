"""What the Job looks up again before it runs anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from hooks.core.errors import Denied, EffectError
from hooks.core.manifests import Manifest
from hooks.effects.ports import Kubernetes
from hooks.effects.ports.pods import ConfigMap, NotFound, NotNow, OutcomeUnknown, ScriptFailed
from hooks.initsql import outcome
from hooks.initsql.attempt import Order, Ports, make
from hooks.initsql.model import Wish, parse
from hooks.initsql.outcome import Outcome
from hooks.initsql.reconciler import MissingKey
from tests.initsql.builders import NAMESPACE, SQL, UID, cluster, pod
from tests.initsql.fakes import MemoryConfigMaps, MemoryKubernetes, MemoryPods

WISH = parse(cluster(), "composite")
assert isinstance(WISH, Wish)
MEMBER = "hippo-instance1-abcd-0"
ORDER = Order("composite", NAMESPACE, "hippo", WISH.digest(SQL), frozenset({MEMBER}))


@dataclass
class World:
    """A world in which nothing has changed since the decision."""

    parent: Manifest | EffectError | None = field(default_factory=cluster)
    held: ConfigMap = field(default_factory=lambda: ConfigMap({"init.sql": SQL}))
    members: list[Manifest] = field(default_factory=lambda: [pod()])
    pods: MemoryPods = field(default_factory=MemoryPods)
    applications: list[str] = field(default_factory=list)

    def list(self, namespace: str, selector: str) -> list[Manifest]:
        cluster_label = "postgres-operator.crunchydata.com/cluster=hippo"
        wanted = f"{cluster_label},postgres-operator.crunchydata.com/instance"
        return self.members if (namespace, selector) == (NAMESPACE, wanted) else []

    def psql(self, application: str) -> MemoryPods:
        self.applications.append(application)
        return self.pods

    def make(self) -> None:
        api = MemoryKubernetes()
        if self.parent is not None:
            api.held["postgresclusters", "hippo"] = self.parent
        config_maps = MemoryConfigMaps(NAMESPACE, {"seed": self.held})
        make(ORDER, Ports(cast("Kubernetes", api), config_maps, self, self.psql))


def test_if_all_is_as_it_was_the_sql_runs_under_the_clusters_own_name() -> None:
    world = World()
    world.make()
    assert world.pods.ran == [(NAMESPACE, MEMBER, "database", SQL)]
    assert world.applications == [f"init-sql-{UID}"]


@pytest.mark.parametrize(
    ("world", "detail"),
    [
        pytest.param(World(parent=None), "it is being deleted", id="gone"),
        pytest.param(
            World(parent=cluster(metadata={"deletionTimestamp": "x"})),
            "it is being deleted",
            id="going",
        ),
        pytest.param(
            World(parent=cluster(spec={"databaseInitSQL": None})),
            "it asks for no SQL any more",
            id="not-asked-for",
        ),
        pytest.param(
            World(parent=cluster(spec={"databaseInitSQL": {"key": ""}})),
            "spec.databaseInitSQL: the key is missing",
            id="invalid",
        ),
        pytest.param(
            World(parent=cluster(status={"databaseInitSQL": "seed"})),
            "its SQL was applied by somebody else",
            id="applied",
        ),
        pytest.param(
            World(held=ConfigMap({"init.sql": "SELECT 2;"})),
            "the SQL was changed in the meantime",
            id="other-sql",
        ),
        pytest.param(
            World(parent=cluster(metadata={"uid": "another"})),
            "the SQL was changed in the meantime",
            id="another-cluster-of-that-name",
        ),
        pytest.param(
            World(members=[pod("replica")]), "no running instance takes writes", id="no-primary"
        ),
        pytest.param(
            World(members=[pod("replica"), pod(instance="new")]),
            "the primary is an instance that was not there before",
            id="new-primary",
        ),
    ],
)
def test_what_changed_since_the_decision_has_nothing_executed(world: World, detail: str) -> None:
    with pytest.raises(NotNow) as caught:
        world.make()
    assert (caught.value.detail, world.pods.ran) == (detail, [])


def test_what_the_reconciler_raises_passes() -> None:
    with pytest.raises(MissingKey):
        World(held=ConfigMap({})).make()
    with pytest.raises(Denied):
        World(parent=Denied("Kubernetes", "may not", code="403")).make()


@pytest.mark.parametrize(
    ("error", "told", "code"),
    [
        pytest.param(
            ScriptFailed("PostgreSQL", "x failed", code="42P01", line=7),
            Outcome("failed", "x failed", "42P01", 7),
            1,
        ),
        pytest.param(ScriptFailed("PostgreSQL", "x failed"), Outcome("failed", "x failed"), 1),
        pytest.param(OutcomeUnknown("PostgreSQL", "lost"), Outcome("unknown", "lost"), 1),
        pytest.param(NotNow("PostgreSQL", "later"), Outcome("again", "PostgreSQL: later"), 75),
        pytest.param(
            NotFound("Kubernetes", "gone", code="404"),
            Outcome("again", "Kubernetes: gone (404)"),
            75,
        ),
    ],
)
def test_every_end_has_a_message_that_is_read_back_and_an_exit_code(
    error: EffectError, told: Outcome, code: int
) -> None:
    assert outcome.of(error) == told
    assert outcome.read(told.write()) == told
    assert outcome.EXIT_CODES[told.result] == code


@pytest.mark.parametrize("message", [None, "", "{", "[]", "{}", '{"result":"else"}', "killed"])
def test_a_message_that_is_not_ours_is_none(message: object) -> None:
    assert outcome.read(message) is None


def test_a_message_is_never_cut_off_by_kubernetes() -> None:
    long = Outcome("again", "密" * 5000, "42P01", 7)
    assert len(long.write()) < 4096
    assert outcome.read(long.write()) == Outcome("again", "密" * 512, "42P01", 7)


def test_a_message_is_taken_apart_with_care() -> None:
    message = '{"result":"failed","detail":null,"sqlstate":"x; DROP","line":"7"}'
    assert outcome.read(message) == Outcome("failed", "None")

"""Perform one write in Druid. What it says to it is kept for the look that follows."""

from __future__ import annotations

from typing import assert_never

from hooks.core.errors import EffectError, OutOfTime
from hooks.effects.ports.druid import Cluster, DruidUnavailable
from hooks.ingestion import actions, document, marker, policies, submission
from hooks.ingestion.access import Access
from hooks.ingestion.actions import Action, Removal
from hooks.ingestion.facts import Facts
from hooks.ingestion.model import Spec
from hooks.ingestion.world import World


def act(action: Action, facts: Facts, world: World) -> None:
    """Perform one write towards a Ready DruidIngestion, or raise EffectError."""
    spec = facts.spec
    cluster = _cluster(facts.access, world)
    match action:
        case actions.Submit(id_):
            _submit(id_, spec, cluster, world)
        case actions.PutBack(id_):
            _put_back(id_, spec, cluster)
            world.put_back.add(id_)
        case actions.Suspend(id_):
            cluster.suspend(id_)
        case actions.Resume(id_):
            cluster.resume(id_)
        case actions.WritePolicy(policy):
            world.policies[policy] = policies.write(policy, spec, cluster)
        case actions.ShutDown() | actions.Terminate():
            _end(action, cluster, world)
        case _:
            assert_never(action)


def remove(action: Removal, way: object, world: World) -> None:
    """Perform one write towards a DruidIngestion that is gone, or raise EffectError."""
    cluster = _cluster(way, world)
    match action:
        case actions.WritePolicy(policy):
            world.policies[policy] = policies.remove(policy, cluster)
        case actions.ShutDown() | actions.Terminate():
            _end(action, cluster, world)
        case _:
            assert_never(action)


def _cluster(way: object, world: World) -> Cluster:
    assert isinstance(way, Access)  # noqa: S101  an action is decided on what was read there
    return world.cluster(way)


def _submit(id_: str, spec: Spec, cluster: Cluster, world: World) -> None:
    body = submission.body(spec, id_)
    try:
        world.said[id_] = cluster.submit(spec.ingestion.endpoint, body, id=id_)
    except OutOfTime:
        raise
    except EffectError as error:
        world.unsaid = str(error)
        world.unknown = type(error) is DruidUnavailable
        raise


def _put_back(id_: str, spec: Spec, cluster: Cluster) -> None:
    """Post the last specification that Druid remembers of a supervisor of ours."""
    for earlier in cluster.past_specs(id_):
        mark = marker.of_supervisor(earlier)
        if mark is not None and mark.uid == spec.uid:
            cluster.submit("supervisor", document.write(earlier).encode(), id=id_)
            return


def _end(action: actions.ShutDown | actions.Terminate, cluster: Cluster, world: World) -> None:
    """Ask Druid to end something.

    It may take longer than our time, so silence is no failure: the next look tells.
    """
    world.asked.add(action.id)
    try:
        if isinstance(action, actions.ShutDown):
            cluster.shut_down(action.id)
        else:
            cluster.terminate(action.id)
    except DruidUnavailable as error:
        if type(error) is not DruidUnavailable:
            raise

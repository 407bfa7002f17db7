"""Look at everything that a sync needs.

Nothing is asked that is not needed: a batch that ended asks nobody, a steady supervisor is one
call. What could not be read stops the look; what was learnt before that stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from hooks.core.errors import EffectError, attempt
from hooks.ingestion import planning, policies, supervisors, tasks
from hooks.ingestion.access import Access
from hooks.ingestion.facts import Facts, immutable_changed
from hooks.ingestion.looking import View
from hooks.ingestion.model import Spec
from hooks.ingestion.past import LATE_SECONDS, Past, seconds_since
from hooks.ingestion.record import ENDED, RAN, Record
from hooks.ingestion.supervisors import Watched
from hooks.ingestion.world import World


def gather(spec: Spec, past: Past, world: World) -> Facts:
    """Look at everything a sync needs, in the order in which the gates ask."""
    facts = Facts(spec, past, world.now, past.history, past.applied)
    if spec.taken_by_other or immutable_changed(facts) or _at_rest(facts):
        return facts
    way = attempt(lambda: world.access(spec.connection))
    facts = replace(facts, access=way)
    if not isinstance(way, Access):
        return facts
    secrets = (way.login.password,) if way.login else ()
    view = View(
        spec.uid,
        world.cluster(way),
        world,
        spec.ingestion.document,
        way.fingerprint(spec.generation),
        secrets,
    )
    facts = replace(facts, asked=frozenset(world.asked), put_back=frozenset(world.put_back))
    return _looked(_reopened(facts, view), view)


def _at_rest(facts: Facts) -> bool:
    """Say whether nothing can have changed and nothing is wanted."""
    entry, spec = facts.current, facts.spec
    if spec.ingestion.streaming or facts.obsolete:
        return False
    done = (
        entry is not None
        and entry.state in ENDED
        and (facts.retry_in is None or facts.retry_in > 0)
    )
    return done and policies.settled(spec, facts.applied)


def _reopened(facts: Facts, view: View) -> Facts:
    """Send a refused submission again once what it was refused with has changed."""
    entry = facts.current
    if entry is None or entry.state != "Rejected" or entry.rejected_with == view.fingerprint:
        return facts
    return facts.changed(entry, replace(entry, state="Submitting", ended_at=""))


def _looked(facts: Facts, view: View) -> Facts:
    steps: tuple[Callable[[Facts, View], Facts], ...] = (
        _follow_obsolete,
        _follow_current,
        _planned,
        _policies,
    )
    for step in steps:
        result = attempt(partial(step, facts, view))
        if isinstance(result, EffectError):
            return replace(facts, unread=result)
        facts = result
    return facts


def _follow_obsolete(facts: Facts, view: View) -> Facts:
    for entry in facts.obsolete:
        if facts.spec.ingestion.streaming:
            ended = supervisors.ending(entry, view).record
        else:
            ended = tasks.unwanted(entry, view)
        never = ended.state == "Submitting" and entry.id not in view.world.asked
        if never and seconds_since(entry.submitted_at, facts.now) >= LATE_SECONDS:
            ended = replace(entry, state="Superseded", ended_at=view.now)
        facts = facts.changed(entry, ended)
    return facts


def _follow_current(facts: Facts, view: View) -> Facts:
    entry = facts.current
    if entry is None:
        return facts
    if facts.spec.ingestion.streaming:
        return _watch(facts, entry, view)
    if not entry.live:
        return facts
    followed = tasks.follow(entry, view)
    stranger = planning.taken(entry.id) if followed.stranger else ""
    return replace(facts.changed(entry, followed.record), task=followed.task, stranger=stranger)


def _watch(facts: Facts, entry: Record, view: View) -> Facts:
    spec, older = facts.spec, facts.before
    if entry.state == "Submitting":
        watched = supervisors.confirm(entry, older, spec, view)
    elif entry.state == "Rejected" and older is not None:
        watched = supervisors.watch_older(older, spec, view)
        return replace(
            facts.changed(older, watched.record),
            supervisor=watched.supervisor,
            missing=watched.missing,
        )
    elif entry.state in ("Running", "Lost"):
        watched = supervisors.watch(entry, facts.past, spec, view)
    else:
        return facts
    return _with(facts, entry, watched, view)


def _with(facts: Facts, entry: Record, watched: Watched, view: View) -> Facts:
    new, older = watched.record, facts.before
    facts = replace(
        facts.changed(entry, new),
        supervisor=watched.supervisor,
        stranger=watched.stranger,
        drift=watched.drift,
        missing=watched.missing,
        refused=watched.refused,
    )
    if new.state == "Rejected" and watched.missing and older is not None:
        return facts.changed(older, supervisors.lost(older, view))
    return _replaced(facts, new) if new.state == "Running" else facts


def _replaced(facts: Facts, new: Record) -> Facts:
    """Note that what ran as the same supervisor until now does so no more."""
    for other in facts.history:
        if other is not new and other.id == new.id and (other.live or other.state == "Lost"):
            replaced = replace(other, state="Replaced", ended_at=new.submitted_at)
            facts = facts.changed(other, replaced)
    return facts


def _planned(facts: Facts, view: View) -> Facts:
    entry = facts.current
    due = facts.retry_in == 0
    if facts.obsolete or facts.stranger or (entry is not None and not due):
        return facts
    if facts.holds_back and facts.past.recorded:
        return facts
    if planning.reused_id(facts.history, facts.spec):
        return facts
    if entry is not None:
        # Around a restart of the Overlord a task is FAILED for a moment: look before it runs again.
        task = view.cluster.task(entry.id)
        if task is not None and task.state != "FAILED":
            return replace(facts.changed(entry, tasks.judged(entry, task, view)), task=task)
    plan = planning.plan(facts.history, facts.spec, view)
    if facts.holds_back and plan.fresh:
        return facts
    history = facts.history if plan.record is None else (plan.record, *facts.history)
    return replace(
        facts,
        history=history,
        fresh=plan.fresh,
        stranger=plan.stranger,
        nothing_to_adopt=plan.nothing_to_adopt,
    )


def _policies(facts: Facts, view: View) -> Facts:
    entry = facts.current
    if entry is None or entry.state not in RAN:
        return facts
    applied = facts.applied
    for policy, answer in view.world.policies.items():
        refusal = policy.refusal(view.fingerprint)
        known = policies.after(policy, answer, applied, refusal)
        if known is not None:
            known = replace(known, error=view.shown(known.error))
        applied = known or policies.read_back(policy, facts.spec, applied, view.cluster)
    return replace(
        facts, applied=applied, policy=policies.wanted(facts.spec, applied, view.fingerprint)
    )

"""Where a DecoratorController's contract differs, and how calls of the two are kept apart."""

from __future__ import annotations

import json

import pytest

from hooks.app import answer
from hooks.core import contract, decorator
from hooks.core.contract import BadReply, BadRequest, Request, Response
from hooks.core.deadline import Deadline
from hooks.core.decorator import Decoration
from hooks.core.manifests import LAST_APPLIED, Manifest
from hooks.effects.ports import Services
from tests.app.stubs import services as nowhere

KINDS = frozenset({("batch/v1", "Job")})
JOB: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "a", "namespace": "team-a"},
}
OBJECT: Manifest = {"metadata": {"name": "hippo", "namespace": "team-a"}}


def body(**members: object) -> bytes:
    return json.dumps({"object": OBJECT, "attachments": {}, "finalizing": False} | members).encode()


def rendered(decoration: Decoration, *, finalizing: bool = False) -> object:
    return json.loads(decorator.render(decoration, kinds=KINDS, finalizing=finalizing))


def test_the_object_is_the_parent_and_attachments_are_children() -> None:
    attachments = {"Job.batch/v1": {"team-a/a": JOB}}
    assert contract.parse(body(attachments=attachments)) == Request(
        parent=OBJECT, children=attachments, decorates=True
    )


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(BadRequest):
        contract.parse(body(object={"metadata": {}}))


@pytest.mark.parametrize(
    ("decoration", "document"),
    [
        pytest.param(Decoration(), {"attachments": []}, id="nothing"),
        pytest.param(
            Decoration((JOB,), {"a": "b", "gone": None}, {"x": 1}, recheck=3.0),
            {
                "attachments": [JOB],
                "annotations": {"a": "b", "gone": None},
                "status": {"x": 1},
                "resyncAfterSeconds": 3.0,
            },
            id="all",
        ),
        pytest.param(
            Decoration(status={}), {"attachments": [], "status": {}}, id="a-status-that-is-empty"
        ),
        pytest.param(Decoration(recheck=0), {"attachments": []}, id="no-recheck"),
    ],
)
def test_only_what_is_to_change_is_answered(decoration: Decoration, document: object) -> None:
    assert rendered(decoration) == document


def test_finalized_is_answered_in_finalize_only() -> None:
    assert rendered(Decoration(finalized=True), finalizing=True) == {
        "attachments": [],
        "finalized": True,
    }
    with pytest.raises(BadReply):
        rendered(Decoration(finalized=True))


@pytest.mark.parametrize(
    "decoration",
    [
        pytest.param(Decoration((JOB, JOB)), id="twice"),
        pytest.param(Decoration((JOB | {"kind": "Pod"},)), id="unlisted-kind"),
        pytest.param(Decoration((JOB | {"spec": None},)), id="null"),
        pytest.param(Decoration(status={"x": None}), id="null-in-status"),
    ],
)
def test_what_would_do_harm_does_not_leave(decoration: Decoration) -> None:
    with pytest.raises(BadReply):
        rendered(decoration)


class Either:
    """Answers one contract, whoever asks."""

    resource = "either"
    children = KINDS

    def __init__(self, reply: Response | Decoration) -> None:
        self._reply = reply

    def sync(self, _request: Request, _services: Services) -> Response | Decoration:
        return self._reply

    def finalize(self, request: Request, services: Services) -> Response | Decoration:
        return self.sync(request, services)

    def customize(self, _request: Request) -> list[Manifest]:
        return []


@pytest.mark.parametrize(
    ("reply", "decorates"),
    [
        pytest.param(Response({}), True, id="decorator-at-a-composites-path"),
        pytest.param(Decoration(), False, id="composite-at-a-decorators-path"),
    ],
)
def test_a_controller_with_its_paths_mixed_up_is_refused(
    reply: Response | Decoration,
    decorates: bool,  # noqa: FBT001  a column of the table
) -> None:
    request = Request(parent=OBJECT, decorates=decorates)
    with pytest.raises(BadRequest):
        answer(Either(reply), "sync", request, lambda: nowhere(Deadline()))


def test_held_attachments_are_as_they_were_applied() -> None:
    shown = JOB | {"metadata": JOB["metadata"] | {"annotations": {LAST_APPLIED: json.dumps(JOB)}}}
    request = contract.parse(body(attachments={"Job.batch/v1": {"team-a/a": shown}}))
    assert contract.hold(request) == (JOB,)

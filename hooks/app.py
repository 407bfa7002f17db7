"""The HTTP face: routes, tokens, the limit, and the one boundary that catches everything.

It knows Metacontroller's calls and no resource. Every answer but 200 leaves the cluster as it
is, and people read its body in Events: a code and a request id, never a text.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

import flask
import structlog
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from werkzeug.exceptions import HTTPException

from hooks.core import contract, decorator, manifests
from hooks.core.contract import BadReply, BadRequest, Request, Response
from hooks.core.deadline import REQUEST_SECONDS, Deadline
from hooks.core.decorator import Decoration
from hooks.core.manifests import Manifest
from hooks.effects.ports import Services
from hooks.telemetry import Metrics

Hook = Literal["sync", "finalize", "customize"]
HOOKS: tuple[Hook, ...] = ("sync", "finalize", "customize")

# Without a positive Retry-After, Metacontroller asks again at once, and for ever.
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "2"}}

_log = structlog.get_logger(__name__)


class Controller(Protocol):
    """The hooks of one resource."""

    @property
    def resource(self) -> str:
        """The first segment of its paths, "tenant" for `/tenant/sync`."""

    @property
    def children(self) -> frozenset[tuple[str, str]]:
        """The (apiVersion, kind) pairs that its controller lists as children."""

    def sync(self, request: Request, services: Services) -> Response | Decoration:
        """Bring the world nearer to spec and say how it is."""

    def finalize(self, request: Request, services: Services) -> Response | Decoration:
        """Take away what was made."""

    def customize(self, request: Request) -> list[Manifest]:
        """Name the related objects, from spec alone."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much work is taken on: sync and finalize calls at once, and seconds for each."""

    in_flight: int = 24
    seconds: float = REQUEST_SECONDS


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that passed every check: its bytes, and what the log says of it."""

    body: bytes
    told: Mapping[str, object] = field(default_factory=dict)


def answer(
    controller: Controller, hook: Hook, request: Request, services: Callable[[], Services]
) -> Reply:
    """Ask a resource, and check what it says. Customize makes no services.

    Raises:
        BadRequest: the call is meant for another hook.
        BadReply: the answer would do harm.
    """
    if request.finalizing != (hook == "finalize"):
        # A controller with its paths mixed up would have live objects taken apart.
        raise BadRequest(f"finalizing is {str(request.finalizing).lower()} in a call of {hook}")
    if hook == "customize":
        document = {"relatedResources": controller.customize(request)}
        for path in manifests.nulls(document):
            raise BadReply(f"{path} is null")
        return Reply(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    call = controller.finalize if hook == "finalize" else controller.sync
    response = call(request, services())
    if request.decorates != isinstance(response, Decoration):
        # Answered loosely, a CompositeController would wipe a status that is not in its field.
        raise BadRequest("a CompositeController calls a decorator's path, or the other way round")
    body = decorator.render(response, kinds=controller.children, finalizing=request.finalizing)
    told = {"children": len(response.children), "resync": response.recheck}
    return Reply(body, told | ({"finalized": response.finalized} if request.finalizing else {}))


def create_app(
    controllers: Iterable[Controller],
    services: Callable[[Deadline], Services],
    *,
    tokens: Callable[[], Sequence[bytes]],
    ready: Callable[[], bool],
    metrics: Metrics,
    limits: Limits = Limits(),
) -> flask.Flask:
    """Build the WSGI application.

    `services` makes the outside world of one request, `tokens` are the Bearer tokens that are
    valid now, `ready` says whether new calls are welcome.
    """
    app = flask.Flask(__name__, static_folder=None)
    # A redirected POST comes back as a GET: a path is right, or it is unknown.
    app.url_map.merge_slashes = False
    slots = threading.BoundedSemaphore(limits.in_flight)
    front = _Front(services, tokens, metrics, limits.seconds, slots)
    views: dict[str, tuple[str, Callable[[], flask.Response]]] = {
        f"/{controller.resource}/{hook}": ("POST", partial(front.serve, controller, hook))
        for controller in controllers
        for hook in HOOKS
    }
    views["/healthz"] = ("GET", lambda: flask.Response("ok\n"))
    views["/readyz"] = ("GET", lambda: flask.Response(status=200 if ready() else 503))
    views["/metrics"] = (
        "GET",
        lambda: flask.Response(generate_latest(metrics.registry), content_type=CONTENT_TYPE_LATEST),
    )
    for path, (method, view) in views.items():
        app.add_url_rule(path, path, view, methods=[method], provide_automatic_options=False)
    app.register_error_handler(HTTPException, _http_error)
    return app


def _http_error(error: HTTPException) -> flask.Response:
    outcome = _Outcome(error.code or 500, error.name.title().replace(" ", ""))
    response = outcome.response(secrets.token_hex(8))
    response.headers.extend(header for header in error.get_headers() if header[0] == "Allow")
    return response


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a call: a status, and a code or a reply."""

    status: int
    code: str
    reply: Reply = Reply(b"")
    problem: str | None = None
    bug: Exception | None = None

    def response(self, request_id: str) -> flask.Response:
        body = self.reply.body or json.dumps({"code": self.code, "requestId": request_id})
        headers = _HEADERS.get(self.status)
        return flask.Response(body, self.status, headers, content_type="application/json")

    def log(self, seconds: float) -> None:
        told = {"result": self.code, "seconds": round(seconds, 4), **self.reply.told}
        if self.bug:
            _log.error("hook", **told, exc_info=self.bug)
        elif self.problem:
            _log.warning("hook", **told, problem=self.problem)
        else:
            _log.info("hook", **told)


@dataclass(frozen=True, slots=True)
class _Front:
    """Everything between the socket and a resource."""

    services: Callable[[Deadline], Services]
    tokens: Callable[[], Sequence[bytes]]
    metrics: Metrics
    seconds: float
    slots: threading.BoundedSemaphore

    def serve(self, controller: Controller, hook: Hook) -> flask.Response:
        """Answer one call, log it once, and count it."""
        started = time.monotonic()
        services = partial(self.services, Deadline(self.seconds))
        request_id = secrets.token_hex(8)
        resource = controller.resource
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id, resource=resource, hook=hook)
        outcome = self._guarded(resource, hook, partial(_work, controller, hook, services))
        seconds = time.monotonic() - started
        outcome.log(seconds)
        structlog.contextvars.clear_contextvars()
        self.metrics.duration.labels(resource, hook, outcome.code).observe(seconds)
        return outcome.response(request_id)

    def _guarded(self, resource: str, hook: Hook, work: Callable[[bytes], _Outcome]) -> _Outcome:
        try:
            if not _authorized(flask.request.headers.get("Authorization", ""), self.tokens()):
                return _Outcome(401, "Unauthorized", problem="no valid Bearer token")
            body = _body()  # before 429: a peer that is still sending would miss the answer
            if hook == "customize":
                return work(body)
            return self._limited(resource, hook, partial(work, body))
        except BadRequest as error:
            return _Outcome(400, "BadRequest", problem=str(error))
        except Exception as error:  # noqa: BLE001  the boundary: whatever is left is a bug
            return _Outcome(500, "InternalError", bug=error)

    def _limited(self, resource: str, hook: Hook, work: Callable[[], _Outcome]) -> _Outcome:
        if not self.slots.acquire(blocking=False):
            self.metrics.rejected.labels(resource, hook).inc()
            return _Outcome(429, "TooManyRequests", problem="too many calls in flight")
        try:
            with self.metrics.in_flight.track_inprogress():
                return work()
        finally:
            self.slots.release()


def _authorized(header: str, tokens: Sequence[bytes]) -> bool:
    scheme, _, given = header.partition(" ")
    candidate = given.strip().encode("latin-1", "replace")
    # All are compared, whichever fits: the time says nothing.
    fits = [hmac.compare_digest(candidate, token) for token in tokens if token]
    return scheme.lower() == "bearer" and any(fits)


def _work(
    controller: Controller, hook: Hook, services: Callable[[], Services], body: bytes
) -> _Outcome:
    request = contract.parse(body)
    structlog.contextvars.bind_contextvars(
        kind=request.parent.get("kind"),
        namespace=manifests.namespace(request.parent),
        name=manifests.name(request.parent),
        uid=manifests.uid(request.parent),
        generation=manifests.metadata(request.parent).get("generation"),
    )
    return _Outcome(200, "OK", answer(controller, hook, request, services))


def _body() -> bytes:
    try:
        return flask.request.get_data(cache=False)
    except Exception as error:  # the server's own classes: whatever it is, the sender stopped
        raise BadRequest("the body did not arrive") from error

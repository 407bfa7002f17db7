"""The supervisors of the double of Druid: sending one again replaces it, ending one is remembered.

Idea: nothing is read from any stream. A supervisor is PENDING until it is told to settle (in a
demo it settles by itself), and healthy until it is told that its stream is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hooks.sandbox import druid_specs as specs
from hooks.sandbox.druid_conduct import Conduct
from hooks.sandbox.druid_replies import Document, Refusal, Reply, error, given, plain, thrown

_SPEC = "org.apache.druid.indexing.overlord.supervisor.SupervisorSpec"
_TYPES = ("kafka", "kinesis")


@dataclass(slots=True)
class SimulatedSupervisor:
    """A running supervisor with Druid's copy of its specification.

    Attributes:
        restarts: how often its tasks were started anew since it was created.
    """

    id: str
    spec: Document = field(repr=False)
    since: float
    state: str = "PENDING"
    detailed_state: str = "PENDING"
    healthy: bool = True
    errors: list[str] = field(default_factory=list, repr=False)
    restarts: int = 0

    @property
    def suspended(self) -> bool:
        """Say whether it was asked to read nothing."""
        return bool(self.spec["suspended"])

    @property
    def status(self) -> Document:
        """What GET /status shows under `payload`."""
        io = self.spec["ioConfig"]
        exceptions = [
            {"timestamp": None, "exceptionClass": "", "message": text, "streamException": True}
            for text in self.errors
        ]
        return {
            "dataSource": self.spec["dataSchema"]["dataSource"],
            "stream": io["stream"],
            "replicas": io["replicas"],
            "activeTasks": [],
            "publishingTasks": [],
            "aggregateLag": 0,
            "suspended": self.suspended,
            "healthy": self.healthy,
            "state": self.state,
            "detailedState": self.detailed_state,
            "recentErrors": exceptions,
        }

    def begin(self, now: float) -> None:
        """Start anew, as after every change."""
        self.since, self.state, self.detailed_state = now, "PENDING", "PENDING"
        self.healthy, self.errors = True, []


class Supervisors(Mapping[str, SimulatedSupervisor]):
    """All supervisors that run, by id, and the history of those that did."""

    def __init__(self, conduct: Conduct) -> None:
        self._conduct = conduct
        self._supervisors: dict[str, SimulatedSupervisor] = {}
        self.history: dict[str, list[Document]] = {}

    def __getitem__(self, named: str) -> SimulatedSupervisor:
        return self._supervisors[named]

    def __iter__(self) -> Iterator[str]:
        return iter(self._supervisors)

    def __len__(self) -> int:
        return len(self._supervisors)

    def datasource(self, named: str) -> str:
        """Return the datasource of one, of a past one, or "" of none."""
        versions = self.history.get(named)
        if not versions:
            return ""
        spec = versions[0]["spec"]
        return str(spec["dataSources"][0] if "dataSources" in spec else specs.datasource(spec))

    def settle(self) -> None:
        """Let every supervisor that was just changed become what it should be."""
        for one in self.values():
            if one.state == "PENDING":
                one.state = one.detailed_state = "SUSPENDED" if one.suspended else "RUNNING"

    def lose_stream(self, named: str, error: str) -> None:
        """Make one unhealthy, as when its brokers are gone; a change makes it healthy again."""
        one = self[named]
        one.state, one.detailed_state = "UNHEALTHY_SUPERVISOR", "UNABLE_TO_CONNECT_TO_STREAM"
        one.healthy = False
        one.errors.append(error)

    def go_on(self) -> None:
        """Settle what settles by itself in a demo."""
        if any(self._conduct.due(one.since) for one in self.values()):
            self.settle()

    def submit(self, document: Document, *, skip_unmodified: bool) -> Reply:
        """Create or replace a supervisor."""
        named, spec = self._copied(document)
        old = self.get(named)
        if old and skip_unmodified and self._conduct.skips_restarts and old.spec == spec:
            return given({"id": named})
        if old and self._conduct.honours_ids:
            _check_stream(old.spec, spec)
        if self._conduct.creation_error:
            # The old one is stopped by now, and stays in the database alone.
            self._supervisors.pop(named, None)
            text = f"java.lang.IllegalArgumentException: {self._conduct.creation_error}"
            return thrown(f"java.lang.RuntimeException: {text}")
        now = self._conduct.now()
        restarts = old.restarts + 1 if old else 0
        self._supervisors[named] = SimulatedSupervisor(named, spec, now, restarts=restarts)
        self._remember(named, spec)
        return given({"id": named})

    def answer(self, method: str, named: str, what: str) -> Reply:
        """Answer a request about a supervisor."""
        if (method, what) == ("GET", "history"):
            versions = self.history.get(named)
            return given(versions) if versions else error(404, f"No history for [{named}].")
        one = self.get(named)
        if one is None:
            return plain(404, f"Cannot find any supervisor with id: [{named}]")
        return self._shown(one, what) if method == "GET" else self._changed(one, what)

    def _shown(self, one: SimulatedSupervisor, what: str) -> Reply:
        match what:
            case "":
                return given(one.spec)
            case "status":
                time = self._conduct.time()
                return given({"id": one.id, "generationTime": time, "payload": one.status})
            case "health":
                return given({"healthy": one.healthy}, status=200 if one.healthy else 503)
            case _:
                return Reply(405)

    def _changed(self, one: SimulatedSupervisor, what: str) -> Reply:
        match what:
            case "suspend" | "resume":
                return self._suspend(one, suspended=what == "suspend")
            case "terminate" | "shutdown":
                return self._terminate(one)
            case _:
                return Reply(405)

    def _copied(self, document: Document) -> tuple[str, Document]:
        kind, datasource = str(document["type"]), specs.datasource(document)
        if kind not in _TYPES:
            raise Refusal(unknown_type(kind, _SPEC, _TYPES))
        specs.check_id("dataSource", datasource, within="DataSchema")
        _check_io(kind, document)
        named = datasource
        if self._conduct.honours_ids:
            named = document.get("id") or datasource
            specs.check_id("spec id", named, within="SupervisorSpec")
        return named, specs.supervisor(document, own_id=named if self._conduct.honours_ids else "")

    def _suspend(self, one: SimulatedSupervisor, *, suspended: bool) -> Reply:
        if one.suspended == suspended:
            return error(400, f"[{one.id}] is already {'suspended' if suspended else 'running'}")
        one.spec = {**one.spec, "suspended": suspended}
        one.begin(self._conduct.now())
        one.restarts += 1
        self._remember(one.id, one.spec)
        return given(one.spec)

    def _terminate(self, one: SimulatedSupervisor) -> Reply:
        del self._supervisors[one.id]
        datasource = one.spec["dataSchema"]["dataSource"]
        stone = {"type": "NoopSupervisorSpec", "id": None, "dataSources": [datasource]}
        self._remember(one.id, {**stone, "suspended": False, "source": "noop"})
        return given({"id": one.id})

    def _remember(self, named: str, spec: Document) -> None:
        version = {"spec": spec, "version": self._conduct.time()}
        self.history[named] = [version, *self.history.get(named, [])]


def unknown_type(name: str, known_as: str, types: Sequence[str]) -> Reply:
    """Answer that no loaded extension knows a type."""
    text = (
        "Please make sure to load all the necessary extensions and jars with type "
        f"'{name}' on 'druid/coordinator' service. Could not resolve type id '{name}' as a "
        f"subtype of `{known_as}` known type ids = [{', '.join(types)}]"
    )
    return error(400, text)


def _check_io(kind: str, document: Document) -> None:
    inside = document.get("spec")
    io = (inside if isinstance(inside, dict) else document).get("ioConfig") or {}
    wrong = ""
    if kind == "kinesis" and not io.get("stream"):
        wrong = "stream"
    elif kind == "kafka" and not (io.get("topic") or io.get("topicPattern")):
        wrong = "Either topic or topicPattern must be specified"
    elif kind == "kafka" and "consumerProperties" not in io:
        wrong = "consumerProperties"
    elif kind == "kafka" and "bootstrap.servers" not in io["consumerProperties"]:
        wrong = "consumerProperties must contain entry for [bootstrap.servers]"
    if wrong:
        name = f"org.apache.druid.indexing.{kind}.supervisor.{kind.title()}SupervisorIOConfig"
        raise Refusal(error(400, f"Cannot construct instance of `{name}`, problem: {wrong}"))


def _check_stream(old: Document, new: Document) -> None:
    before, after = old["ioConfig"]["stream"], new["ioConfig"]["stream"]
    if old["type"] != new["type"]:
        after = new["type"]
    if before != after:
        text = f"Update of the input source stream from [{before}] to [{after}]"
        exception = "org.apache.druid.error.DruidException"
        raise Refusal(thrown(f"{exception}: {text} is not supported for a running supervisor."))

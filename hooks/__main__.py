"""The command line: serve, answer one call from a file, or show everything on this machine.

Exit codes: 0 done, 1 it was not done, or was answered with a bug, 2 the command line, the
settings or the call are wrong.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import flask

from hooks import recordings, server, telemetry
from hooks.app import Hook, answer
from hooks.core import contract
from hooks.core.contract import BadReply, BadRequest
from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError
from hooks.recordings import BadRecording
from hooks.settings import Settings, SettingsError

BUG = 1
USAGE = 2


class UnknownResource(Exception):
    """No such resource is served."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
    except SettingsError as error:
        return _complain(*error.problems)
    return code


def _complain(*problems: str, code: int = USAGE) -> int:
    for problem in problems:
        print(f"hooks: {problem}", file=sys.stderr)  # noqa: T201  for who typed the command
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hooks", description="Metacontroller hooks for databases")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="answer Metacontroller until SIGTERM")
    serve.set_defaults(run=_serve)
    for hook in ("sync", "finalize", "customize"):
        once = commands.add_parser(hook, help=f"answer the {hook} request on standard input")
        once.add_argument("resource", metavar="RESOURCE", help="as in the path: tenant, ingestion")
        once.set_defaults(run=_answer, hook=hook)
    again = commands.add_parser("replay", help="answer recorded calls, show what differs")
    _add_paths(again, _replay, "FILE", "recorded calls, JSON")
    check = commands.add_parser("check", help="say what would be refused of manifests")
    _add_paths(check, _check, "PATH", "manifests, recorded calls, or directories of them")
    _add_init_sql(commands.add_parser("run-init-sql", help="what an init-SQL Job does"))
    registry = commands.add_parser("registry", help="repair the ownership registry")
    repairs = registry.add_subparsers(required=True, metavar="ACTION")
    rebind = repairs.add_parser("rebind", help="after a restore: accept new OIDs, a new Instance")
    rebind.add_argument("tenant", metavar="NAMESPACE/NAME")
    rebind.add_argument("--apply", action="store_true", help="do it; without it, only say what")
    rebind.set_defaults(run=_rebind)
    sandbox = commands.add_parser("sandbox", help="a whole world on this machine")
    actions = sandbox.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start it and apply objects")
    _add_paths(up, _sandbox, "PATH", "files or directories of manifests")
    up.add_argument("--once", action="store_true", help="exit when everything is Ready, or cannot")
    up.add_argument("--druid-url", default="", metavar="URL", help="a real Druid's Router to use")
    return parser


def _add_paths(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
    metavar: str,
    meaning: str,
) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar=metavar, help=meaning)
    parser.set_defaults(run=run)


def _add_init_sql(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mode", choices=("composite", "decorator"), required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--cluster", required=True, help="the PostgresCluster")
    parser.add_argument("--digest", required=True, help="of the SQL that was judged")
    parser.add_argument("--seconds", type=int, required=True, help="after which the Job is stopped")
    parser.add_argument("--pod", action="append", default=[], help="where the SQL may be run")
    parser.add_argument("--termination-log", type=Path, required=True, metavar="FILE")
    parser.set_defaults(run=_init_sql)


def _init_sql(arguments: argparse.Namespace) -> int:
    from hooks import initsql_job  # noqa: PLC0415  serve must not import it here, see _build
    from hooks.initsql.attempt import Order  # noqa: PLC0415  the same

    order = Order(
        mode=arguments.mode,
        namespace=arguments.namespace,
        cluster=arguments.cluster,
        digest=arguments.digest,
        pods=frozenset(arguments.pod),
    )
    return initsql_job.run(
        order, seconds=arguments.seconds, termination_log=arguments.termination_log
    )


def _serve(_arguments: argparse.Namespace) -> int:
    server.serve(Settings.from_process(), _build)
    return 0


def _build(settings: Settings, ready: Callable[[], bool]) -> flask.Flask:
    from hooks import wsgi  # noqa: PLC0415  in the worker: the process above stays small

    return wsgi.build(settings, ready)


def _answer(arguments: argparse.Namespace) -> int:
    try:
        body = _answered(arguments.resource, arguments.hook, sys.stdin.buffer.read)
    except (UnknownResource, BadRequest, EffectError) as error:
        return _complain(str(error))
    except BadReply as error:
        return _complain(f"the answer would do harm: {error}", code=BUG)
    sys.stdout.buffer.write(body + b"\n")
    return 0


def _answered(resource: str, hook: Hook, read: Callable[[], bytes]) -> bytes:
    """Answer one call in this process.

    Raises:
        UnknownResource: it is not served.
    """
    from hooks import wsgi  # noqa: PLC0415  serve must not import it here, see _build

    settings = Settings.from_process()
    telemetry.setup(settings.log_level, stream=sys.stderr)
    effects = telemetry.Effects(telemetry.Metrics())
    known = {each.resource: each for each in wsgi.controllers(settings, effects)}
    if resource not in known:
        raise UnknownResource(f"there is no resource {resource}; there are {', '.join(known)}")
    return answer(
        known[resource],
        hook,
        contract.parse(read()),
        lambda: wsgi.services(settings)(Deadline(settings.request_seconds)),
    ).body


def _replay(arguments: argparse.Namespace) -> int:
    differ = False
    for path in arguments.paths:
        try:
            recording = recordings.read(path)
            body = _answered(recording.resource, recording.hook, recording.body)
        except (BadRecording, UnknownResource, BadRequest, EffectError) as error:
            return _complain(f"{path}: {error}")
        except BadReply as error:
            return _complain(f"{path}: the answer would do harm: {error}", code=BUG)
        difference = recording.differences(body)
        print(difference or f"{path}: the same answer")  # noqa: T201  for who typed the command
        differ = differ or bool(difference)
    return 1 if differ else 0


def _rebind(arguments: argparse.Namespace) -> int:
    from hooks import wsgi  # noqa: PLC0415  serve must not import it here, see _build

    settings = Settings.from_process()
    telemetry.setup(settings.log_level, stream=sys.stderr)
    namespace, slash, name = arguments.tenant.partition("/")
    if not (namespace and slash and name):
        return _complain(f"{arguments.tenant} is not NAMESPACE/NAME")
    try:
        plan = wsgi.rebind(settings, namespace=namespace, name=name, apply=arguments.apply)
    except EffectError as error:
        return _complain(str(error), code=BUG)
    if plan.problems:
        return _complain(*plan.problems, code=BUG)
    done = "done" if arguments.apply else "would be done, with --apply"
    for change in plan.changes or ("nothing differs",):
        print(f"{change} ({done})" if plan.changes else change)  # noqa: T201  for who typed it
    return 0


def _check(arguments: argparse.Namespace) -> int:
    return _sandboxed("checking", arguments.paths)


def _sandbox(arguments: argparse.Namespace) -> int:
    return _sandboxed("ui", arguments.paths, once=arguments.once, druid_url=arguments.druid_url)


def _sandboxed(module: str, *arguments: object, **options: object) -> int:
    """Run what only the sandbox's own packages can."""
    try:
        found = importlib.import_module(f"hooks.sandbox.{module}")
    except ModuleNotFoundError as error:
        return _complain(f"{error}: this needs the extra `sandbox` to be installed")
    code: int = found.main(*arguments, **options)
    return code


if __name__ == "__main__":
    sys.exit(main())

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

from hooks import server, telemetry
from hooks.app import answer
from hooks.core import contract
from hooks.core.contract import BadReply, BadRequest
from hooks.core.deadline import Deadline
from hooks.core.errors import EffectError
from hooks.settings import Settings, SettingsError

BUG = 1
USAGE = 2


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
        once.add_argument("resource", metavar="RESOURCE", help="as in the path: instance, tenant")
        once.set_defaults(run=_answer, hook=hook)
    registry = commands.add_parser("registry", help="repair the ownership registry")
    repairs = registry.add_subparsers(required=True, metavar="ACTION")
    rebind = repairs.add_parser("rebind", help="after a restore: accept new OIDs, a new Instance")
    rebind.add_argument("tenant", metavar="NAMESPACE/NAME")
    rebind.add_argument("--apply", action="store_true", help="do it; without it, only say what")
    rebind.set_defaults(run=_rebind)
    sandbox = commands.add_parser("sandbox", help="a whole world on this machine")
    actions = sandbox.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start it and apply objects")
    up.add_argument("paths", nargs="+", metavar="PATH", help="files or directories of manifests")
    up.add_argument("--once", action="store_true", help="exit when everything is Ready, or cannot")
    up.set_defaults(run=_sandbox)
    return parser


def _serve(_arguments: argparse.Namespace) -> int:
    server.serve(Settings.from_process(), _build)
    return 0


def _build(settings: Settings, ready: Callable[[], bool]) -> flask.Flask:
    from hooks import wsgi  # noqa: PLC0415  in the worker: the process above stays small

    return wsgi.build(settings, ready)


def _answer(arguments: argparse.Namespace) -> int:
    from hooks import wsgi  # noqa: PLC0415  serve must not import it here, see _build

    settings = Settings.from_process()
    telemetry.setup(settings.log_level, stream=sys.stderr)
    effects = telemetry.Effects(telemetry.Metrics())
    known = {each.resource: each for each in wsgi.controllers(settings, effects)}
    controller = known.get(arguments.resource)
    if controller is None:
        return _complain(f"there is no resource {arguments.resource}; there are {', '.join(known)}")
    try:
        request = contract.parse(sys.stdin.buffer.read())
        reply = answer(
            controller,
            arguments.hook,
            request,
            lambda: wsgi.services(settings)(Deadline(settings.request_seconds)),
        )
    except (BadRequest, EffectError) as error:
        return _complain(str(error))
    except BadReply as error:
        return _complain(f"the answer would do harm: {error}", code=BUG)
    sys.stdout.buffer.write(reply.body + b"\n")
    return 0


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


def _sandbox(arguments: argparse.Namespace) -> int:
    try:
        ui = importlib.import_module("hooks.sandbox.ui")
    except ModuleNotFoundError as error:
        return _complain(f"{error}: the sandbox needs the extra `sandbox` to be installed")
    code: int = ui.main([Path(path) for path in arguments.paths], once=arguments.once)
    return code


if __name__ == "__main__":
    sys.exit(main())

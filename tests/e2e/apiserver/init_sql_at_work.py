"""One way to install databaseInitSQL, at work on a control plane.

Real: the program under its own ServiceAccount, and Metacontroller if METACONTROLLER_BIN names it;
it has the rights that the manual asks for and no others.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from hooks.core.manifests import Manifest
from hooks.initsql.model import Mode
from hooks.sandbox.kube_cluster import KubeCluster
from hooks.sandbox.metacontroller import Connection, Runner
from hooks.sandbox.processes import Process, free_port
from tests.docs.pages import ROOT
from tests.e2e.apiserver import others
from tests.e2e.apiserver.administrator import Administrator
from tests.e2e.apiserver.control_plane import ControlPlane
from tests.e2e.apiserver.init_sql import World
from tests.e2e.apiserver.init_sql_objects import RIGHTS, TEAM, kinds, manifest, team
from tests.e2e.tools.programs import given, program

HOOKS = "database-hooks"
_CONTROLLERS = {
    "composite": "init-sql/compositecontroller-init-sql",
    "decorator": "init-sql-pgo/decoratorcontroller-init-sql-pgo",
}


@contextmanager
def at_work(mode: Mode, control_plane: ControlPlane, directory: Path) -> Iterator[World]:
    """Install one of the two ways, and let it work."""
    environment = {
        "PATH": f"{program('kubectl').parent}:{os.defpath}",
        "HOME": str(directory),
        "KUBECONFIG": str(control_plane.kubeconfig),
    }
    world = World(mode, Administrator(ROOT, environment), control_plane, directory)
    address, token = f"127.0.0.1:{free_port()}", secrets.token_urlsafe(16)
    controller = _install(world, address, token)
    with _program(world, address, token), _metacontroller(world, controller, address, token):
        yield world


def _install(world: World, address: str, token: str) -> Manifest:
    """Apply what the component has, and what must be there before; return the controller."""
    who = world.who
    who.kubectl("apply", "--server-side", "-f", str(others.crds()[0]))
    who.apply(kinds(world.mode))
    who.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    base, component = ROOT / "metacontroller/base", ROOT / "metacontroller/components"
    for path in (base / "namespace.yaml", base / "serviceaccount.yaml"):
        who.kubectl("apply", "-f", str(path))
    who.kubectl("apply", "-f", str(component / "init-sql-job/rbac.yaml"))
    words = ("create", "secret", "generic", "database-hooks-token", "-n", HOOKS)
    who.kubectl(*words, f"--from-literal=token={token}")
    who.kubectl("create", "serviceaccount", "metacontroller", "-n", HOOKS)
    who.apply(*RIGHTS, team(TEAM))
    controller = manifest(component / f"{_CONTROLLERS[world.mode]}.yaml", address)
    who.apply(controller)
    return controller


@contextmanager
def _program(world: World, address: str, token: str) -> Iterator[None]:
    file = world.directory / "hook-token"
    file.write_text(token)
    environment = {
        "PATH": os.defpath,
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(_kubeconfig(world, "database-hooks")),
        "RESOURCES": "initsql",
        "CONTROLLER_NAMESPACE": HOOKS,
        "HOOK_TOKEN_FILES": str(file),
        "LISTEN_ADDRESS": address,
    }
    process = Process(
        [sys.executable, "-m", "hooks", "serve"],
        log=world.directory / "app.log",
        env=environment,
    )
    try:
        process.wait_until(
            lambda: requests.get(f"http://{address}/readyz", timeout=5).ok,
            despite=(requests.RequestException,),
        )
        yield
    finally:
        process.stop(timeout=60)


@contextmanager
def _metacontroller(world: World, controller: Manifest, address: str, token: str) -> Iterator[None]:
    kubeconfig = _kubeconfig(world, "metacontroller")
    binary = given("METACONTROLLER_BIN")
    if binary is None:
        with KubeCluster(kubeconfig, others.now) as cluster:
            runner = Runner(cluster, [controller], connect=Connection(f"http://{address}", token))
            runner.start()
            try:
                yield
            finally:
                runner.stop()
        return
    flags = ["--client-go-qps=100", "--client-go-burst=200"]
    flags += ["--metrics-address=0", "--health-probe-bind-address=0"]
    environment = {"PATH": os.defpath, "KUBECONFIG": str(kubeconfig)}
    log = world.directory / "metacontroller.log"
    process = Process([str(binary), *flags], log=log, env=environment)
    try:
        yield
    finally:
        process.stop(timeout=60)


def _kubeconfig(world: World, account: str) -> Path:
    token = world.who.kubectl("create", "token", account, "-n", HOOKS).strip()
    return world.control_plane.kubeconfig_of(world.directory / f"{account}.kubeconfig", token)

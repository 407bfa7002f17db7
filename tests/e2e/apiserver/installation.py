"""database-hooks installed as the manual says, on a control plane, beside its servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from hooks.core.manifests import Manifest
from hooks.sandbox.openbao_server import OpenBaoServer
from hooks.sandbox.postgres_server import PostgresServer
from hooks.sandbox.processes import free_port
from hooks.sandbox.samples import LocalServer, localized
from tests.docs.pages import OPERATIONS, blocks
from tests.e2e.apiserver import others
from tests.e2e.apiserver.administrator import Administrator, administrator
from tests.e2e.apiserver.control_plane import ControlPlane

NAMESPACE = "database-hooks"
ADMIN_SECRET = "shared-postgresql-admin"
TEAMS = ("team-a", "team-b")
OPENBAO = "https://openbao.openbao:8200"
"""Where it is in the manual."""
SWEEP_SECONDS = "2"


@dataclass(frozen=True)
class Installation:
    """What `kubectl` made, and the servers outside of the cluster."""

    directory: Path
    control_plane: ControlPlane
    administrator: Administrator
    postgres: PostgresServer
    openbao: OpenBaoServer
    address: str
    """Where the program listens; the Service of the manifests leads nowhere without a node."""

    def sample(self, name: str) -> list[Manifest]:
        """Return a sample with our server; the admin Secret of another Instance comes first."""
        path = self.administrator.checkout / "samples" / f"{name}.yaml"
        server = self.postgres
        local = LocalServer(
            host=server.host,
            hostaddr=server.hostaddr,
            port=server.port,
            username=server.admin.name,
            password=server.admin.password,
        )
        found = localized(yaml.safe_load_all(path.read_text()), local, NAMESPACE)
        there = [("Secret", ADMIN_SECRET), *(("Namespace", name) for name in (NAMESPACE, *TEAMS))]
        return [one for one in found if (one["kind"], one["metadata"]["name"]) not in there]


def prepared(
    directory: Path, control_plane: ControlPlane, postgres: PostgresServer, openbao: OpenBaoServer
) -> Installation:
    """Bring about what must be there before: kinds of others, OpenBao's set-up, namespaces."""
    who = administrator(directory, control_plane, openbao)
    address = f"127.0.0.1:{free_port()}"
    made = Installation(directory, control_plane, who, postgres, openbao, address)
    for path in others.crds():
        who.kubectl("apply", "--server-side", "-f", str(path))
    who.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    _set_up_openbao(made)
    _write_overlay(made)
    for team in TEAMS:
        set_up_team(made, team)
    return made


def install(made: Installation) -> None:
    """Install, step by step as docs/operations.md says."""
    who = made.administrator
    who.kubectl("apply", "-k", "crds")
    who.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    who.types(_manual("namespace.yaml"))
    who.kubectl("apply", "-k", "../overlay")
    (who.checkout / "username.txt").write_text(made.postgres.admin.name)
    (who.checkout / "password.txt").write_text(made.postgres.admin.password)
    who.types(_manual(f"create secret generic {ADMIN_SECRET}"))


def _manual(words: str) -> str:
    """Return the one block of the manual that has these words."""
    (found,) = {block.text for block in blocks(OPERATIONS) if words in block.text}
    return found


def _write_overlay(made: Installation) -> None:
    overlay = made.directory / "overlay"
    overlay.mkdir()
    kustomization = yaml.safe_load(_manual("# kustomization.yaml"))
    kustomization["components"] = ["../database-hooks/metacontroller/components/druid"]
    kustomization["patches"] += others.patches(made.administrator.checkout, made.address)
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    text = _manual("# settings.yaml").replace(OPENBAO, made.openbao.address)
    settings = yaml.safe_load(text)
    (container,) = settings["spec"]["template"]["spec"]["containers"]
    container["env"].append({"name": "SWEEP_SECONDS", "value": SWEEP_SECONDS})
    (overlay / "settings.yaml").write_text(yaml.safe_dump(settings))
    (overlay / "postgresql.crt").write_text(made.postgres.ca_file.read_text())
    (overlay / "openbao.crt").write_text(made.openbao.ca_file.read_text())


def _set_up_openbao(made: Installation) -> None:
    """Let the program log in; OpenBao is outside of the cluster and needs a token to ask it."""
    who, checkout = made.administrator, made.administrator.checkout
    (checkout / "database-hooks.hcl").write_text(_manual("secret/metadata/postgresql"))
    who.kubectl("create", "serviceaccount", "openbao", "-n", "default")
    who.kubectl(
        *("create", "clusterrolebinding", "openbao", "--clusterrole=system:auth-delegator"),
        "--serviceaccount=default:openbao",
    )
    who.types("umask 077; kubectl create token openbao -n default >reviewer.jwt")
    script = _manual("bao auth enable kubernetes")
    host = "kubernetes_host=https://kubernetes.default.svc"
    assert host in script
    here = f"kubernetes_host={made.control_plane.url} token_reviewer_jwt=@reviewer.jwt"
    ca = f"kubernetes_ca_cert=@{made.control_plane.ca_file}"
    who.types(script.replace(host, f"{here} {ca}"))


def set_up_team(made: Installation, team: str) -> None:
    """Make a namespace whose SecretStore may read the credentials of its own Tenants."""
    who, checkout = made.administrator, made.administrator.checkout
    (checkout / f"{team}.hcl").write_text(_manual("postgresql/team-a/*").replace("team-a", team))
    who.types(
        f"bao policy write {team} {team}.hcl",
        f"bao write auth/kubernetes/role/{team} token_policies={team}"
        " bound_service_account_names=external-secrets"
        f" bound_service_account_namespaces={team}",
        f"kubectl create namespace {team}",
        f"kubectl create serviceaccount external-secrets -n {team}",
        f"kubectl create configmap openbao-ca -n {team} --from-file=ca.crt={made.openbao.ca_file}",
    )
    store = _manual("kind: SecretStore").replace("team-a", team)
    who.kubectl("apply", "-f", "-", stdin=store.replace(OPENBAO, made.openbao.address))

"""What is applied is accepted whole, and shown as the manual says."""

from __future__ import annotations

import pytest
import yaml

from tests.app.running import until
from tests.docs.pages import ROOT, rows, section
from tests.e2e.apiserver.installation import NAMESPACE, Installation


def test_the_pods_are_admitted_to_a_restricted_namespace(installation: Installation) -> None:
    who = installation.administrator

    def pods() -> list[str]:
        found = who.get("pods", "-n", NAMESPACE)["items"]
        return [pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in found]

    until(lambda: pods() == [NAMESPACE, NAMESPACE])


@pytest.mark.parametrize("directory", ["crds", "../overlay"])
def test_applying_again_changes_nothing(installation: Installation, directory: str) -> None:
    assert installation.administrator.kubectl("diff", "-k", directory) == ""


@pytest.mark.parametrize("kind", ["postgresqlinstance", "postgresqltenant"])
def test_every_field_of_the_manual_is_explained(installation: Installation, kind: str) -> None:
    page = ROOT / "docs" / f"{kind.replace('sql', 'sql-')}.md"
    fields = [row[0].strip("`") for row in rows(section(page, "Fields"))]
    assert fields
    for field in fields:
        said = installation.administrator.kubectl("explain", f"{kind}.spec.{field}")
        assert said.partition("DESCRIPTION:")[2].strip(), field


@pytest.mark.parametrize("component", ["tls", "without-postgresql", "init-sql", "init-sql-pgo"])
def test_a_component_is_accepted(installation: Installation, component: str) -> None:
    """On top of the overlay, as an upgrade that the server validates and does not make."""
    who = installation.administrator
    who.kubectl("apply", "-k", "crds/init-sql")
    directory = installation.directory / component
    directory.mkdir()
    kustomization = {
        "resources": ["../database-hooks/metacontroller/base"],
        "components": [f"../database-hooks/metacontroller/components/{component}"],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    said = who.kubectl("apply", "--dry-run=server", "-k", f"../{component}")
    assert [line for line in said.splitlines() if not line.endswith("(server dry run)")] == []

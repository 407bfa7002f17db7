"""Settings that pages, components and the chart name are settings."""

import re
from pathlib import Path

import pytest
import yaml

from hooks.settings import SETTINGS
from tests.docs.pages import ROOT, label, spans
from tests.manifests.manifests import COMPONENTS, load

NAMES = {setting.name for setting in SETTINGS}
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("druid-ingestion", "database-init-sql")]
PAGES += [ROOT / "docs" / "troubleshooting.md"]
OF_OTHERS = {"RUNNING", "SUCCESS", "FAILED", "LOST", "DATASOURCE", "EXTERNAL", "CONFIG"} | {
    *("WRITE", "READ", "EXTERN", "BEGIN", "COMMIT")
}
"""Words of Druid and of SQL."""


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_a_setting_on_a_page_is_one(page: Path) -> None:
    words = {span for span in spans(page) if re.fullmatch(r"[A-Z]+(_[A-Z]+)*", span)}
    assert words - OF_OTHERS - NAMES == set()


def test_a_setting_in_a_component_is_one() -> None:
    set_here = {
        variable["name"]
        for path in COMPONENTS.rglob("*.yaml")
        if not path.read_text().startswith("- op:")  # a JSON patch holds no object
        for document in load(path)
        if document["kind"] == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
        for variable in container.get("env", ())
    }
    assert set_here >= {"RESOURCES", "INIT_SQL_IMAGE", "TLS_CERT_FILE"}
    assert set_here - NAMES == set()


def test_a_setting_in_the_chart_is_one() -> None:
    chart = ROOT / "charts" / "database-hooks"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    helpers = (chart / "templates" / "_helpers.tpl").read_text()
    set_here = {*values["postgresql"]["settings"], *values["settings"]}
    set_here |= set(re.findall(r'(?:set \$settings|dict) "([A-Z_]+)"', helpers))
    assert set_here - NAMES == set()

"""What the pages name is there: pages, headings, files, make targets, commands."""

import re
from pathlib import Path

import pytest

from hooks.__main__ import main
from hooks.telemetry import Metrics
from tests.docs.pages import OPERATIONS, ROOT, anchors, blocks, code, label, links, pages, section

_PATH = re.compile(
    r"(?<![\w./-])((?:hooks|tests|docs|crds|charts|samples|metacontroller|bench|\.ci)/[\w./-]*\w"
    r"|(?:crds|samples)(?![\w.-])"
    r"|Makefile|Dockerfile|LICENSE|pyproject\.toml|requirements(?:-dev)?\.txt|[A-Z]+\.md)"
)
_TARGET = re.compile(r"\bmake ([a-z][\w-]*)")
_COMMAND = re.compile(r"\bhooks (serve|sync|finalize|customize|replay|check|sandbox|registry)\b")


def local_links(page: Path) -> list[str]:
    return [link for link in links(page) if "://" not in link]


@pytest.mark.parametrize("page", pages(), ids=label)
def test_a_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    broken = []
    for link in local_links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=label)
def test_a_heading_is_there_once_so_that_links_are_clear(page: Path) -> None:
    found = anchors(page)
    assert sorted(set(found)) == sorted(found)


@pytest.mark.parametrize("page", pages(), ids=label)
def test_a_file_that_is_named_is_there(page: Path) -> None:
    named = {path for piece in code(page) for path in _PATH.findall(piece)}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=label)
def test_a_target_that_is_named_is_in_the_makefile(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    named = {target for piece in code(page) for target in _TARGET.findall(piece)}
    assert named - targets == set()


@pytest.mark.parametrize("page", pages(), ids=label)
def test_a_command_that_is_named_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in sorted({name for piece in code(page) for name in _COMMAND.findall(piece)}):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert (command, ended.value.code) == (command, 0)
    assert capsys.readouterr().err == ""


def test_the_metrics_that_are_named_are_those_that_there_are() -> None:
    named = set(re.findall(r"`(hooks_\w+)`", section(OPERATIONS, "Watching")))
    assert {name.removesuffix("_total") for name in named} == {
        family.name for family in Metrics().registry.collect()
    }


def test_the_readme_shows_the_demo_first_and_the_tests_second() -> None:
    commands = [block.text.strip() for block in blocks(ROOT / "README.md", "sh")]
    assert commands[:2] == ["make demo", "make test"]

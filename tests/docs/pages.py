"""Reads the documentation: its headings, links, code blocks and tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPERATIONS = ROOT / "docs" / "operations.md"

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    language: str
    text: str


@cache
def pages() -> tuple[Path, ...]:
    """Return every page."""
    return (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))


@cache
def text(page: Path) -> str:
    """Return the text of a page."""
    return page.read_text(encoding="utf-8")


def label(page: Path) -> str:
    """Return how a page is called from the root."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the code blocks of a page in these languages, or all, without their indentation."""
    return _blocks(text(page), languages)


def _blocks(source: str, languages: tuple[str, ...]) -> list[Block]:
    found = []
    for indent, language, body in _FENCE.findall(source):
        if not languages or language in languages:
            lines = (line.removeprefix(indent) for line in body.splitlines())
            found.append(Block(language, "\n".join(lines) + "\n"))
    return found


def prose(page: Path) -> str:
    """Return a page without its code blocks."""
    return _FENCE.sub("", text(page))


def spans(page: Path) -> list[str]:
    """Return what is set as code inside sentences and tables."""
    return [" ".join(span.split()) for span in _SPAN.findall(prose(page))]


def code(page: Path) -> Iterator[str]:
    """Yield everything that somebody may type or look for."""
    yield from spans(page)
    yield from (block.text for block in blocks(page, "sh", "text"))


def links(page: Path) -> list[str]:
    """Return where the links of a page lead."""
    return _LINK.findall(prose(page))


def headings(page: Path, level: int | None = None) -> list[str]:
    """Return the headings of a page, or those of one level."""
    return [
        title
        for marks, title in _HEADING.findall(prose(page))
        if level is None or len(marks) == level
    ]


def anchors(page: Path) -> list[str]:
    """Return what links may lead to inside a page, spelled as GitHub does."""
    return [
        re.sub(r"[^\w\- ]", "", title.lower().replace("`", "")).replace(" ", "-")
        for title in headings(page)
    ]


def section(page: Path, title: str) -> str:
    """Return a page from a heading to the next of the same or a higher level."""
    source = text(page)
    start = re.search(rf"^(#+) {re.escape(title)}$", source, re.M)
    assert start is not None, title
    rest = source[start.end() :]
    # A comment in a block of code looks like a heading.
    blank = _FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), rest)
    end = re.search(rf"^#{{1,{len(start[1])}}} ", blank, re.M)
    return rest[: end.start()] if end else rest


def sql_blocks(title: str) -> list[str]:
    """Return the SQL of a section of docs/operations.md."""
    return [block.text for block in _blocks(section(OPERATIONS, title), ("sql",))]


def commands(title: str) -> list[str]:
    """Return what a section of docs/operations.md says to type into a shell."""
    return [block.text for block in _blocks(section(OPERATIONS, title), ("sh",))]


def rows(part: str) -> list[list[str]]:
    """Return the cells of the body of every table in a part of a page."""
    lines = [line for line in part.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {index for index, line in enumerate(lines) if set(line) <= set("|- ")}
    return [row for index, row in enumerate(cells) if index not in rules and index + 1 not in rules]

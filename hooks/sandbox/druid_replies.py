"""The bodies in which Druid and its web server answer, for the double of Druid.

Idea: what a client has to cope with is the form: JSON, plain text that claims to be JSON, the web
server's error page, an empty body. Each form was seen on a real server and has its function here.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

Document = dict[str, Any]

_JSON = "application/json"
_PAGE = "text/html;charset=iso-8859-1"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer; its content type is empty when there is none."""

    status: int
    body: bytes = b""
    content_type: str = ""
    challenge: bool = False


class Refusal(Exception):
    """Ends the handling of a request with an answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply)
        self.reply = reply


def given(value: object, *, status: int = 200) -> Reply:
    """Answer with JSON."""
    return Reply(
        status, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), _JSON
    )


def error(status: int, text: str) -> Reply:
    """Answer with the object that most refusals are."""
    return given({"error": text}, status=status)


def druid_exception(
    status: int, text: str, *, code: str = "general", category: str = "INVALID_INPUT"
) -> Reply:
    """Answer with the object that newer refusals are."""
    return given(exception(text, code=code, category=category), status=status)


def exception(
    text: str, *, code: str = "general", category: str = "INVALID_INPUT", persona: str = "USER"
) -> Document:
    """Return the object that newer refusals are."""
    return {
        "error": "druidException",
        "errorCode": code,
        "persona": persona,
        "category": category,
        "errorMessage": text,
        "context": {},
    }


def plain(status: int, text: str) -> Reply:
    """Answer with plain text."""
    return Reply(status, text.encode(), "text/plain")


def mislabelled(status: int, text: str) -> Reply:
    """Answer with plain text that the header calls JSON."""
    return Reply(status, text.encode(), _JSON)


def page(status: int, text: str, *, trace: str = "") -> Reply:
    """Answer with the web server's error page, the exception's stack trace included."""
    title = f"{status} {html.escape(text)}"
    lines = [
        "<html>",
        f"<head>\n<title>Error {title}</title>\n</head>",
        f"<body><h2>HTTP ERROR {title}</h2>",
    ]
    if trace:
        lines.append(f"<h3>Caused by:</h3><pre>{html.escape(f'{text}{trace}')}</pre>")
    lines.append("</body>\n</html>\n")
    return Reply(status, "\n".join(lines).encode("iso-8859-1", "xmlcharrefreplace"), _PAGE)


def thrown(text: str) -> Reply:
    """Answer as the web server does when an exception gets that far."""
    trace = "\n\tat org.apache.druid.Double.handle(Double.java:1)\n\tat java.base/java.lang.Thread"
    return page(500, text, trace=trace)

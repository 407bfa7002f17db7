"""The kinds of values that settings have, each with what is said of a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"


def split_commas(text: object) -> object:
    """Split a text at its commas; anything else is judged by its type."""
    return [part.strip() for part in text.split(",")] if isinstance(text, str) else text


def _like(pattern: str, what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {what}")
        return text

    return AfterValidator(check)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return path


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be an http:// or https:// URL")
    if "@" in parts.netloc or "?" in text or "#" in text or re.search(r"\s", text):
        raise ValueError("must hold no user, query, fragment or space")
    return text.rstrip("/")


def _path(text: str) -> str:
    path = text.strip("/")
    if not all(re.fullmatch(r"(?!\.\.?$)[A-Za-z0-9._-]+", part) for part in path.split("/")):
        raise ValueError("must be names of letters, digits, '.', '_' or '-' between slashes")
    return path


_AMOUNT = r"\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h)"
Address = Annotated[str, _like(r"\S+:\d{1,5}", "host:port")]
Namespace = Annotated[str, _like(_DNS_LABEL, "the name of a namespace")]
ObjectName = Annotated[
    str, _like(rf"(?=.{{1,253}}$){_DNS_LABEL}(\.{_DNS_LABEL})*", "the name of an object")
]
Identifier = Annotated[
    str, _like(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", "a lower-case identifier that is not pg_...")
]
Duration = Annotated[
    str, _like(rf"(?=.*[1-9])({_AMOUNT})+", "a Go duration above zero, as 1h or 90s")
]
Role = Annotated[str, _like(r"(?!public$)[^\0]{1,63}", "the name of a role, not public")]
Roles = Annotated[tuple[Role, ...], BeforeValidator(split_commas)]
File = Annotated[Path, AfterValidator(_file)]
Url = Annotated[str, AfterValidator(_url)]
PathInside = Annotated[str, AfterValidator(_path)]
Image = Annotated[str, _like(r"[^\s@:/][^\s]*", "the name of an image")]
Quantity = Annotated[
    str, _like(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?", "a Kubernetes quantity, as 128Mi")
]

"""Build an image from its Dockerfile without Docker.

Idea: every stage is the upper directory of an overlay mount over what it comes FROM, and each step
runs in a mount namespace of its own, which ends with it: nothing stays mounted. A stage is kept as
long as its instructions and the files that it copies stay the same.

Limits: any Debian-based FROM, `python:3.13-slim-bookworm` too, stands on one base made by
debootstrap: bookworm with its own Python, 3.11. Needs root.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.node import oci
from tests.e2e.node.dockerfile import NotUnderstood, Stage, Step, stages
from tests.e2e.node.places import HERE, IMAGES, ROOT
from tests.e2e.node.programs import run

PAUSE = "localhost/pause:1"
APP = "registry.example.internal/database-hooks:0.1.0"
POSTGRES = "registry.example.internal/postgres:15"

_RELEASE = "bookworm"
_PACKAGES = "ca-certificates,python-is-python3,python3,python3-venv"
_DOCUMENTATION = ("usr/share/doc", "usr/share/locale", "usr/share/man")

# Every RUN and COPY: a writable view, and what it takes to reach package indexes as we do.
_INSIDE = """
set -e
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/view"
mount -t proc proc "$2/view/proc"
mount --bind /dev "$2/view/dev"
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
  mount --bind "$file" "$2/view$file"
done
cd "$2/view"
"""


@dataclass(frozen=True, slots=True)
class Layers:
    """Directories, the lowest first, and what they were made from."""

    paths: tuple[Path, ...]
    key: str


@dataclass(frozen=True, slots=True)
class Source:
    """The one file or directory that a COPY copies, and what tells it from another."""

    path: Path
    origin: str


def build_all() -> list[Path]:
    """Return the archives of all images that the node needs."""
    return [
        build(PAUSE, HERE / "pause.Dockerfile", HERE),
        build(APP, ROOT / "Dockerfile", ROOT),
        build(POSTGRES, HERE / "postgres.Dockerfile", HERE),
    ]


def build(name: str, dockerfile: Path, context: Path) -> Path:
    """Return the archive of an image, made anew if anything it is made from has changed.

    Args:
        name: A full reference, with registry and tag.
        dockerfile: The file.
        context: What its COPY copies from.
    """
    short = name.rpartition("/")[2].partition(":")[0]
    home = IMAGES / short
    home.mkdir(parents=True, exist_ok=True)
    made: dict[str, Layers] = {}
    found = stages(dockerfile.read_text())
    for number, stage in enumerate(found):
        layers = _build_stage(stage, home / str(number), context, made)
        made[stage.name or str(number)] = layers
    archive, config = home / "image.tar", found[-1].config
    key = _hash(name, layers.key, repr(config))
    if not _is_kept(home, key):
        (home / "key").unlink(missing_ok=True)
        oci.pack(archive, name, layers.paths, config)
        (home / "key").write_text(key)
    return archive


def _base() -> Layers:
    home = IMAGES / "base"
    key = _hash(_RELEASE, _PACKAGES)
    root = home / "root"
    if not _is_kept(home, key):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        options = ("--variant=minbase", f"--include={_PACKAGES}")
        run("debootstrap", *options, _RELEASE, str(root), timeout=900)
        for directory in (*_DOCUMENTATION, "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(root / directory)
            (root / directory).mkdir()
        for file in ("etc/resolv.conf", "etc/hosts", "etc/hostname"):
            (root / file).write_text("")
        (home / "key").write_text(key)
    return Layers((root,), key)


def _build_stage(stage: Stage, home: Path, context: Path, made: dict[str, Layers]) -> Layers:
    below = _below(stage, made)
    if not stage.steps:
        return below
    sources = [_source(step, context, made) for step in stage.steps]
    origins = [source.origin if source else "" for source in sources]
    key = _hash(below.key, repr(stage.steps), repr(stage.environment), *origins)
    if not _is_kept(home, key):
        shutil.rmtree(home, ignore_errors=True)
        for directory in ("upper", "work", "view"):
            (home / directory).mkdir(parents=True)
        for step, source in zip(stage.steps, sources, strict=True):
            script = _script(step, stage, source)
            _run_inside(script, below, home)
        (home / "key").write_text(key)
    return Layers((*below.paths, home / "upper"), key)


def _below(stage: Stage, made: dict[str, Layers]) -> Layers:
    if stage.base in made:
        return made[stage.base]
    if stage.base.startswith(("python:3.", "debian:")) and _RELEASE in stage.base:
        return _base()
    raise NotUnderstood(f"FROM {stage.base}")


def _run_inside(script: str, below: Layers, home: Path) -> None:
    lower = ":".join(str(path) for path in reversed(below.paths))
    namespace = ("--mount", "--propagation", "private", "/bin/sh", "-c")
    run("unshare", *namespace, _INSIDE + script, "sh", lower, str(home), timeout=900)


def _script(step: Step, stage: Stage, source: Source | None) -> str:
    """Return what a step does, seen from outside of the root directory that it changes."""
    made = f"mkdir -p {shlex.quote(step.workdir.lstrip('/') or '.')}\n"
    if source is not None:
        return made + _copy(step, source)
    if step.kind == "RUN":
        variables = [f"{name}={value}" for name, value in stage.environment.items()]
        command = f"cd {shlex.quote(step.workdir)} && {step.text}"
        return made + shlex.join(["chroot", ".", "env", "-i", *variables, "sh", "-ec", command])
    return made


def _copy(step: Step, source: Source) -> str:
    target = Path(step.workdir, step.text.split()[-1])
    if step.text.endswith(("/", " .")):
        target /= source.path.name
    words = ("cp", "-r", "--preserve=mode,links", str(source.path), str(target).lstrip("/"))
    return f"{shlex.join(words)}\nfind {words[-1]} -name __pycache__ -prune -exec rm -r {{}} +"


def _source(step: Step, context: Path, made: dict[str, Layers]) -> Source | None:
    """Return what a COPY copies, None for another step."""
    if step.kind != "COPY":
        return None
    match = re.fullmatch(r"(?:--from=(\S+) )?(\S+) \S+", step.text)
    if match is None:
        raise NotUnderstood(f"COPY {step.text}")
    stage, inside = match[1], match[2].lstrip("/")
    if stage:
        return Source(made[stage].paths[-1] / inside, made[stage].key)
    return Source(context / inside, _content(context / inside))


def _content(source: Path) -> str:
    files = [source] if source.is_file() else sorted(source.rglob("*"))
    return _hash(
        *(
            f"{path.relative_to(source)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
            for path in files
            if path.is_file() and "__pycache__" not in path.parts
        )
    )


def _is_kept(home: Path, key: str) -> bool:
    file = home / "key"
    return file.exists() and file.read_text() == key


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()

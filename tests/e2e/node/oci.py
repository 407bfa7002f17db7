"""Pack folders as the layers of an OCI image archive, which `ctr images import` reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import stat
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Config = Mapping[str, Any]
"""An image's configuration: Env, Entrypoint, Cmd, User, WorkingDir."""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_PLATFORM = {"os": "linux", "architecture": _MACHINES[platform.machine()]}
_TYPE = "application/vnd.oci.image"
# Filled by whoever runs the container.
_EMPTY = ("dev", "proc", "sys")


def pack(archive: Path, name: str, layers: Sequence[Path], config: Config) -> None:
    """Write an image; `name` is a full reference, with its registry and tag.

    A layer may be the upper directory of an overlay mount.
    """
    files = [archive.with_name(f"{archive.name}.{number}") for number in range(len(layers))]
    try:
        for file, layer in zip(files, layers, strict=True):
            _write_layer(file, layer)
        _write_archive(archive, name, files, config)
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def _write_archive(archive: Path, name: str, layers: Sequence[Path], config: Config) -> None:
    digests = [_digest(layer) for layer in layers]
    image = _json(_PLATFORM | {"config": config, "rootfs": {"type": "layers", "diff_ids": digests}})
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _described("config.v1+json", image),
            "layers": [
                {"mediaType": f"{_TYPE}.layer.v1.tar", "digest": digest, "size": _size(layer)}
                for digest, layer in zip(digests, layers, strict=True)
            ],
        }
    )
    described = _described("manifest.v1+json", manifest) | {"platform": _PLATFORM}
    named = described | {"annotations": {"io.containerd.image.name": name}}
    with tarfile.open(archive, "w") as tar:
        _add(tar, "index.json", _json({"schemaVersion": 2, "manifests": [named]}))
        _add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        for blob in (image, manifest):
            _add(tar, _blob("sha256:" + hashlib.sha256(blob).hexdigest()), blob)
        for digest, layer in zip(digests, layers, strict=True):
            tar.add(layer, _blob(digest))


def read(archive: Path) -> tuple[str, str]:
    """Return the name of the image in an archive, and its digest."""
    with tarfile.open(archive) as tar:
        first = tar.next()
        index = tar.extractfile(first) if first else None
        if index is None:
            raise ValueError(f"{archive} is empty")
        [manifest] = json.load(index)["manifests"]
    return manifest["annotations"]["io.containerd.image.name"], manifest["digest"]


def _write_layer(file: Path, layer: Path) -> None:
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in _walk(layer):
            inside = str(path.relative_to(layer))
            status = path.lstat()
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                # What the overlay file system calls a whiteout: the file below is deleted.
                tar.addfile(
                    tarfile.TarInfo(str(path.relative_to(layer).with_name(f".wh.{path.name}")))
                )
            elif not stat.S_ISSOCK(status.st_mode):
                tar.add(path, inside, recursive=False)
                if _opaque(path):
                    tar.addfile(tarfile.TarInfo(f"{inside}/.wh..wh..opq"))


def _walk(layer: Path) -> Iterator[Path]:
    """Yield everything in the layer, a directory before what is in it, in a fixed order."""
    for directory, folders, files in os.walk(layer):
        here = Path(directory)
        folders.sort()
        yield from (here / name for name in sorted(folders + files))
        if here == layer:
            folders[:] = [name for name in folders if name not in _EMPTY]


def _opaque(path: Path) -> bool:
    """Whether a directory hides the one below it."""
    if path.is_symlink() or not path.is_dir():
        return False
    return "trusted.overlay.opaque" in os.listxattr(path)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _described(kind: str, blob: bytes) -> dict[str, Any]:
    digest = "sha256:" + hashlib.sha256(blob).hexdigest()
    return {"mediaType": f"{_TYPE}.{kind}", "digest": digest, "size": len(blob)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))

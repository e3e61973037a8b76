"""The interpreter behind a pyenv shim, found as pyenv finds it, without the two shells a shim starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_MARK = b"pyenv"
_FILE = ".python-version"


def behind(python: str, *, environ: Mapping[str, str], cwd: Path) -> str | None:
    """The program a shim would run; None for what is no shim, or where only pyenv itself knows (`system`, `3.11`)."""
    shim = Path(python)
    root = shim.parent.parent
    if shim.parent.name != "shims" or not (root / "versions").is_dir():
        return None
    try:
        with shim.open("rb") as file:
            if _MARK not in file.read(512):
                return None
    except OSError:
        return None
    for version in _versions(root, environ, cwd):
        program = root / "versions" / version / "bin" / shim.name
        if version in ("system", "") or not (root / "versions" / version).is_dir():
            return None
        if os.access(program, os.X_OK):
            return str(program)
    return None


def _versions(root: Path, environ: Mapping[str, str], cwd: Path) -> list[str]:
    if chosen := environ.get("PYENV_VERSION"):
        return chosen.split(":")
    for place in (*(folder / _FILE for folder in (cwd, *cwd.parents)), root / "version"):
        try:
            return [
                line.strip()
                for line in place.read_text(encoding="utf-8").splitlines()
                if line.strip()[:1] not in ("", "#")
            ]
        except (OSError, UnicodeDecodeError):
            continue
    return []

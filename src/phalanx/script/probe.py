"""Asking an interpreter for its search path: one short start, remembered until the program file changes."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

#: An interpreter that takes longer is broken, or a wrapper that waits for something.
_PATIENCE = 10.0

#: Python 2 answers too and is told apart. `-c` puts "" first: the working folder is no installation.
_QUESTION = (
    "import json, sys; sys.stdout.write(json.dumps("
    "[sys.executable, '.'.join(map(str, sys.version_info[:3])), [p for p in sys.path if p]]))"
)
#: What else the answer of a compiled interpreter depends on.
_MATTERS = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE", "HOME")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Probed:
    """What an interpreter is: its own path (past any wrapper), version, and where it looks for packages."""

    executable: str
    version: str
    folders: tuple[str, ...]


def probe(python: str, *, environ: Mapping[str, str], cwd: Path) -> Probed | None:
    """Start it once with a tiny program; None where it is no Python, fails, or takes 10 s.

    A compiled program is remembered in `$XDG_CACHE_HOME/phalanx/interpreters` by path, size and time of change. A
    script in its place (a pyenv shim, a wrapper) may answer anything by folder and day, and is asked each time.
    """
    entry = _entry(python, environ)
    if entry is not None and (known := _remembered(entry)):
        return known
    answer = _ask(python, environ, cwd)
    if answer is not None and entry is not None:
        _remember(entry, answer)
    return answer


def _ask(python: str, environ: Mapping[str, str], cwd: Path) -> Probed | None:
    try:
        done = subprocess.run(
            [python, "-c", _QUESTION],
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=True,
        )
        return _read(json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _read(answer: object) -> Probed | None:
    match answer:
        case [str(executable), str(version), list(folders)]:
            return Probed(executable=executable, version=version, folders=tuple(map(str, folders)))
    return None


def _entry(python: str, environ: Mapping[str, str]) -> Path | None:
    try:
        real = Path(python).resolve(strict=True)
        with real.open("rb") as file:
            if file.read(2) == b"#!":
                return None
        stat = real.stat()
    except OSError:
        return None
    key = json.dumps([python, str(real), stat.st_mtime_ns, stat.st_size, *(environ.get(name) for name in _MATTERS)])
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '')}/.cache"
    if not cache.startswith("/"):
        return None
    return Path(cache) / "phalanx" / "interpreters" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _remembered(entry: Path) -> Probed | None:
    try:
        return _read(json.loads(entry.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _remember(entry: Path, answer: Probed) -> None:
    """A cache that cannot be written costs a start each time, and nothing else."""
    text = json.dumps([answer.executable, answer.version, answer.folders])
    passing = entry.with_name(f"{entry.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        passing.write_text(text, encoding="utf-8")
        passing.replace(entry)

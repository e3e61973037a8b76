"""`phalanx fix`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from phalanx.cli import findings, sources
from phalanx.errors import InputError
from phalanx.tfconfig import formats
from phalanx.tfconfig.fix import Fixed
from phalanx.tfconfig.fix import fix as mend
from phalanx.tfconfig.quote import printable


def fix(
    *inputs: sources.Inputs,
    strategy: findings.Strategy = "auto",
    in_place: Annotated[
        bool, Parameter(negative=(), help="Rewrite the files; the original stays beside each as FILE.bak.")
    ] = False,
    fail_on: findings.FailOn = "error",
) -> int:
    """Print a TF_CONFIG without the faults that have one right answer.

    The corrected JSON goes to standard output, what was changed and what
    is left to standard error. Exit code 0: nothing grave is left, 1:
    something at or above --fail-on is, 2: the input cannot be read.

    For example:
      phalanx fix tf_config.json > fixed.json
      phalanx fix nodes/ --in-place
      export TF_CONFIG="$(phalanx fix)"
    """
    given = sources.read(inputs)
    if in_place:
        originals = _files(given)
    elif len(given) > 1:
        raise InputError(f"fix prints one TF_CONFIG; {len(given)} were given", hint="to rewrite them all: --in-place")
    code = 0
    for number, source in enumerate(given):
        if source.text is None:
            raise InputError("TF_CONFIG is not set", hint="give a file, or `-` for standard input")
        fixed = mend(source.text, strategy=strategy)
        if not in_place:
            findings.write(fixed.text if fixed.text.endswith("\n") else fixed.text + "\n")
        elif fixed.changes:
            rewrite(originals[number], fixed.text)
        _tell(source, fixed)
        code = max(code, findings.code(fixed.left, fail_on))
    return code


def _files(given: Sequence[sources.Source]) -> list[Path]:
    """The files behind the sources; links are followed. Raises InputError before any of them is touched."""
    files: list[Path] = []
    for source in given:
        if source.file is None or not source.file.is_file():
            raise InputError(
                f"{printable(source.path)} is no file that could be rewritten", hint="leave --in-place out"
            )
        path = source.file.resolve()
        if path in files:
            raise InputError(f"{printable(str(path))} is given twice", hint="one of the names may be a link to it")
        if os.path.lexists(_backup(path)):
            raise InputError(
                f"{printable(str(_backup(path)))} exists already: the original would be lost", hint="move it away first"
            )
        files.append(path)
    return files


def rewrite(path: Path, text: str) -> None:
    """Replace a file at one stroke, its first bytes kept as FILE.bak; mode kept. Raises InputError, then unchanged."""
    backup = _backup(path)
    try:
        _keep(path, backup)
    except OSError as error:
        raise InputError(f"cannot keep the original as {printable(str(backup))}: {error.strerror}") from error
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).chmod(path.stat().st_mode & 0o7777)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        backup.unlink(missing_ok=True)  # `path` is as it was
        raise InputError(f"cannot write {printable(str(path))}: {error.strerror}; it is as it was") from error


def _keep(path: Path, backup: Path) -> None:
    """Never over an existing file: a second name for the same bytes, a copy where the file system knows no links."""
    try:
        os.link(path, backup)
    except FileExistsError:
        raise
    except OSError:
        data = path.read_bytes()
        with backup.open("xb") as stream:
            try:
                stream.write(data)
                stream.flush()
            except OSError:
                backup.unlink(missing_ok=True)  # half of it would bar the way next time
                raise


def _backup(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def _tell(source: sources.Source, fixed: Fixed) -> None:
    lines = [f"{source.path}: {change}" for change in fixed.changes] or [f"{source.path}: nothing to change"]
    left = formats.as_text(fixed.left, {source.path: fixed.text})
    sys.stderr.write("".join(f"{printable(line)}\n" for line in lines) + left)

"""`phalanx init`: a job.yaml to start from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import cyclopts

from phalanx.cli.values import file_or_stdout


def init(
    script: str,
    /,
    *args: str,
    output: Annotated[
        Path, cyclopts.Parameter(name=("--output", "-o"), converter=file_or_stdout, allow_leading_hyphen=True)
    ] = Path("job.yaml"),
) -> int:
    """Write a commented job.yaml for a script, its strategy read from the script where it names one.

    Never overwrites. Nothing of the script is run.

    Examples:
      phalanx init train.py
      phalanx init -o small.yaml -- train.py --epochs 3

    Parameters
    ----------
    script
        The script, or any program.
    args
        Its arguments.
    output
        The file to write; `-` prints it.
    """
    from phalanx.errors import InputError  # noqa: PLC0415 - not for --help
    from phalanx.job.command import mistakes, script_at  # noqa: PLC0415 - as above
    from phalanx.job.starter import starter  # noqa: PLC0415 - as above
    from phalanx.script.strategy import strategy_of  # noqa: PLC0415 - as above

    words = [script, *args]
    for _, said in mistakes(words, cwd=Path.cwd(), path=os.environ.get("PATH", "")):
        raise InputError(said)
    at = script_at(words)
    found = strategy_of(Path(words[at])) if at is not None else None
    text = starter(["python", *words] if at == 0 else words, strategy=found, folder=_start(output))
    if str(output) == "-":
        sys.stdout.write(text)
        return 0
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as wrong:
        raise InputError(f"{output} exists and stays as it is", hint="name another file: -o other.yaml") from wrong
    except OSError as wrong:
        raise InputError(
            f"{output} cannot be written: {wrong.strerror}", hint="name a file in a folder that is there: -o job.yaml"
        ) from wrong
    print(f"{output} written; phalanx plan {output} shows what it would start")
    return 0


def _start(output: Path) -> str:
    """This folder, as seen from that of the file: what a job.yaml says is relative to the file."""
    if str(output) == "-":
        return "."
    return os.path.relpath(Path.cwd(), os.path.realpath(output.parent))

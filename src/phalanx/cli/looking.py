"""What `advise` and `bench` share: the look at a script, announced, and their flags."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import cyclopts

from phalanx.cli.values import whole
from phalanx.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from phalanx.sizing.look import Seen

#: What is beyond is a slip, and would be reckoned for hours.
_LARGEST = 10**9
_MOST = {"workers": 10**5, "ps": 10**5, "hosts": 10**5, "cores": 10**5, "ids": 10**6}


def option(group: cyclopts.Group) -> cyclopts.Parameter:
    """A flag whose default stands in its own words."""
    return cyclopts.Parameter(group=group, negative=(), show_default=False)


def number(group: cyclopts.Group) -> cyclopts.Parameter:
    """The same for a whole number; see `positive`."""
    return cyclopts.Parameter(group=group, show_default=False, converter=whole)


def looked_at(verb: Callable[..., int], command: tuple[str, ...], python: str | None, patience: float) -> Seen:
    """A look at a script for this verb, announced, since it runs the user's code. Raises InputError."""
    from phalanx.job import command as commands  # noqa: PLC0415 - not for --help
    from phalanx.script.interpreter import choose  # noqa: PLC0415 - as above
    from phalanx.script.strategy import strategy_of  # noqa: PLC0415 - as above
    from phalanx.sizing.look import FLAGS, look  # noqa: PLC0415 - as above

    cwd = Path.cwd()
    if wrong := commands.mistakes(command, cwd=cwd, path=os.environ.get("PATH", "")):
        raise InputError(wrong[0][1])
    at = commands.script_at(command)
    if at is None:
        raise InputError(f"{command[0]} is no Python script, so it cannot be looked at", hint=FLAGS)
    argv = command
    if commands.wants_interpreter(command):
        argv = commands.with_interpreter(command, choose(python, environ=os.environ, cwd=cwd).path)
    script = cwd / command[at]
    if not script.is_file():
        raise InputError(f"{command[at]} is no regular file, so it cannot be looked at", hint=FLAGS)
    named = strategy_of(script)
    sys.stderr.write(
        f"phalanx: running {command[at]} until its first training step (at most {patience:g} s); nothing is trained\n"
    )
    flags = [name.replace("_", "-") for name in inspect.signature(verb).parameters if name != "command"]
    if passed := unread(command[at + 1 :], flags, script.read_text(encoding="utf-8", errors="replace")):
        sys.stderr.write(
            f"phalanx: {', '.join(passed)} went to {command[at]}, which does not name it: "
            f"if phalanx was meant, write it before {command[at]}\n"
        )
    return look(
        argv,
        cwd=cwd,
        environ=os.environ,
        strategy=named[0] if named else "none",
        patience=patience,
        flags=flags,
    )


def unread(words: Sequence[str], flags: Collection[str], script: str) -> list[str]:
    """Flags of phalanx among the script's words that its text nowhere names, so that it may pass them by in silence."""
    found = [word[2:].partition("=")[0] for word in words if word.startswith("--")]
    # A method of that name, as `batch` of a dataset, reads no flag.
    return [
        f"--{name}"
        for name in found
        if name in flags and not re.search(rf"(?<![.\w]){name.replace('-', '[-_]')}\b", script)
    ]


def positive(**numbers: int | None) -> None:
    """At least 1, and no more than any training has, where they are given. Raises InputError naming the flag."""
    for name, given in numbers.items():
        if given is None:
            continue
        if given < 1:
            raise InputError(f"--{name}: must be at least 1, not {given}")
        if given > _MOST.get(name, _LARGEST):
            raise InputError(f"--{name}: must be at most {_MOST.get(name, _LARGEST)}, not {given}")

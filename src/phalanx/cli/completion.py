"""`phalanx completion`: the script by which a shell completes verbs, flags, files and runs."""

from __future__ import annotations

import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import cyclopts

from phalanx.cli.values import choice

if TYPE_CHECKING:
    from phalanx.cli.shells import Option, Verb

#: Paths that are text to Python, since a name on PATH or a bucket may stand there too.
_PATHS = ("--python", "--checkpoint")


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], cyclopts.Parameter(converter=choice)], /) -> int:
    """Print the completion script of a shell; nothing is installed.

    It completes verbs, flags and their values, files, and the names of your runs, and starts nothing to do so.

    Examples:
      source <(phalanx completion bash)
      source <(phalanx completion zsh)
      phalanx completion fish > ~/.config/fish/completions/phalanx.fish

    Parameters
    ----------
    shell
        The shell to complete for.
    """
    from phalanx.cli import shells  # noqa: PLC0415 - not for --help

    write = {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[shell]
    sys.stdout.write(write(verbs()))
    return 0


def verbs() -> tuple[Verb, ...]:
    """Every verb of the command line with its flags, as the scripts need them."""
    from phalanx.cli.main import VERBS, app  # noqa: PLC0415 - main knows this verb by name only
    from phalanx.cli.shells import Option, Verb  # noqa: PLC0415 - not for --help

    made = app()
    found = []
    for name, summary in ((name, summary) for group in VERBS.values() for name, summary in group.items()):
        arguments = list(made[name].assemble_argument_collection(parse_docstring=True))
        flags = [argument for argument in arguments if argument.names[0].startswith("-")]
        words = [argument for argument in arguments if argument.index is not None]
        found.append(
            Verb(
                name=name,
                summary=summary,
                options=(*map(_option, flags), Option(names=("--help",), summary="Say what it does and takes")),
                choices=next((argument.get_choices() or () for argument in words), ()),
            )
        )
    return tuple(found)


def _option(argument: cyclopts.Argument) -> Option:
    from phalanx.cli.shells import Option  # noqa: PLC0415 - not for --help

    kinds = typing.get_args(argument.hint) or (argument.hint,)
    return Option(
        names=tuple(argument.names),
        summary=" ".join((argument.parameter.help or "").split()).partition(". ")[0].removesuffix("."),
        valued=bool not in kinds,
        choices=argument.get_choices(force=True) or (),
        path=Path in kinds or argument.names[0] in _PATHS,
    )

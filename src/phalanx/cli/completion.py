"""`phalanx completion`: the script by which a shell completes verbs and flags."""

from __future__ import annotations

from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the completion script of a shell; nothing is installed.

    Examples:
      source <(phalanx completion bash)
      phalanx completion fish > ~/.config/fish/completions/phalanx.fish

    Parameters
    ----------
    shell
        The shell to complete for.
    """
    from phalanx.cli.main import app  # noqa: PLC0415 - main knows this verb by name only

    print(app().generate_completion(shell=shell))
    return 0

"""Flags of phalanx that stood after the script and so went to it: what follows the script is the script's."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

#: What `phalanx run` takes, here by name since the command line is far above; a test holds the two together.
_NAMES = """
workers min-workers max-workers ps chief no-chief evaluator workers-per-host gpus-per-worker hosts pin no-pin
gpu-growth no-gpu-growth on context namespace image python ports start-timeout silence hang finish max-restarts
standbys strategy keras checkpoint ignore-check preflight no-preflight name override force-tf-config detach runs quiet
json
"""
FLAGS = frozenset(_NAMES.split())

#: As argparse, and as click, getopt and absl refuse what they do not know; then the words in question.
_REFUSED = re.compile(
    r"(?:(?P<script>[^\s/]+\.py): )?(?:[\w./-]+: |FATAL |Flags parsing error: )*"
    r"(?:unrecognized arguments: "
    r"|(?:unrecognized|unknown|no such|unexpected)(?: command line)? (?:argument|option|flag)s?:? (?=['-]))"
    r"(?P<words>.+)",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?:--|')([a-z][a-z_-]+)")


def strayed(lines: Iterable[str], flags: Collection[str] = FLAGS) -> str:
    """What to do about flags that the script refused and phalanx knows; empty where there is none.

    `flags`: those of the verb, without their dashes.
    """
    for line in lines:
        refused = _REFUSED.match(line.strip())
        if refused is None:
            continue
        ours = [f"--{name}" for word in _FLAG.findall(refused["words"]) if (name := word.replace("_", "-")) in flags]
        if ours:
            return misplaced(ours, refused["script"] or "the script")
    return ""


def misplaced(ours: Sequence[str], script: str) -> str:
    """Where flags of phalanx belong that stood after this script."""
    one = "is a flag of phalanx: write it" if len(ours) == 1 else "are flags of phalanx: write them"
    return f"{', '.join(ours)} {one} before {script}, since what follows belongs to the script"

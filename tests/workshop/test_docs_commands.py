"""Every phalanx command that a page shows is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from phalanx.cli import jobflags
from phalanx.cli import main as cli

ROOT = Path(__file__).parents[2]
#: architecture.md is left out: it shows what is designed, and says so.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "design" and "_build" not in page.parts
    ),
]

_INLINE = re.compile(r"`(phalanx [a-z]+ [^`\n]*)`")
_COMMAND = re.compile(r"\s*(\S*/)?phalanx [a-z]")


def block_lines(text: str) -> list[str]:
    """The lines of indented blocks, and of fenced ones that name no other language."""
    lines, fence = [], None
    for line in text.splitlines():
        if line.startswith("```"):
            fence = None if fence is not None else line[3:]
        elif fence in {"", "text", "console"} or (fence is None and line.startswith("    ")):
            lines.append(line)
    return lines


def commands(page: Path) -> list[str]:
    """The phalanx commands of a page, in blocks and between backticks; a placeholder or an ellipsis is no command."""
    text = page.read_text(encoding="utf-8")
    found = [line.strip() for line in block_lines(text) if _COMMAND.match(line)]
    found += [command for command in _INLINE.findall(text) if not re.search(r"…|\b[A-Z]{3,}\b", command)]
    return [re.sub(r"\s+(#|>|\|).*", "", command) for command in found if "--help" not in command]


CASES = sorted({(str(page.relative_to(ROOT)), command) for page in PAGES for command in commands(page)})


@pytest.mark.parametrize(("page", "command"), CASES)
def test_a_command_in_the_docs_is_one_that_phalanx_takes(page, command):
    words = shlex.split(command)[1:]
    app = cli.app()
    verb, bound, _ = app.parse_args(jobflags.delimit(app, words), exit_on_error=False, print_error=False)
    assert callable(verb), page
    assert bound is not None


def test_the_pages_show_every_verb():
    shown = {command.split()[1] for _, command in CASES}
    assert {verb for verbs in cli.VERBS.values() for verb in verbs} <= shown

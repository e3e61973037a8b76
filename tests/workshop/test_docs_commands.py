"""Every phalanx command that a page shows is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from phalanx.cli import main as cli

ROOT = Path(__file__).parents[2]
#: architecture.md is left out: it shows what is designed, and says so.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "examples/digits/README.md")),
    *(
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if page.parent.name != "design" and "_build" not in page.parts
    ),
]

_BLOCK = re.compile(r"^(?:```(?:text|shell|console)?\n(.*?)^```|((?:    .*\n?)+))", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(phalanx [a-z]+ [^`]*)`")


def commands(page: Path) -> list[str]:
    """The phalanx commands of a page, in blocks and between backticks; a placeholder or an ellipsis is no command."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in _BLOCK.findall(text) for line in "\n".join(block).splitlines()]
    found = [line.strip() for line in lines if re.match(r"\s*(\S*/)?phalanx [a-z]", line)]
    found += [command for command in _INLINE.findall(text) if not re.search(r"…|\b[A-Z]{3,}\b|--help", command)]
    return [re.sub(r"\s+(#|>|\|).*", "", command) for command in found if "--help" not in command]


CASES = sorted({(str(page.relative_to(ROOT)), command) for page in PAGES for command in commands(page)})


@pytest.mark.parametrize(("page", "command"), CASES)
def test_a_command_in_the_docs_is_one_that_phalanx_takes(page, command):
    words = shlex.split(command)[1:]
    app = cli.app()
    verb, bound, _ = app.parse_args(cli.delimit(app, words), exit_on_error=False, print_error=False)
    assert callable(verb), page
    assert bound is not None


def test_the_pages_show_every_verb():
    shown = {command.split()[1] for _, command in CASES}
    assert {verb for verbs in cli.VERBS.values() for verb in verbs} <= shown

"""The reference pages, written from the code at each build: `{from-code} errors` and its like.

What the code says is said once, there; a page that cannot be made fails the build.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import io
import pkgutil
import re
from typing import TYPE_CHECKING, Any, ClassVar

import rich.console
from sphinx.util.docutils import SphinxDirective

import phalanx
from phalanx import errors, events
from phalanx.cli import main as cli
from phalanx.decide.exits import KNOWN_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from docutils import nodes
    from sphinx.application import Sphinx

HELP_WIDTH = 100


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells may hold code in backticks, and are plain text otherwise."""
    lines = [head, ["---"] * len(head), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plain(text: str) -> str:
    """Markdown that shows `text` as it is, but for code in backticks."""
    parts = " ".join(text.split()).replace("|", "\\|").split("`")
    escaped = [re.sub(r"([*_<\[\]])", r"\\\1", part) if number % 2 == 0 else part for number, part in enumerate(parts)]
    return "`".join(escaped)


def sentence(thing: object) -> str:
    """A docstring as one paragraph."""
    return " ".join((inspect.getdoc(thing) or "").split())


def every_module() -> None:
    """Import all of phalanx, so that each subclass is known; but for what acts when imported, or lies inside a task."""
    for module in pkgutil.walk_packages(phalanx.__path__, "phalanx."):
        if not module.name.startswith(("phalanx.__main__", "phalanx.runtime.")) and ".inside." not in module.name:
            importlib.import_module(module.name)


def below(base: type) -> list[type]:
    """The subclasses of a class, each after its parent."""
    return [kind for child in base.__subclasses__() for kind in (child, *below(child))]


def rules() -> str:
    """The table of offline rules on one TF_CONFIG, and of those on several."""
    from phalanx.tfconfig.agree import RULES as SEVERAL  # noqa: PLC0415 - a page is made from what it needs and no more
    from phalanx.tfconfig.check import RULES as ONE  # noqa: PLC0415 - as above

    parts = []
    for title, rows in ("One TF_CONFIG", ONE), ("Several nodes", SEVERAL):
        cells = [
            [f"`{rule.id}`", rule.severity.value, rule.message, rule.consequence, rule.fix, rule.source]
            for rule in rows
        ]
        parts += [f"## {title}", table(["rule", "severity", "says", "TensorFlow would", "fix", "source"], cells)]
    return "\n\n".join(parts)


def script_rules() -> str:
    """The table of rules on scripts."""
    from phalanx.script.check import RULES  # noqa: PLC0415 - as above

    cells = [
        [f"`{rule.id}`", rule.severity.value, rule.message, rule.consequence, rule.fix, rule.source] for rule in RULES
    ]
    return table(["rule", "severity", "says", "what would follow", "fix", "source"], cells)


def preflight() -> str:
    """The table of checks before step one."""
    from phalanx.decide.preflight import ROWS  # noqa: PLC0415 - as above

    rows = [[f"`{row.id}`", "ends the run" if row.fatal else "warns", row.looks, row.fix, row.source] for row in ROWS]
    return table(["check", "does", "looks whether", "fix", "source"], rows)


def error_classes() -> str:
    """Every error class: its exit code, and what it says unless told better."""
    every_module()
    kinds = [errors.PhalanxError, *below(errors.PhalanxError)]
    return table(
        ["error", "exit code", "says"],
        [[f"`{kind.__name__}`", str(kind.exit_code), sentence(kind)] for kind in kinds],
    )


def known_errors() -> str:
    """What TensorFlow and Python print, and what to do about it."""
    rows = [[f"`{known.pattern.pattern}`", known.kind.value, known.advice, known.source] for known in KNOWN_ERRORS]
    return table(["text (a regular expression)", "kind", "what to do", "source"], rows)


def event_kinds() -> str:
    """Every event: its name in events.jsonl, its fields, what it means."""
    rows = []
    for name, kind in events.EVENTS.items():
        fields = [field.name for field in dataclasses.fields(kind) if field.name != "time"]
        rows.append([f"`{name}`", sentence(kind), ", ".join(f"`{field}`" for field in fields)])
    return table(["event", "means", "fields besides `time`"], rows)


def declaration() -> str:
    """job.yaml from its JSON Schema: one table for each nested object."""
    from phalanx.job.schema import schema  # noqa: PLC0415 - as above

    document = schema()
    parts = ["## The job", _properties(document)]
    for name, part in sorted(document.get("$defs", {}).items()):
        parts += [f"## {name}", part.get("description", ""), _properties(part)]
    return "\n\n".join(parts)


def _properties(part: dict[str, Any]) -> str:
    rows = [
        [f"`{name}`", _kind(value), value.get("description", "")] for name, value in part.get("properties", {}).items()
    ]
    return table(["key", "value", "meaning"], rows)


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return value["$ref"].rsplit("/", 1)[-1]
    if "const" in value or "enum" in value:
        return " or ".join(f"`{word}`" for word in value.get("enum", [value.get("const")]))
    if "anyOf" in value or "oneOf" in value:
        kinds = [_kind(choice) for choice in value.get("anyOf", value.get("oneOf", [])) if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}))}"
    kinds = [*value.get("patternProperties", {}).values(), value.get("additionalProperties")]
    if value.get("type") == "object" and isinstance(kinds[0], dict):
        return f"map of {_kind(kinds[0])}"
    return str(value.get("type", "any"))


def command_line() -> str:
    """The help of each verb, as the terminal shows it."""
    pages = []
    for group, verbs in cli.VERBS.items():
        pages.append(f"## {group}")
        for verb in verbs:
            pages += [f"### phalanx {verb}", f"```text\n{help_of([verb]).strip()}\n```"]
    return "\n\n".join(pages)


def help_of(words: list[str]) -> str:
    """What `phalanx … --help` prints."""
    screen = io.StringIO()
    console = rich.console.Console(file=screen, width=HELP_WIDTH, color_system=None)
    cli.app()([*words, "--help"], console=console, exit_on_error=False)
    return "\n".join(line.rstrip() for line in screen.getvalue().splitlines())


PAGES: dict[str, Callable[[], str]] = {
    "rules": rules,
    "script-rules": script_rules,
    "preflight": preflight,
    "errors": error_classes,
    "known-errors": known_errors,
    "events": event_kinds,
    "job": declaration,
    "cli": command_line,
}


class FromCode(SphinxDirective):
    """`{from-code} NAME`: the page of that name in PAGES."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Make the page's Markdown and hand it to the parser of the page it stands on."""
        return self.parse_text_to_nodes(PAGES[self.arguments[0]](), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx's entry point."""
    app.add_directive("from-code", FromCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

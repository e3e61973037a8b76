"""`phalanx explain`."""

from __future__ import annotations

import json as jsonlib
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from phalanx.cli import findings, sources
from phalanx.cli.values import whole
from phalanx.tfconfig import formats
from phalanx.tfconfig.drawing import draw
from phalanx.tfconfig.explain import explain as tell
from phalanx.tfconfig.parse import parse
from phalanx.tfconfig.quote import printable

if TYPE_CHECKING:
    from phalanx.tfconfig.explain import Explanation


def explain(
    *inputs: sources.Inputs,
    strategy: findings.Strategy = "auto",
    tf_version: findings.TfVersion = None,
    json: findings.Json = False,
    width: Annotated[int, Parameter(help="Columns of the drawing.", converter=whole)] = 80,
    ascii_only: Annotated[bool, Parameter(name="--ascii", negative=(), help="Draw with + - | only.")] = False,
) -> int:
    """Say in plain words what a TF_CONFIG means.

    Who leads, who trains, who waits for whom, what starts where, which
    strategy accepts it. Exit code 0: explained, 1: it means nothing (the
    findings say why), 2: the input cannot be read.

    For example:
      phalanx explain
      phalanx explain tf_config.json --strategy ps
      phalanx explain node1.json --json
    """
    given = sources.read(inputs)
    plain = ascii_only or not _boxes()
    told: list[dict[str, Any]] = []
    code = 0
    for number, source in enumerate(given):
        parsed = parse(source.text, path=source.path)
        if parsed.config is None:
            sys.stderr.write(formats.as_text(parsed.findings, {source.path: source.text or ""}))
            code = 1
            continue
        explained = tell(parsed.config, strategy=strategy, tf_version=tf_version)
        if json:
            told.append({"path": source.path} | explained.to_json())
            continue
        if len(given) > 1:
            gap = "\n" if number else ""
            findings.write(f"{gap}== {printable(source.path)} ==\n\n")
        findings.write(_page(explained, width=width, ascii_only=plain))
    if json:
        findings.write(jsonlib.dumps({"configs": told}, indent=2) + "\n")
    return code


def _page(explained: Explanation, *, width: int, ascii_only: bool) -> str:
    lines = [draw(explained, width=width, ascii_only=ascii_only)]
    for title, sentences in explained.sections():
        lines.append(title)
        lines += [_wrap(printable(sentence), width) for sentence in sentences]
    return "\n".join(lines) + "\n"


def _wrap(sentence: str, width: int) -> str:
    return textwrap.fill(
        sentence,
        max(width, 40),
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _boxes() -> bool:
    try:
        "┌★".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True

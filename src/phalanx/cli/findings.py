"""How the TF_CONFIG verbs are asked and how they answer: shared options, the printed findings, the exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import phalanx
from phalanx.cli.values import choice
from phalanx.script.check import RULES as SCRIPT_RULES
from phalanx.tfconfig import formats
from phalanx.tfconfig.agree import RULES as AGREE_RULES
from phalanx.tfconfig.check import RULES as CHECK_RULES
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.quote import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from phalanx.tfconfig.finding import Finding

Strategy = Annotated[
    Literal["auto", "mwms", "ps", "estimator"],
    Parameter(
        name="--strategy",
        converter=choice,
        help="What the script uses: MultiWorkerMirroredStrategy, ParameterServerStrategy, tf.estimator; auto: ps where "
        "the cluster has parameter servers, else mwms.",
    ),
]
TfVersion = Annotated[
    str | None, Parameter(name="--tf-version", help="The TensorFlow that will read it, such as 2.21.")
]
Format = Annotated[
    Literal["text", "json", "github", "sarif"],
    Parameter(
        name="--format", converter=choice, help="text for people, json for programs, github and sarif for pipelines."
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative=(), help="Short for --format json.")]
FailOn = Annotated[
    Literal["error", "warning", "info", "never"],
    Parameter(name="--fail-on", converter=choice, help="Exit with 1 when something at least this grave is found."),
]


def answer(
    findings: Sequence[Finding], texts: Mapping[str, str], *, output: str, fail_on: str, fine: Sequence[str] = ()
) -> int:
    """Print findings in the format `output`; `fine` are the lines of text when there are none. Returns 0, or 1."""
    if output == "json":
        shown = formats.as_json(findings)
    elif output == "github":
        shown = formats.as_github(findings)
    elif output == "sarif":
        rules = {rule.id: rule.message for rule in CHECK_RULES} | {rule.id: rule.message for rule in AGREE_RULES}
        rules |= {rule.id: rule.message for rule in SCRIPT_RULES}
        shown = formats.as_sarif(findings, rules, version=phalanx.__version__)
    else:
        shown = formats.as_text(findings, texts, colour=colourful()) or "".join(f"{printable(line)}\n" for line in fine)
    write(shown)
    return code(findings, fail_on)


def code(findings: Sequence[Finding], fail_on: str) -> int:
    """1 where a finding is at least as grave as `fail_on`, else 0."""
    if fail_on == "never":
        return 0
    return int(any(finding.severity.weight >= Severity(fail_on).weight for finding in findings))


def write(text: str) -> None:
    """Print `text`, whatever the encoding of standard output."""
    sys.stdout.write(encodable(text))


def colourful() -> bool:
    """Whether to print colours: a terminal that does not refuse them (NO_COLOR, TERM=dumb)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def encodable(text: str) -> str:
    """`text` with what standard output cannot encode (LANG=C) as `?`, so that printing never fails."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)

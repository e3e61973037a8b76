"""What is wrong with a script, found before it runs: from its text, the modules beside it, and what is installed."""

from __future__ import annotations

import ast
import dataclasses
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from phalanx.agent.preflight.imports import LONGEST, Reading, Source, read
from phalanx.agent.preflight.start import Start, start_of_script
from phalanx.plan.outline import Interpreter
from phalanx.script.installed import Installed
from phalanx.script.interpreter import folders_of
from phalanx.script.module import Module, module_of
from phalanx.script.program import Program, Roles
from phalanx.script.rule import Hit, Rule, judge
from phalanx.script.rules import (
    chief,
    cluster,
    context,
    data,
    functional,
    keras3,
    packages,
    python,
    saving,
    scope,
    source,
    tensorflow1,
)
from phalanx.tfconfig.finding import Finding, Place, Severity
from phalanx.tfconfig.quote import sentence
from phalanx.tfconfig.rule import in_order

_OWN = (
    *context.RULES,
    *cluster.RULES,
    *source.RULES,
    *chief.RULES,
    *scope.RULES,
    *keras3.RULES,
    *functional.RULES,
    *tensorflow1.RULES,
    *data.RULES,
    *saving.RULES,
    *packages.RULES,
    *python.RULES,
)


def _unknown(program: Program) -> Iterator[Hit]:
    for module in program.modules:
        for line, ids in module.ignored.items():
            for rule in sorted(ids - IDS):
                yield Hit(module, ast.Pass(lineno=line, col_offset=0), f"no rule is called {rule!r}")


#: The one table: a row a rule. The documentation and SARIF are made from it.
RULES: tuple[Rule, ...] = (
    *_OWN,
    Rule(
        id="script-syntax",
        severity=Severity.ERROR,
        message="The script is no Python of the version that will run it.",
        find=lambda _: (),  # there is no tree to look at: see `_broken`
        consequence="SyntaxError at the start of every task.",
        fix="mend the line, or name the Python that it was written for: --python PATH",
        source="Python",
    ),
    Rule(
        id="script-unread",
        severity=Severity.INFO,
        message="The script is too long or nested too deep to be read.",
        find=lambda _: (),  # as above
        consequence="Nothing is known about it; it runs as ever.",
        fix="look it over yourself, or move what is generated into a file of data",
        source="-",
    ),
    Rule(
        id="ignore-unknown",
        severity=Severity.INFO,
        message="A comment silences a rule that does not exist.",
        find=_unknown,
        consequence="It silences nothing.",
        fix="the id stands in [brackets] at the end of a finding: # phalanx: ignore[shared-save-path]",
        source="-",
    ),
)
IDS = frozenset(rule.id for rule in RULES)
#: What the preflight of a run finds out better: on each host, by the interpreter there.
OF_HOSTS = frozenset({"script-syntax", "module-missing", "callback-package"})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Around:
    """What is known besides the text: the interpreter with its packages' folders, variables, the job, the arguments.

    `mends`: whether the job it is read for makes `fit` of Keras 3 work from inside; None where it is read for none.
    """

    interpreter: Interpreter | None = None
    folders: tuple[str, ...] = ()
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)
    roles: Roles | None = None
    arguments: tuple[str, ...] | None = None
    mends: bool | None = None


def surroundings(
    interpreter: Interpreter | None,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    roles: Roles | None = None,
    arguments: Sequence[str] | None = None,
    mends: bool | None = None,
) -> Around:
    """What surrounds a script that this interpreter runs; its packages are looked up on the disk."""
    folders = folders_of(interpreter, environ=environ, cwd=cwd) if interpreter is not None else ()
    words = tuple(arguments) if arguments is not None else None
    return Around(interpreter=interpreter, folders=folders, environ=environ, roles=roles, arguments=words, mends=mends)


def check(script: Path | Start, around: Around, *, shown: str = "") -> tuple[Finding, ...]:
    """Judge a script, or a module that Python starts, by every rule; findings by file and place. Never runs any of it.

    `shown` is the script's name in findings. Of what is no Python, that is told where our own version would run it:
    another may know what ours does not. Raises OSError where the script itself cannot be read.
    """
    start = script if isinstance(script, Start) else start_of_script(script)
    reading, path = read(start), shown or str(start.file)
    main = module_of(reading.files[0], path=path)
    if main is None:
        return tuple(_broken(reading.files[0], path, around))
    try:
        return judged(main, tuple(_beside(reading, start, path)), around)
    except (RecursionError, MemoryError):  # what Python runs may be deeper than the walk through it can go
        return (_without_tree("script-unread", "the script was not read: it is nested too deep", path),)


def _broken(script: Source, shown: str, around: Around) -> Iterator[Finding]:
    if len(script.data) > LONGEST:
        size = f"{len(script.data) / 1e6:.1f} MB"
        yield _without_tree("script-unread", f"the script was not read: it is {size} long", shown)
        return
    ours = sys.version_info[:2]
    if around.interpreter is None or version(around.interpreter.version) != ours:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(script.data)
    except SyntaxError as error:
        where = Place(line=error.lineno or 1, column=error.offset or 1)
        yield _without_tree("script-syntax", f"{error.msg} (Python {ours[0]}.{ours[1]})", shown, where)
    except (RecursionError, MemoryError, SystemError):
        yield _without_tree("script-unread", "the script was not read: it is nested too deep", shown)
    except ValueError:
        return  # no text at all


def _without_tree(rule_id: str, message: str, shown: str, where: Place | None = None) -> Finding:
    rule = next(rule for rule in RULES if rule.id == rule_id)
    return Finding(
        id=rule.id,
        severity=rule.severity,
        message=sentence(message),
        consequence=rule.consequence,
        fix=rule.fix,
        source=rule.source,
        path=shown,
        place=where or Place(line=1, column=1),
    )


def judged(main: Module, others: Sequence[Module], around: Around) -> tuple[Finding, ...]:
    """The same for modules that are parsed already."""
    found = around.interpreter
    program = Program(
        main=main,
        others=tuple(others),
        tensorflow=version(found.tensorflow) if found else None,
        keras=version(found.keras) if found else None,
        installed=Installed(folders=around.folders) if around.folders else None,
        legacy=around.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"),
        mends=around.mends,
        roles=around.roles,
        arguments=around.arguments,
    )
    findings = judge(RULES, program)
    paths = {module.path: number for number, module in enumerate(program.modules)}
    return tuple(sorted(in_order(findings), key=lambda finding: paths[finding.path]))


def without(findings: Sequence[Finding], ids: Collection[str]) -> tuple[Finding, ...]:
    """Those of other rules."""
    return tuple(finding for finding in findings if finding.id not in ids)


def version(text: str) -> tuple[int, ...] | None:
    """`2.21.0` as (2, 21); None for no version."""
    parts = text.split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(part.isdigit() for part in parts) else None  # noqa: PLR2004 - major and minor


def _beside(reading: Reading, start: Start, shown: str) -> Iterator[Module]:
    """The modules of the program's own that it imports, shown as it is itself where they lie in the same folder."""
    home, above = start.file.parent, Path(shown).parent
    for _ in range(start.depth):
        home, above = home.parent, above.parent
    home = home if start.package else start.folders[0]
    for beside in (*reading.files[1:], *reading.perhaps):
        near = beside.path.is_relative_to(home)
        module = module_of(beside, path=str(above / beside.path.relative_to(home) if near else beside.path))
        if module is not None:
            yield module

"""`phalanx check`: scripts by their own reader, everything else as TF_CONFIG."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from phalanx.cli import findings, sources
from phalanx.cli.values import whole
from phalanx.errors import InputError
from phalanx.tfconfig.check import check as find
from phalanx.tfconfig.finding import Finding
from phalanx.tfconfig.model import TfConfig
from phalanx.tfconfig.parse import parse
from phalanx.tfconfig.quote import brief

if TYPE_CHECKING:
    from phalanx.agent.preflight.start import Start
    from phalanx.script.check import Around
    from phalanx.script.program import Roles

_SCRIPT = ".py"


def check(
    *inputs: Annotated[
        str,
        Parameter(
            name="INPUT",
            help="A script (.py), a module (-m package.module), or a TF_CONFIG: a file, `-` for standard input, or a "
            "folder with a file per node. Without any: $TF_CONFIG.",
            allow_leading_hyphen=True,
        ),
    ],
    strategy: findings.Strategy = "auto",
    tf_version: findings.TfVersion = None,
    expect_cluster: Annotated[
        bool, Parameter(negative=(), help="A missing or empty cluster is an error: TensorFlow would train alone.")
    ] = False,
    hosts: Annotated[
        int | None, Parameter(help="How many machines the job has; localhost is an error above 1.", converter=whole)
    ] = None,
    python: Annotated[
        str | None, Parameter(help="The interpreter that will run the script (found: see `phalanx plan`).")
    ] = None,
    workers: Annotated[
        int | None, Parameter(help="How many workers will run the script (more than one).", converter=whole)
    ] = None,
    chief: Annotated[
        bool | None, Parameter(negative="--no-chief", help="One chief beside the workers, or none.")
    ] = None,
    ps: Annotated[
        int, Parameter(help="How many parameter servers the cluster will have; implies one chief.", converter=whole)
    ] = 0,
    evaluator: Annotated[bool, Parameter(negative=(), help="Whether an evaluator will run it too.")] = False,
    ignore: Annotated[
        tuple[str, ...], Parameter(negative=(), help="A rule, by id, to leave out (may be repeated).")
    ] = (),
    format_: findings.Format = "text",
    json: findings.Json = False,
    fail_on: findings.FailOn = "error",
) -> int:
    """Find what is wrong with a script or a TF_CONFIG before TensorFlow hangs on it.

    A script is read, never run: which strategy it builds and when, what
    the installed TensorFlow and Keras do not have, where it saves, how it
    reads its data. A comment silences a rule where it stands:
    # phalanx: ignore[shared-save-path]

    Each TF_CONFIG is checked by itself; `phalanx agree` compares the files
    of several nodes. With $TF_CONFIG the proxy settings beside it are
    judged too. Exit code 0: fine, 1: something at or above --fail-on was
    found, 2: the input cannot be read.

    For example:
      phalanx check train.py
      phalanx check train.py --workers 4 --chief --python .venv/bin/python
      phalanx check -m package.train --workers 2
      phalanx check train.py --ignore keras3-lr --fail-on warning
      phalanx check
      phalanx check tf_config.json --strategy ps --tf-version 2.21
      phalanx check nodes/ --expect-cluster --format sarif > findings.sarif
      kubectl exec pod-0 -- printenv TF_CONFIG | phalanx check -
    """
    if hosts is not None and hosts < 1:
        raise InputError(f"--hosts: must be at least 1, not {hosts}", hint="leave it out where you do not know")
    if workers is not None and workers < 0:
        raise InputError(f"--workers: must be at least 0, not {workers}", hint="leave it out where you do not know")
    if ps < 0:
        raise InputError(f"--ps: must be at least 0, not {ps}", hint="leave it out where there is none")
    _known(ignore)
    scripts, others = _programs(inputs)
    given = sources.read(others) if others or not inputs else ()
    found: list[Finding] = []
    fine: list[str] = []
    texts = {source.path: source.text for source in given if source.text is not None}
    around = _around(python, tf_version, _roles(workers, ps, chief=chief, evaluator=evaluator)) if scripts else None
    for name, start in scripts.items():
        assert around is not None  # noqa: S101 - made above
        found += _script(name, start, around, texts)
        fine.append(f"{name}: fine, {_builds(start)}")
    for source in given:
        parsed = parse(source.text, path=source.path)
        found += find(
            parsed,
            strategy=strategy,
            tf_version=tf_version,
            expect_cluster=expect_cluster,
            hosts=hosts,
            delivery="variable" if source.live else "file",
            environ=os.environ if source.live else None,
        )
        fine.append(f"{source.path}: fine, {_who(parsed.config)}")
    found = [finding for finding in found if finding.id not in ignore]
    return findings.answer(found, texts, output="json" if json else format_, fail_on=fail_on, fine=fine)


def _known(ignore: tuple[str, ...]) -> None:
    """A mistyped rule would ignore nothing."""
    from phalanx.job.nearest import nearest  # noqa: PLC0415 - not for --help
    from phalanx.script.check import IDS  # noqa: PLC0415 - as above
    from phalanx.tfconfig.check import RULES  # noqa: PLC0415 - as above

    rules = [*IDS, *(rule.id for rule in RULES)]
    for one in ignore:
        if one not in rules:
            near = nearest(one, rules)
            hint = f"did you mean {near}?" if near else "the id stands in [brackets] at the end of a finding"
            raise InputError(f"--ignore {one}: there is no such rule", hint=hint)


def _roles(workers: int | None, ps: int, *, chief: bool | None, evaluator: bool) -> Roles | None:
    """The tasks of the job that `run` makes of the same flags; None where they say nothing."""
    if workers is None and not (chief or ps or evaluator):
        return None
    from phalanx.job.advise import count_of  # noqa: PLC0415 - not for --help
    from phalanx.job.flags import Flags, apply  # noqa: PLC0415 - as above
    from phalanx.names import KNOWN_TYPES  # noqa: PLC0415 - as above
    from phalanx.script.program import Roles  # noqa: PLC0415 - as above

    flags = Flags(workers=workers, ps=ps or None, chief=chief, evaluator=evaluator)
    job = apply(None, flags, ("train.py",))
    counts = {kind: count_of(job, kind) for kind in KNOWN_TYPES}
    if not counts["chief"] + counts["worker"]:
        raise InputError("no chief and no worker: nobody would train", hint="--workers 1, or --chief")
    # One task alone gets no TF_CONFIG, and is nobody's chief.
    return Roles(worker=1) if sum(counts.values()) == 1 else Roles(**counts, serves=True)


def _around(python: str | None, tf_version: str | None, roles: Roles | None) -> Around:
    """The interpreter that `run` would take; another version of TensorFlow is not looked for in its packages."""
    from phalanx.script.check import surroundings  # noqa: PLC0415 - not for --help
    from phalanx.script.interpreter import choose  # noqa: PLC0415 - as above
    from phalanx.tfconfig.check import version  # noqa: PLC0415 - as above

    interpreter = choose(python, environ=os.environ, cwd=Path.cwd())
    around = surroundings(interpreter, environ=os.environ, cwd=Path.cwd(), roles=roles)
    if tf_version is None:
        return around
    major, minor = version(tf_version)
    if interpreter.tensorflow.startswith(f"{major}.{minor}."):
        return around
    keras = "2.15.0" if (major, minor) < (2, 16) else "3.15.0"
    other = dataclasses.replace(interpreter, tensorflow=f"{major}.{minor}.0", keras=keras)
    return dataclasses.replace(around, interpreter=other, folders=())


def _programs(inputs: tuple[str, ...]) -> tuple[dict[str, Start], list[str]]:
    """The scripts and the modules among the inputs, by the name of their file, and what is neither."""
    from phalanx.agent.preflight.start import start_of_module, start_of_script  # noqa: PLC0415 - not for --help

    found: dict[str, Start] = {}
    others: list[str] = []
    words = list(inputs)
    while words:
        word = words.pop(0)
        if word.endswith(_SCRIPT):
            found[word] = start_of_script(Path(word))
        elif word == "-m" and words:
            name = words.pop(0)
            start = start_of_module(name, cwd=Path.cwd(), environ=os.environ)
            if start is None:
                where = "start in the folder that its package lies in, or name that in PYTHONPATH"
                raise InputError(f"-m {brief(name, 200)}: no such module here", hint=where)
            found[_shown(start.file)] = start
        else:
            others.append(word)
    return found, others


def _shown(file: Path) -> str:
    return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)


def _script(name: str, start: Start, around: Around, texts: dict[str, str]) -> tuple[Finding, ...]:
    from phalanx.script.check import check as read  # noqa: PLC0415 - not for --help

    try:
        found = read(start, around, shown=name)
        for file in {name, *(finding.path for finding in found)}:
            texts[file] = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"cannot read {brief(name, 200)}: {error.strerror}", hint="name a script by a path that `ls` finds"
        ) from error
    return found


def _builds(script: Start) -> str:
    """`names MultiWorkerMirroredStrategy`."""
    from phalanx.script.strategy import strategy_of  # noqa: PLC0415 - not for --help

    named = strategy_of(script)
    return f"names {named[1]}" if named else "names no strategy of several processes"


def _who(config: TfConfig | None) -> str:
    """`worker:1, rank 1 of 4 replicas`."""
    if config is None or config.cluster is None or config.task is None:
        return "no cluster: TensorFlow trains alone"
    rank = config.cluster.rank(config.task)
    return str(config.task) + (
        f", rank {rank} of {len(config.cluster.replicas())} replicas" if rank is not None else ""
    )

"""The flags that `run`, `plan` and `preflight` share, and where they end: what follows the script is the script's."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Annotated, Literal

import cyclopts

from phalanx.cli.values import choice, whole
from phalanx.errors import InputError
from phalanx.job.flags import SUFFIXES, Flags
from phalanx.job.nearest import nearest
from phalanx.records.index import LAST, Index

#: Answered by the command line itself.
_ANSWERED = ("--help", "-h", "--version")

_SIZE = cyclopts.Group("Size", sort_key=1)
_PLACE = cyclopts.Group("Place", sort_key=2)
_TIME = cyclopts.Group("Patience", sort_key=3)
_TRAINING = cyclopts.Group("Training", sort_key=4)


def _flag(text: str, group: cyclopts.Group, name: str | None = None, negative: str | None = None) -> cyclopts.Parameter:
    return cyclopts.Parameter(name=name, help=text, group=group, negative=negative or (), show_default=False)


def _number(text: str, group: cyclopts.Group) -> cyclopts.Parameter:
    return cyclopts.Parameter(help=text, group=group, show_default=False, converter=whole)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobFlags:
    """Use as `flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags()`; each overrides job.yaml."""

    workers: Annotated[int | None, _number("How many workers (1).", _SIZE)] = None
    min_workers: Annotated[int | None, _number("The fewest workers to go on with (--workers).", _SIZE)] = None
    max_workers: Annotated[int | None, _number("The most workers to grow to (--workers).", _SIZE)] = None
    ps: Annotated[int | None, _number("How many parameter servers (0); implies one chief.", _SIZE)] = None
    chief: Annotated[bool | None, _flag("One chief beside the workers, or none.", _SIZE, negative="--no-chief")] = None
    evaluator: Annotated[bool, _flag("One evaluator beside the cluster.", _SIZE)] = False
    workers_per_host: Annotated[int | None, _number("At most this many workers on a host (evenly spread).", _SIZE)] = (
        None
    )
    gpus_per_worker: Annotated[int | None, _number("GPUs each worker may see (all); 0 hides them.", _SIZE)] = None
    hosts: Annotated[int | None, _number("Hosts to start on (1); on one machine they are simulated.", _PLACE)] = None
    pin: Annotated[
        bool | None, _flag("Cores of its own for each task of a host, or not.", _PLACE, negative="--no-pin")
    ] = None
    gpu_growth: Annotated[
        bool | None,
        _flag("GPU memory as it is needed (where tasks share a GPU).", _PLACE, negative="--no-gpu-growth"),
    ] = None
    on: Annotated[str | None, _flag("The engine (local).", _PLACE)] = None
    image: Annotated[str | None, _flag("The container image, for Kubernetes.", _PLACE)] = None
    python: Annotated[str | None, _flag("The interpreter for the script (found: see `phalanx plan`).", _PLACE)] = None
    ports: Annotated[str | None, _flag("Take ports from A-B only.", _PLACE)] = None
    start_timeout: Annotated[str | None, _flag("Until every task must listen (5m).", _TIME)] = None
    silence: Annotated[str | None, _flag("Without any sign of life, a task is stuck (2m, 0 never).", _TIME)] = None
    hang: Annotated[str | None, _flag("Without a step while others wait, a task hangs (10m, 0 never).", _TIME)] = None
    finish: Annotated[str | None, _flag("After the first task's good end, time for the others (10m).", _TIME)] = None
    max_restarts: Annotated[int | None, _number("Restarts after failures of one kind (3); 0: none.", _TIME)] = None
    standbys: Annotated[int | None, _number("Ready interpreters a host keeps for a restart (one a task).", _TIME)] = (
        None
    )
    strategy: Annotated[
        Literal["mwms", "ps", "estimator", "none", "auto"] | None,
        cyclopts.Parameter(help="What the script builds (auto).", group=_TRAINING, converter=choice),
    ] = None
    keras: Annotated[
        Literal["auto", "legacy", "off"] | None,
        cyclopts.Parameter(
            help="Keras 3: mended where it fails (auto), tf_keras instead (legacy), left as it is (off).",
            group=_TRAINING,
            converter=choice,
        ),
    ] = None
    checkpoint: Annotated[str | None, _flag("Folder of checkpoints, {checkpoint} in the command.", _TRAINING)] = None
    ignore_check: Annotated[
        tuple[str, ...],
        _flag(
            "A check of the preflight or a rule on the script, by id, that stops nothing (may be repeated).", _TRAINING
        ),
    ] = ()
    preflight: Annotated[
        bool | None, _flag("Look before TensorFlow starts, or do not.", _TRAINING, negative="--no-preflight")
    ] = None
    name: Annotated[str | None, _flag("The job's name (the script's).", _TRAINING)] = None
    override: Annotated[bool, _flag("Replace the TF_CONFIG of your environment.", _TRAINING)] = False
    force_tf_config: Annotated[bool, _flag("TF_CONFIG for a job of one task too.", _TRAINING)] = False

    def flags(self) -> Flags:
        """The same, as the job layer takes them."""
        return Flags(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Flags)})


def delimit(app: cyclopts.App, words: list[str]) -> list[str]:
    """Put `--` before the first positional word of these verbs, so that the script keeps its own flags.

    `words` are all words after `phalanx`. Which flags take a value is read from the verb itself. Words that have a
    `--` already, other verbs and unknown flags pass as they are; a job file has no flags of its own, so ours may
    follow it, and whatever else does is refused: InputError.
    """
    if words[:1] not in (["run"], ["plan"], ["preflight"], ["chaos"], ["advise"], ["bench"], ["render"]):
        return words
    known = app[words[0]].assemble_argument_collection()
    at, job_file = 1, False
    while at < len(words):
        word = words[at]
        if word == "--":
            return words
        if not word.startswith("-") or word == "-":
            if not word.endswith(SUFFIXES) and not (words[0] == "chaos" and names_a_run(word)):
                return [*words[:at], "--", *words[at:]]
            job_file = True
            at += 1
            continue
        at += 1
        option, equals, _ = word.partition("=")
        try:
            _, _, implied = known.match(option)
        except ValueError:
            if job_file and option not in _ANSWERED:
                raise _not_ours(option, known) from None
            continue  # cyclopts names it, with its nearest neighbour
        if not equals and implied is cyclopts.UNSET:
            at += 1
    return words


def names_a_run(word: str) -> bool:
    """Whether the first word of `chaos` is a run: `last`, one of this user's, or neither a file nor a program."""
    if Path(word).is_file() or word.endswith(".py"):
        return False
    return word == LAST or any(entry.run == word for entry in Index().all()) or shutil.which(word) is None


def _not_ours(option: str, known: cyclopts.ArgumentCollection) -> InputError:
    near = nearest(option, [name for argument in known for name in argument.names if name.startswith("-")])
    hint = "after a job.yaml come flags of phalanx; the script's arguments belong in its `command:`"
    return InputError(
        f"{option} is no flag of phalanx", hint=f"did you mean {near}? {hint[0].upper()}{hint[1:]}" if near else hint
    )

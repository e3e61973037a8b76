"""`phalanx chaos`: hurt a run on purpose, and say how it took that."""

from __future__ import annotations

import json as encoder
import os
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import cyclopts

from phalanx.cli import which
from phalanx.cli.jobflags import JobFlags, names_a_run
from phalanx.cli.values import read, whole
from phalanx.errors import InputError
from phalanx.names import an

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phalanx.chaos.fault import Fault
    from phalanx.chaos.plan import Cast
    from phalanx.plan.outline import Outline
    from phalanx.plan.size import Elastic
    from phalanx.records.index import Entry
    from phalanx.trial import Question

_FAULTS = cyclopts.Group("Faults", sort_key=0)
_RESULT = cyclopts.Group("Result", sort_key=4)


def _option(group: cyclopts.Group) -> cyclopts.Parameter:
    return cyclopts.Parameter(group=group, negative=(), show_default=False)


def chaos(
    *command: str,
    flags: Annotated[JobFlags, cyclopts.Parameter(name="*")] = JobFlags(),  # noqa: B008 - frozen
    fault: Annotated[tuple[str, ...], _option(_FAULTS)] = (),
    count: Annotated[int | None, cyclopts.Parameter(group=_FAULTS, converter=whole)] = None,
    seed: Annotated[int | None, cyclopts.Parameter(group=_FAULTS, converter=whole)] = None,
    every: Annotated[str, _option(_FAULTS)] = "5s",
    kinds: Annotated[str, _option(_FAULTS)] = "kill,stop",
    patience: Annotated[str, _option(_FAULTS)] = "2m",
    reference: Annotated[bool, cyclopts.Parameter(group=_RESULT, negative="--no-reference")] = True,
    compare: Annotated[str | None, _option(_RESULT)] = None,
    tolerance: Annotated[float, _option(_RESULT)] = 0.0,
    runs: Annotated[Path | None, _option(_RESULT)] = None,
    json: Annotated[bool, _option(_RESULT)] = False,
) -> int:
    """Hurt a run on purpose, and say how it took that.

    With the name of a run: do faults to it while it goes on. With what `phalanx run` takes: start it undisturbed, start
    it again with faults, and compare what the two leaders have printed. Faults come one at a time, each once the one
    before is over; the report says how long it took until the run noticed and until all tasks ran (and stepped) again.
    It also lies in the run's folder, as chaos.json.

    A fault is written KIND[:TARGET][=VALUE][@WHEN]; WHEN is seconds since the run trains (its first step, or where
    it tells of none, since all tasks run and listen), or /REGEX/ for the moment when the chief (else worker 0) has
    printed such a line. Kinds:

      kill:TASK              SIGKILL
      stop:TASK[=FOR]        SIGSTOP; with FOR, SIGCONT after so many seconds
      stall:TASK[=FOR]       alive, but its main thread sleeps (not in a run that goes on already; --hang is then 10s)
      refuse:TASK-TASK       their connections are reset, new ones refused
      half-open:TASK-TASK[=FOR]  what they send each other is lost without a word (3s)
      slow:TASK-TASK[=FOR]   at most 256 KiB a second between the two (3s)
      clock[:WHO][=BY]       the wall clock of agents and lead jumps (1h; not in a run that goes on already)
      disk[:WHO][=FOR]       agents and lead can write nothing, as on a full disk (2s); WHO: agent:N or lead
      agent:HOST[=FOR]       SIGKILL; with FOR, another one joins in its place after so many seconds
      scale=WORKERS          phalanx scale
      lead launcher          SIGKILL to these

    Exits 0 when each fault ended in success or in the one expected root cause, and the result is the same; else 1.

    Examples:
      phalanx chaos --workers 2 --max-restarts 3 --fault kill:worker:1@5s train.py
      phalanx chaos --workers 2 --max-restarts 9 --count 5 --seed 7 --compare ^epoch train.py
      phalanx chaos last --fault stop:worker:1=2s

    Parameters
    ----------
    command
        A run's name (`last`, or its folder), or what `phalanx run` takes: a script and its arguments, or a job.yaml.
    fault
        One fault, written as above; may be given again.
    count
        So many faults more at random moments (1 where no --fault is given).
    seed
        Makes the random ones the same again; printed in the report.
    every
        Random faults come half to one and a half times this after the one before is over (5s).
    kinds
        Of these kinds, by comma (kill,stop).
    patience
        A fault of which nothing has come by then counts as hung, and ends the run where we have started it (2m).
    reference
        Start it undisturbed first, to compare with.
    compare
        Lines of the leader that have to be the same too, besides its last one: a regular expression.
    tolerance
        Numbers may differ by so much, absolute or relative (0: the same digits).
    runs
        Where run folders are made (PHALANX_RUNS, else ./runs).
    json
        The report for scripts.
    """
    from phalanx.chaos.plan import Cast  # noqa: PLC0415 - not for --help
    from phalanx.chaos.words import render  # noqa: PLC0415 - as above

    asked = _Asked(
        faults=fault,
        count=count,
        seed=seed,
        every=every,
        kinds=kinds,
        patience=patience,
        compare=compare,
        tolerance=tolerance,
        reference=reference,
    )
    if not command:
        raise InputError("whom to hurt?", hint="phalanx chaos RUN, or phalanx chaos [flags of run] train.py")
    say = _say
    if len(command) == 1 and names_a_run(command[0]) and not command[0].endswith((".yaml", ".yml", ".json")):
        from phalanx.records.reader import read_state  # noqa: PLC0415 - as above
        from phalanx.trial import hurt  # noqa: PLC0415 - as above

        entry = which.find(command[0])
        state = read_state(entry.files)
        cast = Cast(tasks=tuple(state.tasks), hosts=state.wanted_hosts, sizes=_sizes(state.elastic))
        story = hurt(entry, asked.question(cast, elastic=state.elastic, going=entry), say=say)
    else:
        from phalanx.job.declare import declare  # noqa: PLC0415 - as above
        from phalanx.plan.size import elastic_of  # noqa: PLC0415 - as above
        from phalanx.trial import try_out  # noqa: PLC0415 - as above

        declared = declare(command, flags.flags(), cwd=Path.cwd(), environ=os.environ)
        outline = declared.outline
        elastic = elastic_of(outline)
        cast = Cast(tasks=outline.tasks(), hosts=outline.hosts, sizes=_sizes(elastic))
        question = asked.question(cast, elastic=elastic, going=None)
        _check_stalls(question.faults, outline)
        story = try_out(declared, question, runs=which.runs_folder(runs), environ=os.environ, say=say)
    sys.stdout.write(encoder.dumps(story.to_json(), indent=1) + "\n" if json else render(story))
    return 0 if story.good else 1


class _Asked:
    """What the flags ask for, read once it is known who there is to be hurt."""

    def __init__(
        self,
        *,
        faults: tuple[str, ...],
        count: int | None,
        seed: int | None,
        every: str,
        kinds: str,
        patience: str,
        compare: str | None,
        tolerance: float,
        reference: bool,
    ) -> None:
        """Reads all that can be read without a run. Raises InputError."""
        import re  # noqa: PLC0415 - not for --help

        from phalanx.chaos.fault import known_kind, parse_fault  # noqa: PLC0415 - as above
        from phalanx.job.units import seconds  # noqa: PLC0415 - as above

        self._faults = tuple(parse_fault(text, seconds=seconds) for text in faults)
        self._count = (0 if faults else 1) if count is None else count
        self._seed = random.randrange(1 << 20) if seed is None else seed  # noqa: S311 - to be repeated, not guessed
        self._every, self._patience = read(seconds, "--every", every), read(seconds, "--patience", patience)
        self._kinds = tuple(known_kind(name.strip(), "--kinds").name for name in kinds.split(",") if name.strip())
        self._reference, self._tolerance, self._pattern = reference, tolerance, compare or ""
        if self._count < 0 or (self._count and not self._kinds):
            raise InputError("--count and --kinds ask for no fault", hint="--count 3 --kinds kill,stop")
        if not self._count and not self._faults:
            raise InputError("no fault is asked for", hint="--fault kill:worker:1@5s, or --count 3")
        if not tolerance >= 0:
            raise InputError(f"--tolerance {tolerance:g} is no difference")
        if not self._patience:
            raise InputError(f"--patience {patience}: every fault would count as hung at once", hint="--patience 2m")
        try:
            re.compile(self._pattern)
        except re.error as wrong:
            raise InputError(f"--compare {compare!r} is no regular expression: {wrong}") from wrong

    def question(self, cast: Cast, *, elastic: Elastic | None, going: Entry | None) -> Question:
        """The same as a question about this cast. Raises InputError for a fault that it cannot have."""
        from phalanx.chaos.fault import check_target  # noqa: PLC0415 - not for --help
        from phalanx.chaos.kinds import KINDS, Aim  # noqa: PLC0415 - as above
        from phalanx.chaos.plan import draw  # noqa: PLC0415 - as above
        from phalanx.chaos.session import Patience  # noqa: PLC0415 - as above
        from phalanx.trial import Question  # noqa: PLC0415 - as above

        faults = tuple(check_target(fault, tasks=cast.tasks, hosts=cast.hosts) for fault in self._faults)
        _check_sizes(faults, cast, elastic)
        for name in (*(fault.kind for fault in faults), *(self._kinds if self._count else ())):
            if going and going.detached and KINDS[name].aim is Aim.LAUNCHER:
                raise InputError(f"{name}: {going.run} has no launcher any more: it is detached")
            if going and KINDS[name].prepared:
                raise InputError(
                    f"{name} works only in a run that `phalanx chaos` has started itself",
                    hint=f"phalanx chaos --fault {name}… [flags of run] train.py",
                )
        drawn = draw(self._seed, count=self._count, every=self._every, kinds=self._kinds, cast=cast)
        return Question(
            faults=(*faults, *drawn),
            seed=self._seed,
            patience=Patience(fault=self._patience),
            pattern=self._pattern,
            tolerance=self._tolerance,
            reference=self._reference,
        )


def _sizes(elastic: Elastic | None) -> tuple[int, int] | None:
    """The fewest and the most workers, where they are not the same."""
    return (elastic.fewest, elastic.most) if elastic is not None and elastic.fewest < elastic.most else None


def _check_sizes(faults: Sequence[Fault], cast: Cast, elastic: Elastic | None) -> None:
    """What `phalanx scale` would refuse. Raises InputError."""
    from phalanx.decide.elastic import workers  # noqa: PLC0415 - not for --help
    from phalanx.plan.size import check_size  # noqa: PLC0415 - as above

    sizes = [int(fault.value or 0) for fault in faults if fault.kind == "scale"]
    for size in sizes:
        try:
            check_size(elastic, size)
        except InputError as wrong:
            raise InputError(f"--fault scale={size}: {wrong}", hint=wrong.hint) from wrong
    moves = len(sizes) > 1 or any(fault.kind == "agent" for fault in faults)
    if sizes and not moves and sizes[0] == workers(cast.tasks):
        raise InputError(f"--fault scale={sizes[0]}: the run has that size", hint="scale= another one")


def _check_stalls(faults: Sequence[Fault], outline: Outline) -> None:
    """Raises InputError where a task that is to stall is a Python which never reads what makes it."""
    from phalanx.chaos.stall import WANTED, deaf  # noqa: PLC0415 - not for --help

    types = {task.type for fault in faults if fault.kind == "stall" for task in fault.tasks}
    for role in outline.roles:
        if role.type in types and deaf(role.command):
            raise InputError(f"stall: {an(role.type)} cannot be made to: {' '.join(role.command)}", hint=WANTED)


def _say(line: str) -> None:
    sys.stderr.write(f"phalanx: {line}\n")
    sys.stderr.flush()

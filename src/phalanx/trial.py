"""The story of a run under faults: undisturbed first, then hurt, then compared. Knows both launch and chaos."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from phalanx.agent.spawn import prctl
from phalanx.chaos import prepared
from phalanx.chaos.compare import Comparison, compare
from phalanx.chaos.fault import Fault
from phalanx.chaos.output import leader_of, printed
from phalanx.chaos.session import Patience, Session
from phalanx.chaos.story import Story
from phalanx.engine import bundle
from phalanx.errors import InputError, PhalanxError, PlaceError
from phalanx.job.declare import Declared
from phalanx.launch import PATIENCE, follow, join, launch
from phalanx.observe.views import view_for
from phalanx.plan.policies import Health
from phalanx.plan.wire import from_wire, to_wire
from phalanx.records.index import Entry
from phalanx.records.reader import read_end, read_state
from phalanx.records.writer import write_atomic
from phalanx.scratch import scratch
from phalanx.states import RunPhase, RunState, steps_done

_PR_SET_PDEATHSIG = 1
#: Seconds between two signals, so that they are two.
_BETWEEN = 0.2
#: Seconds without a step after which a run that is made to stall counts as hung, where the job says nothing.
HANG = 10.0

#: Hears what is done and what came of it, as it happens.
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What is to be found out."""

    faults: tuple[Fault, ...]
    seed: int
    patience: Patience
    #: Compare these lines too; empty: the last line alone.
    pattern: str = ""
    tolerance: float = 0.0
    reference: bool = True


def hurt(entry: Entry, question: Question, *, say: Say) -> Story:
    """Do the faults to a run that goes on; leave it once they are settled. Raises InputError for one that has ended."""
    state = read_state(entry.files)
    if state.phase.terminal:
        raise InputError(
            f"{entry.run} has ended already: {state.phase.value}", hint="`phalanx ps` lists those that go on"
        )
    began = time.monotonic()

    def back(host: int) -> None:
        _join(entry, host, environ=os.environ, home=None)

    session = Session(entry, question.faults, patience=question.patience, say=say, join=back)
    told = session.run()
    return _kept(_story(entry, question, session.state, told=told, took=time.monotonic() - began), entry)


def try_out(declared: Declared, question: Question, *, runs: Path, environ: Mapping[str, str], say: Say) -> Story:
    """Start the job undisturbed, then again with faults, and compare. Raises PhalanxError where it cannot be started.

    Both runs are prepared alike, so that they differ in the faults alone. Of the command a `{run}` differs, as always.
    """
    declared = _patient(declared, question)
    calm: tuple[Entry, RunState, float] | None = None
    if question.reference:
        with _started(declared, runs=runs, environ=environ) as (launcher, entry, folder):
            say(f"{entry.run}: undisturbed")
            began = time.monotonic()
            session = Session(entry, (), prepared=folder, say=say, launched=launcher)
            session.run()
            calm = entry, session.state, time.monotonic() - began
        if session.state.phase is not RunPhase.SUCCEEDED:
            raise PlaceError(
                f"the undisturbed run {entry.run} {session.state.phase.value}: there is nothing to compare with",
                hint=f"phalanx report {entry.run}",
            )
    with _started(declared, runs=runs, environ=environ) as (launcher, entry, folder), _joiners() as joiners:

        def back(host: int) -> None:
            joined = _join(entry, host, environ=prepared.environ_for(folder, environ), home=folder / "home")
            joiners.extend(() if joined is None else (joined,))

        say(f"{entry.run}: {len(question.faults)} to come")
        began = time.monotonic()
        session = Session(
            entry,
            question.faults,
            prepared=folder,
            patience=question.patience,
            say=say,
            launched=launcher,
            join=back,
            steps=None if calm is None else steps_done(calm[1]) is not None,
        )
        told = session.run()
        took = time.monotonic() - began
    story = _story(entry, question, session.state, told=told, took=took)
    if calm is not None:
        reference, before, span = calm
        comparison = None
        if session.state.phase is RunPhase.SUCCEEDED:
            comparison = _compared(reference, before, entry, session.state, question)
        story = dataclasses.replace(
            story,
            reference=reference.run,
            reference_result=before.phase.value,
            reference_took=round(span, 3),
            comparison=comparison,
        )
    return _kept(story, entry)


def _patient(declared: Declared, question: Question) -> Declared:
    """The same job; one that is made to stall notices it within the patience, where it does not say its own `hang`."""
    policies = declared.outline.policies
    stalls = any(fault.kind == "stall" and fault.value is None for fault in question.faults)
    if not stalls or policies.health.hang != Health().hang:
        return declared
    health = dataclasses.replace(policies.health, hang=min(HANG, question.patience.fault / 4))
    policies = dataclasses.replace(policies, health=health)
    return declared._replace(outline=dataclasses.replace(declared.outline, policies=policies))


def _join(entry: Entry, host: int, *, environ: Mapping[str, str], home: Path | None) -> subprocess.Popen[bytes] | None:
    """What `phalanx join` does; nothing for a run that has ended. Raises PhalanxError."""
    return None if read_end(entry.files) else join(entry, host=host, environ=environ, home=home)


@contextlib.contextmanager
def _joiners() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Agents that were joined; afterwards, with their run, they have gone."""
    joined: list[subprocess.Popen[bytes]] = []
    try:
        yield joined
    finally:
        for agent in joined:
            try:
                agent.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()


def _compared(calm: Entry, before: RunState, hit: Entry, after: RunState, question: Question) -> Comparison:
    return compare(
        printed(calm.files, leader_of(before)),
        printed(hit.files, leader_of(after)),
        pattern=question.pattern,
        tolerance=question.tolerance,
    )


def _story(entry: Entry, question: Question, state: RunState, *, told: tuple[object, ...], took: float) -> Story:
    return Story(
        run=entry.run,
        folder=entry.folder,
        seed=question.seed,
        result=state.phase.value if state.phase.terminal else "running",
        cause=state.end.cause if state.end is not None and state.phase is not RunPhase.SUCCEEDED else "",
        told=told,  # type: ignore[arg-type]  # Told, by way of a session
        restarts=len(state.past),
        took=round(took, 3),
    )


def _kept(story: Story, entry: Entry) -> Story:
    """`chaos.json` in the run's folder, as far as its disk takes it."""
    with contextlib.suppress(PlaceError):
        write_atomic(entry.files.path / "chaos.json", json.dumps(story.to_json(), indent=1) + "\n")
    return story


class _Launcher:
    """A launcher in a process of its own, so that it can be killed like any other."""

    def __init__(self, pid: int) -> None:
        self._pid, self._ended = pid, False

    def lives(self) -> bool:
        """Whether it has not ended yet."""
        if not self._ended:
            self._ended = os.waitpid(self._pid, os.WNOHANG)[0] != 0
        return not self._ended

    def signal(self, number: int) -> None:
        """Send it a signal, where it has not ended."""
        if self.lives():
            os.kill(self._pid, number)

    def end(self) -> None:
        """What a second Ctrl-C does: the tasks are killed, and a run without a lead with all its processes."""
        self.signal(signal.SIGTERM)
        time.sleep(_BETWEEN)
        self.signal(signal.SIGTERM)

    def wait(self) -> None:
        """It ends the run's agents before it goes."""
        if not self._ended:
            os.waitpid(self._pid, 0)
            self._ended = True


@contextlib.contextmanager
def _started(declared: Declared, *, runs: Path, environ: Mapping[str, str]) -> Iterator[tuple[_Launcher, Entry, Path]]:
    """A prepared run on its way; afterwards its launcher has gone. Ctrl-C and TERM go to the launcher alone."""
    with scratch("phalanx-chaos-") as folder:
        launcher, entry = _fork(declared, runs=runs, environ=environ, folder=folder)

        def pass_on(number: int, frame: FrameType | None) -> None:
            del frame
            launcher.signal(number)

        before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
        before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield launcher, entry, folder
        finally:
            launcher.wait()
            for number, handler in before.items():
                signal.signal(number, handler)


def _fork(declared: Declared, *, runs: Path, environ: Mapping[str, str], folder: Path) -> tuple[_Launcher, Entry]:
    home = prepared.agent_home(folder, bundle.unpacked())
    told, tell = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        code = PlaceError.exit_code
        try:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            code = _launch(declared, runs=runs, environ=environ, folder=folder, home=home, tell=tell)
        finally:
            os._exit(code)
    os.close(tell)
    launcher = _Launcher(pid)
    with os.fdopen(told, "rb") as pipe:
        word = json.loads(pipe.read() or b"{}")
    if "entry" not in word:
        launcher.wait()
        raise PlaceError(word.get("error", "the launcher has ended without a word"), hint=word.get("hint"))
    return launcher, from_wire(Entry, word["entry"])


def _launch(declared: Declared, *, runs: Path, environ: Mapping[str, str], folder: Path, home: Path, tell: int) -> int:
    """In the child: what `phalanx run --quiet` does."""
    with os.fdopen(tell, "wb") as pipe, (folder / "launcher.log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            launched = launch(
                declared, runs=runs, environ=prepared.environ_for(folder, environ), attached=True, home=home
            )
        except PhalanxError as wrong:
            pipe.write(json.dumps({"error": str(wrong), "hint": wrong.hint}).encode())
            return wrong.exit_code
        pipe.write(json.dumps({"entry": to_wire(launched.entry)}).encode())
        pipe.close()
        state = follow(launched, view_for(launched.folder, log, quiet=True))
    return state.end.exit_code if state.end else PlaceError.exit_code

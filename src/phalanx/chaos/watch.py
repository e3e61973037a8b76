"""What became of a fault, folded from the events that came after it. Pure: times are handed in, nothing is read.

Times are those at which `phalanx chaos` saw an event, not those written in it: a clock may have been made to jump.
"""

from __future__ import annotations

import dataclasses
import enum

from phalanx import events as ev
from phalanx.chaos.fault import Fault
from phalanx.chaos.kinds import Aim, Takes
from phalanx.decide.elastic import workers
from phalanx.names import TaskId
from phalanx.states import RunPhase, RunState
from phalanx.taskstate import TaskPhase

#: After these something has to come again, and after a task that ends by itself.
_BREAKS = ev.CulpritNamed | ev.RestartOrdered | ev.ResizeOrdered | ev.HostLost | ev.StopRequested


def breaks(event: ev.Event) -> bool:
    """Whether it breaks the group, or shows that something has."""
    return isinstance(event, ev.RunStarted) or _takes_down(event)


def _takes_down(event: ev.Event) -> bool:
    ended_by_itself = isinstance(event, ev.TaskExited) and event.code != 0 and not event.stopped
    return isinstance(event, _BREAKS) or ended_by_itself


#: What makes tasks stand still.
_STILL = (Takes.BLAMES, Takes.EITHER)


class Outcome(enum.Enum):
    """How a fault has ended."""

    OPEN = "open"
    RECOVERED = "recovered"
    UNHARMED = "unharmed"
    ENDED = "ended"  # the run ended, and names what was done as its cause
    FOUND = "found"  # it was named and the group started again; what ended the run later is the run's own
    UNSHOWN = "not shown"  # the run succeeded before anything had to come of it
    MISBLAMED = "misblamed"  # somebody else was named
    DISTURBED = "disturbed"  # something ended or restarted that should not have noticed
    LOST = "lost"  # the run ended, and nobody says why
    HUNG = "hung"  # nothing came of it within the patience
    OVERTAKEN = "overtaken"  # what another fault did came first, and took this one's target with it
    MISSED = "not reached"  # the run ended before its moment
    REFUSED = "not possible"

    @property
    def good(self) -> bool:
        """Whether a run may take a fault like that."""
        return self in _GOOD


_GOOD = (
    Outcome.RECOVERED,
    Outcome.UNHARMED,
    Outcome.ENDED,
    Outcome.FOUND,
    Outcome.UNSHOWN,
    Outcome.OVERTAKEN,
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """One fault and what is known of it. Seconds count from the moment it was done."""

    fault: Fault
    outcome: Outcome = Outcome.OPEN
    #: Seconds from when the run began to train to the fault; None where it was not done.
    struck: float | None = None
    detected: float | None = None
    #: What was said first.
    sign: str = ""
    recovered: float | None = None
    #: Whom the run named.
    blamed: str = ""
    why: str = ""


class Watch:
    """Looks at one fault from the moment it is done until it is settled."""

    def __init__(self, fault: Fault, state: RunState, *, now: float, since: float) -> None:
        """`now`: the moment on the monotonic clock; `since`: when the run began to train, on the same."""
        self._fault, self._now = fault, now
        self.told = Told(fault=fault, struck=round(now - since, 3))
        self._generation, self._epoch = state.generation, state.epoch
        self._attempts = {name: task.attempt for name, task in state.tasks.items()}
        self._listened = {name for name, task in state.tasks.items() if task.listening is not None}
        self._stepped = {name for name, task in state.tasks.items() if task.stepped is not None}
        self._given_up = set(state.given_up)
        self._hosts = self._hosts_of(state)
        self._broken = False  # something has ended, so that something has to come again
        self._restarted = False  # whoever was named has been started again
        self._own = False  # and then the run has failed of its own
        self._lifted: float | None = None
        self._taken_over: float | None = None
        self._still: set[TaskId] = set()  # who has come to a stop, and may be about to end
        #: Whether nothing has come of it in its first seconds, and still may.
        self.late = False

    @property
    def open(self) -> bool:
        """Whether more has to come."""
        return self.told.outcome is Outcome.OPEN

    @property
    def broken(self) -> bool:
        """Whether something has ended of it, that has to come again."""
        return self._broken

    def lifted(self, now: float) -> None:
        """What was done is undone."""
        self._lifted = now

    def see(self, event: ev.Event, state: RunState, now: float) -> None:
        """One more event; `state` is the one after it."""
        if not self.open:
            return
        sign = self._sign(event)
        if sign and self.told.detected is None:
            self._tell(detected=round(now - self._now, 3), sign=sign)
        if isinstance(event, ev.CulpritNamed):
            self._note_culprit(event, state)
        self._note_pauses(event)
        self._restarted |= isinstance(event, ev.RestartOrdered) and bool(self.told.blamed)
        if _takes_down(event):
            self._broken = True
        if isinstance(event, ev.RunStarted) and state.epoch > self._epoch and self._taken_over is None:
            self._taken_over = now
            if self._fault.row.takes is not Takes.TAKEN_OVER:
                self._broken = True
        if isinstance(event, ev.RunEnded):
            self._run_ended(event, state, now)
        elif self._broken and self._all_again(state):
            self._settle(self._came_back(state), recovered=round(now - self._now, 3))

    def _note_culprit(self, event: ev.CulpritNamed, state: RunState) -> None:
        """The first failure is the fault's. A later one is not: the processes that it was done to are gone by then.

        But of a lost host it is, where the group cannot start without it.
        """
        if not self._restarted:
            self._tell(blamed=self._name(event, state))
        elif event.task is not None or self._fault.row.aim is not Aim.HOST:
            self._own = True

    def _note_pauses(self, event: ev.Event) -> None:
        if isinstance(event, ev.TaskFroze | ev.TaskQuiet | ev.TaskStalled):
            self._still.add(event.task)
        elif isinstance(event, ev.TaskAwake | ev.TaskExited):
            self._still.discard(event.task)

    def wait(self, now: float, *, settle: float, patience: float) -> None:
        """Time has passed and nothing was said: what is over by now?"""
        if not self.open:
            return
        row = self._fault.row
        over = self._lifted if row.lasts(self._fault.value) else self._now
        calm = not self._broken and not self._still
        passes = calm and row.may_pass(self._fault.value) and over is not None and now - over >= settle
        self.late = passes
        if passes and now - (over or now) >= row.shows:
            self._settle(Outcome.UNHARMED)
        elif not self._broken and self._succeeded_to and now - (self._taken_over or now) >= settle:
            self._settle(Outcome.RECOVERED, recovered=self._since(self._taken_over))
        elif now - self._now >= patience:
            self._settle(Outcome.HUNG, why=f"nothing settled within {patience:g} s")

    def lost(self, why: str) -> None:
        """The run has no lead any more, and no end was written."""
        if self.open:
            self._settle(Outcome.LOST, why=why)

    def overtaken(self, by: Fault, state: RunState) -> None:
        """Another fault has broken the group: where that took this one's target with it, no more will come of it."""
        taken = self._fault.row.takes in _STILL and any(self._is_new(state, task) for task in self._fault.tasks)
        if self.open and not self._broken and (taken or state.phase.terminal):
            if self.late:
                self._settle(Outcome.UNHARMED)
            else:
                self._settle(Outcome.OVERTAKEN, why=f"what {by} did came first")

    def _is_new(self, state: RunState, name: TaskId) -> bool:
        task = state.tasks.get(name)
        return task is None or task.generation > self._generation or task.attempt > self._attempts.get(name, 1)

    def _run_ended(self, event: ev.RunEnded, state: RunState, now: float) -> None:
        takes = self._fault.row.takes
        if event.outcome == RunPhase.SUCCEEDED.value and self._succeeded_to and not self._broken:
            self._settle(Outcome.RECOVERED, recovered=self._since(self._taken_over))
        elif event.outcome == RunPhase.SUCCEEDED.value:
            outcome = self._outlived(state)
            self._settle(outcome, why="the run ended before it showed" if outcome is Outcome.UNSHOWN else "")
        elif event.outcome == RunPhase.STOPPED.value:
            self._settle(Outcome.ENDED if takes is Takes.LAUNCHER else Outcome.DISTURBED, why=event.cause)
        elif takes in _STILL and self._own and self._rightly():
            self._settle(Outcome.FOUND, why="rightly named; what failed after the restart is the run's own")
        elif takes in _STILL:
            self._settle(Outcome.ENDED if self._rightly() else Outcome.MISBLAMED, why=event.cause)
        else:
            self._settle(Outcome.DISTURBED, why=event.cause)
        if self.told.detected is None and self.told.outcome is Outcome.ENDED:
            self._tell(detected=round(now - self._now, 3), sign="the run ended")

    def _outlived(self, state: RunState) -> Outcome:
        """What a run has made of it that has succeeded meanwhile."""
        takes = self._fault.row.takes
        if takes is Takes.LAUNCHER:
            return Outcome.UNHARMED
        if takes is Takes.RESIZED:
            return Outcome.UNSHOWN if state.generation == self._generation else self._came_back(state)
        if self._broken and takes in (Takes.UNHARMED, Takes.TAKEN_OVER):
            return Outcome.DISTURBED
        if self.told.blamed or self._restarted:
            return self._came_back(state)
        over = self._lifted is not None or takes not in (Takes.BLAMES, Takes.TAKEN_OVER)
        return Outcome.UNHARMED if over and self._fault.row.may_pass(self._fault.value) else Outcome.UNSHOWN

    @property
    def _succeeded_to(self) -> bool:
        """Whether the lead was hit, and another one leads."""
        return self._fault.row.takes is Takes.TAKEN_OVER and self._taken_over is not None

    def _since(self, then: float | None) -> float | None:
        return None if then is None else round(then - self._now, 3)

    def _came_back(self, state: RunState) -> Outcome:
        match self._fault.row.takes:
            case Takes.UNHARMED | Takes.TAKEN_OVER:
                return Outcome.DISTURBED
            case Takes.RESIZED:
                asked = workers(state.tasks) == self._fault.value and not self.told.blamed
                return Outcome.RECOVERED if asked else Outcome.DISTURBED
            case Takes.BLAMES | Takes.EITHER:
                return Outcome.RECOVERED if self._rightly() else Outcome.MISBLAMED
        return Outcome.RECOVERED

    def _rightly(self) -> bool:
        """Whether whom the run named is whom the fault was done to; a lone attempt comes back without a name."""
        if not self.told.blamed:
            return True
        if self._fault.row.aim is Aim.HOST:
            return self.told.blamed == f"host {self._fault.target}"
        return self.told.blamed in map(str, self._fault.tasks)

    def _name(self, event: ev.CulpritNamed, state: RunState) -> str:
        if event.task is not None:
            task = state.tasks.get(event.task)
            on_lost_host = self._fault.row.aim is Aim.HOST and task is not None and task.host in self._hosts
            return f"host {task.host}" if on_lost_host and task is not None else str(event.task)
        return f"host {event.host}" if event.host is not None else "nobody"

    def _sign(self, event: ev.Event) -> str:  # noqa: PLR0911 - a table of events
        match event:
            case ev.TaskExited() if event.task in self._fault.tasks and not event.stopped:
                return "exit"
            case ev.TaskExited() if event.host in self._hosts and self._fault.row.aim is Aim.HOST:
                return "exit"
            case ev.TaskFroze() | ev.TaskQuiet() | ev.TaskStalled() if self._fault.row.takes in _STILL:
                return {ev.TaskFroze: "stopped", ev.TaskQuiet: "silent", ev.TaskStalled: "no steps"}[type(event)]
            case ev.HostLost():
                return "host lost"
            case ev.CulpritNamed():
                return "culprit"
            case ev.StopRequested() if self._fault.row.takes is Takes.LAUNCHER:
                return "stop"
            case ev.RunStarted():
                return "new lead"
            case ev.ResizeOrdered():
                return "resize"
            case ev.Noted() if self._fault.kind == "disk":
                return "note"
        return ""

    def _all_again(self, state: RunState) -> bool:
        """Every task of the cluster runs again, and does what it did before: listens, makes steps.

        Where only some start again, as beside a parameter server, those that make no steps of their own wait for none.
        """
        if state.culprit is not None or state.phase is not RunPhase.RUNNING:
            return False
        new = [task for name, task in state.tasks.items() if self._is_new(state, name)]
        if not new and state.epoch == self._epoch and self._given_up.issuperset(state.given_up):
            return False
        for name, task in state.tasks.items():
            if task.phase is TaskPhase.SUCCEEDED or name in state.given_up:
                continue
            listens = name in self._listened or (state.must_listen and task.address is not None)
            if task.phase is not TaskPhase.RUNNING or (listens and task.listening is None):
                return False
        stepping = [task for task in new if task.id in self._stepped]
        return not stepping or any(task.first_step is not None for task in stepping)

    def _hosts_of(self, state: RunState) -> set[int]:
        if self._fault.row.aim is Aim.HOST:
            return {int(self._fault.target)}
        tasks = (state.tasks.get(task) for task in self._fault.tasks)
        return {task.host for task in tasks if task is not None and task.host is not None}

    def _settle(self, outcome: Outcome, *, recovered: float | None = None, why: str = "") -> None:
        self._tell(outcome=outcome, recovered=recovered, why=why)

    def _tell(self, **more: object) -> None:
        self.told = dataclasses.replace(self.told, **more)  # type: ignore[arg-type]  # fields by name


def missed(fault: Fault, why: str = "") -> Told:
    """A fault whose moment never came."""
    return Told(fault=fault, outcome=Outcome.MISSED, why=why)


def refused(fault: Fault, why: str) -> Told:
    """A fault that could not be done."""
    return Told(fault=fault, outcome=Outcome.REFUSED, why=why)

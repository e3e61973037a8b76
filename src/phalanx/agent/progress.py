"""What the runtimes of this host's tasks tell, turned into events: steps, checkpoints, the end of a program."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

from phalanx import events as ev
from phalanx.agent.life import Life
from phalanx.agent.running import Raised, Running
from phalanx.sample import TaskSample

#: Seconds between two words about steps of one attempt, while there are more: each is an event, a request and a line
#: of the records, from a thousand hosts. Who wants to know this second's asks the lead (`steps`).
SAID_EVERY = 10.0

#: Seconds a program that has come to its end has to be gone; TensorFlow alone takes half of one, and two on a busy
#: machine (facts §6).
LEAVING = 5.0

#: Seconds between two looks at the counters of all tasks.
_LOOK = 1.0

#: Seconds for which the lead is told how far a task was that has ended: longer than it takes to find another lead.
PARTING = 120.0


class Tell(Protocol):
    """`Tasks` says what happened to one attempt."""

    def __call__(self, running: Running, kind: type[ev.TaskEvent], when: float, **more: Any) -> None:
        """`more`: the fields of `kind` that are its own."""


class Progress:
    """Follows every attempt that has a life line. Facts are read as they come; counters are looked at now and then."""

    def __init__(self, tell: Tell, say: Callable[[ev.Event], None]) -> None:
        """`tell` gets each event of an attempt once; `say` what people should know."""
        self._tell, self._say = tell, say
        self._followed: dict[Running, _Said] = {}
        self._look: asyncio.TimerHandle | None = None
        self._parting: list[TaskSample] = []

    def follow(self, running: Running) -> None:
        """From now on what happens to it is told. Nothing to do where it has no life line."""
        life = running.life
        if life is None or running in self._followed:
            return
        self._followed[running] = _Said()
        loop = asyncio.get_running_loop()
        loop.add_reader(life.fileno(), self._read, running, life)
        if self._look is None:
            self._look = loop.call_later(_LOOK, self._look_at_all)

    def leave(self, running: Running) -> None:
        """It has ended: its last facts are told, and its life line is closed. Idempotent."""
        life = running.life
        if life is None or self._followed.get(running) is None:
            return
        self._read(running, life)
        self._say_new_step(running, life, time.time())
        self._parting += filter(None, [_sample(running, life)])
        running.inside = life.sign().inside
        del self._followed[running]
        asyncio.get_running_loop().remove_reader(life.fileno())
        life.close()

    def samples(self) -> tuple[TaskSample, ...]:
        """What is counted at this moment. Never waits."""
        found = (_sample(running, running.life) for running in self._followed if running.life is not None)
        return tuple(one for one in found if one is not None)

    def parting(self) -> tuple[TaskSample, ...]:
        """What was counted at the end of those attempts that have ended within `PARTING` seconds."""
        now = time.time()
        self._parting = [one for one in self._parting if abs(now - one.at) <= PARTING]
        return tuple(self._parting)

    def _read(self, running: Running, life: Life) -> None:
        facts = life.facts()
        if facts is None:
            asyncio.get_running_loop().remove_reader(life.fileno())
            return
        for fact in facts:
            try:
                self._take(running, life, fact)
            except (KeyError, TypeError, ValueError):  # the program wrote something of its own into our pipe
                continue

    def _take(self, running: Running, life: Life, fact: dict[str, Any]) -> None:
        now = time.time()
        match fact["is"]:
            case "first-step":
                self._say_step(running, life.sign().step or 1, now)
            case "saved":
                self._tell(running, ev.CheckpointSaved, now, path=str(fact["path"]), step=int(fact["step"]))
            case "restored":
                self._tell(running, ev.CheckpointRestored, now, path=str(fact["path"]))
            case "raised":
                text = life.text(int(fact["bytes"]))
                running.raised = Raised(said=str(fact["said"]), where=str(fact["where"]), text=text)
            case "stopping":
                self._tell_stopping(running, fact, now)
            case "finished":
                asyncio.get_running_loop().call_later(LEAVING, self._still_there, running, now)
            case "asked" if not running.stopped:
                self._tell(running, ev.TaskAsked, now)
            case "note":
                self._say(ev.Noted(time=now, message=str(fact["message"]), task=running.task.id))

    def _tell_stopping(self, running: Running, fact: dict[str, Any], now: float) -> None:
        """Where it stopped and what it saved."""
        self._tell(
            running,
            ev.TaskLeaves,
            now,
            step=int(fact["step"]),
            peers=int(fact["peers"]) - 1,
            agreed=bool(fact["agreed"]),
            saved=str(fact.get("saved", "")),
            wrong=str(fact.get("wrong", "")),
        )

    def _still_there(self, running: Running, since: float) -> None:
        if running in self._followed and not running.ended.is_set():
            self._tell(running, ev.TaskDone, time.time(), since=since)

    def _look_at_all(self) -> None:
        now = time.time()
        for running, said in self._followed.items():
            if running.life is not None and now >= said.at + SAID_EVERY:
                self._say_new_step(running, running.life, now)
        self._look = asyncio.get_running_loop().call_later(_LOOK, self._look_at_all) if self._followed else None

    def _say_new_step(self, running: Running, life: Life, now: float) -> None:
        step = life.sign().step
        if step is not None and step != self._followed[running].step:
            self._say_step(running, step, now)

    def _say_step(self, running: Running, step: int, now: float) -> None:
        said = self._followed.get(running)
        if said is not None:
            said.step, said.at = step, now
            self._tell(running, ev.TaskStepped, now, step=step)


class _Said:
    __slots__ = ("at", "step")

    def __init__(self) -> None:
        self.step, self.at = 0, float("-inf")


def _sample(running: Running, life: Life) -> TaskSample | None:
    """None where no step is done."""
    sign = life.sign()
    if sign.step is None:
        return None
    return TaskSample(
        task=running.task.id,
        generation=running.generation,
        attempt=running.task.attempt,
        at=round(time.time(), 3),
        steps=sign.step,
        epoch=sign.epoch,
        epochs=sign.epochs,
        steps_per_epoch=sign.steps_per_epoch,
        epoch_step=sign.epoch_step,
        loss=sign.loss,
        collective=None if sign.collective is None else round(sign.collective, 6),
    )

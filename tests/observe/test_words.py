"""Every event has its sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import history, killed, running
from phalanx import events as ev
from phalanx.names import TaskId
from phalanx.observe.words import describe
from phalanx.plan.checklist import Fault
from phalanx.plan.outputs import Output
from phalanx.states import fold_all

Golden = Callable[[str, str], None]


def everything() -> list[ev.Event]:
    """A history in which each kind of event happens."""
    told = running(hosts=2).at(5).refused("worker:0", "no memory").noted("a word").stop("me").stop("me", hard=True)
    told.ordered("worker:0").ordered("worker:0", grace=0.0).exited("worker:0", signal=15, stopped=True)
    told.exited("worker:1", signal=11, core=True).exited("worker:1", signal=99).again("worker:1").started("worker:1")
    told.lives(ev.CheckpointRestored, "worker:1", path="/ckpt/ckpt-3").lives(ev.TaskStepped, "worker:1", step=1)
    told.lives(ev.TaskStepped, "worker:1", step=20).lives(ev.CheckpointSaved, "worker:1", path="/ckpt/ckpt-4", step=20)
    told.lives(ev.TaskFroze, "worker:1", since=1).lives(ev.TaskQuiet, "worker:1", since=1)
    told.lives(ev.TaskStalled, "worker:1", since=1, step=20, longest=0.1)
    told.lives(ev.TaskStalled, "worker:1", since=1, step=20, longest=0.1, doing="saving", waits=True)
    told.lives(ev.TaskStalled, "worker:1", since=1, step=0, longest=0)
    told.say(ev.StacksOrdered(time=told.now, generation=1, tasks=told.tasks, by="phalanx"))
    told.lives(ev.StacksWritten, "worker:1", path="stacks/worker_1.txt").lives(ev.TaskAwake, "worker:1")
    told.lives(ev.StacksWritten, "worker:1", path="stacks/worker_1.2.txt", at="train.py:14 in step", waits=True)
    told.lives(ev.TaskAsked, "worker:1")
    told.lives(ev.TaskLeaves, "worker:1", step=20, peers=1, saved="/ckpt/backup")
    told.lives(ev.TaskLeaves, "worker:1", step=20, peers=1, agreed=False, wrong="no space")
    told.lives(ev.TaskDone, "worker:1", since=told.now - 5)
    about = {"time": told.now, "generation": 2}
    told.say(ev.RestartOrdered(**about, at=told.now + 1.5, why="restart 1 of 3", tasks=(TaskId("ps", 0),)))
    told.say(ev.TaskGivenUp(**about, task=TaskId("evaluator", 0), why="it crashed; the training goes on without it"))
    told.say(ev.HostWithdrawn(time=told.now, host=1, by="me"))
    told.say(ev.ScaleRequested(time=told.now, by="me", workers=4))
    told.say(ev.ResizeOrdered(**about, before=2, workers=4, why="scaled from 2 to 4 workers"))
    slow = about | {"cause": "task", "task": TaskId("worker", 1), "host": 1}
    says = "worker:1 on n1 computes 1.9× slower: 21 ms a step, the other 11 ms; network is fine"  # noqa: RUF001 - a factor
    told.say(ev.SlowFound(**slow, factor=1.9, says=says, advice="look at it")).say(ev.SlowEnded(**slow))
    link = about | {"task": TaskId("worker", 0), "peer": TaskId("worker", 1)}
    told.say(ev.SlowEnded(**link, cause="link")).say(ev.SlowEnded(**about, cause="host-links", host=1))
    told.say(ev.SlowEnded(**about, cause="host", host=1)).say(ev.SlowEnded(**about, cause="network"))
    proof = about | {"attempt": 1, "task": TaskId("worker", 0)}
    told.say(ev.Resumed(**proof, path="/ckpt/ckpt-4", step=120, lost=12))
    told.say(ev.Resumed(**proof, path="/old/ckpt-9", step=None, lost=None))
    told.say(ev.Resumed(**proof, path="", step=0, lost=0))
    fault = Fault(check="memory", words="12 MiB are free")
    told.say(ev.HostChecked(time=told.now, host=0, generation=1, seconds=0.2, looked=("disk", "memory")))
    told.say(ev.HostChecked(time=told.now, host=1, generation=1, seconds=0.2, looked=("memory",), faults=(fault,)))
    told.say(ev.PreflightPassed(time=told.now, generation=1, checks=2, warnings=1, seconds=0.3))
    told.exited("worker:1", code=None, stopped=True).lost(1, "gone").left(0).succeeded()
    told.culprit("worker:1", "worker:1 crashed", *(f"worker:{n}" for n in range(9))).restarted(wait=2).ended(
        "failed", 1, "worker:1 crashed"
    )
    told.say(ev.OutputsAsked(time=told.now, host=0, patterns=("model.keras", "*.txt")))
    outputs = (Output(path="model.keras", count=1, bytes=9, newest=told.now), Output(path="*.txt"))
    told.say(ev.OutputsFound(time=told.now, host=0, outputs=outputs))
    told.say(ev.StandbysReady(time=0.0, host=0, count=2, bytes=374_000_000))
    told.say(ev.StandbysReady(time=0.0, host=0, count=1, bytes=187_000_000))
    told.say(ev.StandbysReady(time=0.0, host=0, count=0, bytes=0))
    return told.bound(port=30000).events


def test_every_event_in_words(golden: Golden):
    told = running(hosts=2)
    state = told.state
    lines = [describe(event, state) for event in everything()]
    golden("observe/words.txt", "\n".join(lines) + "\n")
    assert {type(event) for event in everything()} == set(ev.EVENTS.values())
    assert not any(line in ev.EVENTS for line in lines)


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_a_sentence_stays_short_for_any_number_of_tasks(count: int):
    told = history(workers=count).joined().bound().ordered()
    state = told.state
    assert all(len(describe(event, state)) < 300 for event in told.events)


def test_a_stopped_task_says_how_long_it_took():
    records = killed().records
    event = next(r.event for r in records if isinstance(r.event, ev.TaskExited) and r.event.task == TaskId("worker", 0))
    assert describe(event, fold_all(records)) == "worker:0 exited with code 1 0.2 s after it was told to"


@pytest.mark.parametrize("later", [False, True])
def test_steps_count_from_the_beginning_of_the_run_also_where_another_generation_has_followed(later: bool):
    told = running().lives(ev.CheckpointSaved, "worker:0", path="/ckpt/ckpt-300", step=300)
    told.culprit("worker:1", "worker:1 crashed").restarted().bound().started()
    told.lives(ev.CheckpointRestored, "worker:0", path="/ckpt/ckpt-300").lives(ev.TaskStepped, "worker:0", step=260)
    told.lives(ev.CheckpointRestored, "worker:1", path="/other").lives(ev.TaskStepped, "worker:1", step=260)
    theirs, unknown = told.events[-3], told.events[-1]
    if later:
        told.culprit("worker:1", "worker:1 crashed").restarted().bound().started()
    assert describe(theirs, told.state) == "worker:0 is at step 560"
    assert describe(unknown, told.state) == "worker:1 is at step 260 of this start"
    assert [describe(e, told.state) for e in told.events if isinstance(e, ev.CheckpointSaved)] == [
        "worker:0 has saved /ckpt/ckpt-300 at step 300"
    ]

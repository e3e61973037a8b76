"""Where the time goes, in words: tasks, links, parameter servers, and something to read when all is well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from builders import running
from phalanx.decide.pace import LinkPace, Paces, Places, Samples, TaskPace, paces
from phalanx.decide.slowness import Look, look
from phalanx.names import TaskId
from phalanx.observe.diagnosis import ROWS, looked_back, render
from phalanx.plan.wire import from_wire, to_wire
from phalanx.records.samples import head, to_line
from phalanx.sample import LinkSample, LoadSample, TaskSample

Golden = Callable[[str, str], None]
W = [TaskId("worker", i) for i in range(3)]
PLACES = Places(hosts={W[0]: 0, W[1]: 1}, names={0: "n1", 1: "n2"})


def task(name: TaskId, *, own: float, cores: float) -> TaskPace:
    return TaskPace(task=name, step=0.036, own=own, collective=0.036 - own, cores=cores, sent=3e7, received=3e7)


def link(one: TaskId, other: TaskId, carries: float) -> LinkPace:
    return LinkPace(source=one, target=other, rate=3e7, load=3e7 / carries, carries=carries, rtt=0.0011)


def pair(slow: float) -> Look:
    tasks = (task(W[0], own=0.007, cores=0.13), task(W[1], own=slow, cores=0.13))
    return look(Paces(at=1.0, tasks=tasks, links=(link(W[0], W[1], 353e6), link(W[1], W[0], 698e6))), PLACES)


def test_a_slow_worker_stands_out_and_the_verdict_is_last(golden: Golden):
    golden("observe/diagnosis_slow.txt", render(pair(0.025), width=160))


def test_where_all_is_well_it_says_how_equal_they_are(golden: Golden):
    golden("observe/diagnosis_well.txt", render(pair(0.0073), width=160))


def test_the_share_of_each_ps_is_told_with_the_even_one():
    names = [TaskId("ps", i) for i in range(2)]
    tasks = tuple(TaskPace(task=name, sent=sent, received=0.0) for name, sent in zip(names, (9e6, 1e6), strict=True))
    text = render(look(Paces(tasks=tasks), Places(hosts=dict.fromkeys(names, 0))))
    assert "parameter servers, by bytes: ps:0 90%, ps:1 10% (even: 50%)" in text
    assert "split large variables" in text


def test_of_a_thousand_tasks_those_with_the_most_of_their_own_are_shown():
    tasks = tuple(task(TaskId("worker", i), own=0.001 + i * 1e-6, cores=0.1) for i in range(1000))
    text = render(look(Paces(tasks=tasks), Places(hosts={one.task: 0 for one in tasks})))
    assert "worker:999" in text
    assert "worker:5 " not in text
    assert f"and {1000 - ROWS} more" in text


def test_what_was_not_measured_is_not_spoken_of():
    assert render(Look(paces=Paces(), places=PLACES)) == ""
    text = render(look(Paces(tasks=(TaskPace(task=W[0]), TaskPace(task=W[1]))), PLACES))
    assert "too little was measured to compare: no step was counted of worker:0, worker:1" in text
    known = (TaskPace(task=one, step=0.1, stretches=3, seconds=9.0, steps=90) for one in W[:2])
    text = render(look(Paces(tasks=tuple(known)), PLACES))
    assert "nothing is seen to be slow" in text


def test_what_little_there_is_is_shown_with_who_counts_nothing_and_the_seconds_that_are_missing():
    at = {"task": W[0], "generation": 1, "attempt": 1}
    few = [TaskSample(**at, at=5.0 * count, steps=4 * count, collective=0.1 * count) for count in range(3)]
    loads = {name: [LoadSample(**{**at, "task": name}, at=float(i), cpu=float(i)) for i in range(2)] for name in W[:2]}
    text = render(look(paces(Samples(steps={W[0]: few}, loads=loads), 10.0), PLACES))
    assert "1.2 s" in text, "a step"
    assert "no step was counted of worker:1" in text
    assert "of worker:0 8 steps in 10 s, and some 5 s more are needed" in text


def test_a_look_travels_as_it_is():
    seen = pair(0.025)
    assert from_wire(Look, to_wire(seen)) == seen


def test_a_run_that_has_ended_is_looked_back_at_from_its_samples(tmp_path: Path):
    told = running(hosts=2)
    folder = told.write(tmp_path)
    state = told.state
    lines: dict[Path, list[str]] = {
        folder.task_samples: [head(TaskSample)],
        folder.load_samples: [head(LoadSample)],
        folder.link_samples: [head(LinkSample)],
    }
    for count in range(6):
        at = (state.bound or 0.0) + 5.0 * count
        for name, own in ((W[0], 0.01), (W[1], 0.03)):
            about = {"task": name, "generation": 1, "attempt": 1, "at": at}
            inside = count * 100 * (0.05 - own)
            lines[folder.task_samples] += [to_line(TaskSample(**about, steps=count * 100, collective=inside))]
            lines[folder.load_samples] += [to_line(LoadSample(**about, cpu=count * 3.0, sent=count, received=count))]
        sent = LinkSample(source=W[0], target=W[1], at=at, sent=10**8 * count, busy=0.5 * count, rtt=0.001)
        lines[folder.link_samples] += [to_line(sent)]
    folder.task_samples.parent.mkdir()
    for path, text in lines.items():
        path.write_text("\n".join(text) + "\n")
    seen = looked_back(state, folder)
    assert [one.task for one in seen.verdicts] == [W[1]]
    assert "worker:1 on n1 computes 3.0" in seen.verdicts[0].says
    (found,) = seen.paces.links
    assert (found.carries, found.load) == (2e8, 0.1)

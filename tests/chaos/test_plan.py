"""Faults as they are written, and as a seed draws them."""

from __future__ import annotations

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.chaos.fault import Fault, Moment, check_target, parse_fault
from phalanx.chaos.kinds import KINDS, Aim
from phalanx.chaos.plan import Cast, draw
from phalanx.chaos.strike import STRIKES
from phalanx.errors import InputError
from phalanx.job.units import seconds
from phalanx.names import TaskId

TASKS = (TaskId("chief", 0), TaskId("worker", 0), TaskId("worker", 1), TaskId("my-role", 0))
CAST = Cast(tasks=TASKS, hosts=3, sizes=(1, 4))


def read(text: str) -> Fault:
    return check_target(parse_fault(text, seconds=seconds), tasks=TASKS, hosts=3)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kill:worker:1@5s", Fault(kind="kill", target="worker:1", when=Moment(after=5.0))),
        ("stop:worker:0=2s", Fault(kind="stop", target="worker:0", value=2.0, when=Moment(gap=0.0))),
        ("slow:worker:0-my-role:0", Fault(kind="slow", target="worker:0-my-role:0", when=Moment(gap=0.0))),
        ("clock=-1h@1m", Fault(kind="clock", value=-3600.0, when=Moment(after=60.0))),
        ("disk:agent:2", Fault(kind="disk", target="agent:2", when=Moment(gap=0.0))),
        ("agent:1=2s@1m", Fault(kind="agent", target="1", value=2.0, when=Moment(after=60.0))),
        ("scale=3", Fault(kind="scale", value=3.0, when=Moment(gap=0.0))),
        ("agent:1@/epoch 3/", Fault(kind="agent", target="1", when=Moment(line="epoch 3"))),
        ("lead", Fault(kind="lead", when=Moment(gap=0.0))),
    ],
)
def test_a_fault_is_read_as_it_is_written(text, fault):
    assert read(text) == fault


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("kil:worker:1", "no fault 'kil'", "did you mean kill?"),
        ("kill:worker:7", "there is no task worker:7", "chief:0, worker:0"),
        ("kill", "wants TYPE:INDEX", "chief:0"),
        ("slow:worker:0", "wants two tasks", "worker:0"),
        ("slow:worker:0-worker:0", "wants two tasks", "worker:0"),
        ("kill:worker:0=3s", "kill takes no value", "KIND"),
        ("kill:worker:0@yesterday", "is no duration", "KIND"),
        ("kill:worker:0@/(/", "no regular expression", None),
        ("stop:worker:0=-1s", "cannot last", "KIND"),
        ("agent:3", "no such host", "0, 1, 2"),
        ("disk:worker:0", "no such process", "agent:0"),
        ("lead:1", "lead takes no target", "KIND"),
        ("scale", "wants a number of workers", "scale=3"),
        ("scale=0", "wants a number of workers", "scale=3"),
        ("scale=-1", "cannot last", "KIND"),
        ("KILL!", "cannot be read", "KIND"),
    ],
)
def test_a_fault_that_cannot_be_is_one_clear_error(text, message, hint):
    with pytest.raises(InputError) as wrong:
        read(text)
    assert message in str(wrong.value)
    assert wrong.value.exit_code == 2
    assert hint is None or hint in (wrong.value.hint or "")


def test_every_fault_is_said_in_words_of_its_own_and_never_by_the_name_of_its_target_alone():
    said = [str(Fault(kind=kind)) for kind in ("lead", "launcher", "disk", "clock")]
    assert said == ["kill the lead", "kill the launcher", "fill the disk", "move the clock"]
    assert str(Fault(kind="agent", target="1", value=2.0)) == "kill agent:1 back after 2 s"
    assert str(Fault(kind="disk", target="lead", value=1.0)) == "fill the disk of lead for 1 s"


def test_where_only_one_target_is_possible_it_need_not_be_named():
    two = TASKS[1:3]
    assert check_target(Fault(kind="slow"), tasks=two, hosts=1).target == "worker:0-worker:1"
    assert check_target(Fault(kind="agent"), tasks=two, hosts=1).target == "0"


def test_every_kind_has_somebody_who_does_it():
    assert set(KINDS) == set(STRIKES)


@given(st.integers(), st.integers(0, 40), st.sets(st.sampled_from(sorted(KINDS)), min_size=1))
def test_the_same_seed_draws_the_same_faults_and_each_is_possible(seed, count, kinds):
    names = sorted(kinds)
    drawn = draw(seed, count=count, every=4.0, kinds=names, cast=CAST)
    assert drawn == draw(seed, count=count, every=4.0, kinds=names, cast=CAST)
    assert len(drawn) == count
    workers = 2
    for fault in drawn:
        if fault.kind == "scale":
            assert fault.value != workers
            workers = int(fault.value or 0)
        there = [task for task in TASKS if task.type != "worker"] + [TaskId("worker", n) for n in range(workers)]
        assert check_target(fault, tasks=there, hosts=CAST.hosts) == fault
        assert 2.0 <= (fault.when.gap or 0.0) <= 6.0
    often = collections.Counter(fault.kind for fault in drawn)
    assert max(often.values(), default=0) - min((often[name] for name in names), default=0) <= 1


def test_a_pair_cannot_be_drawn_from_one_task():
    with pytest.raises(InputError, match="no connection to cut"):
        draw(1, count=1, every=1.0, kinds=["slow"], cast=Cast(tasks=TASKS[:1], hosts=1))


def test_a_size_cannot_be_drawn_where_there_is_but_one():
    with pytest.raises(InputError, match="one size"):
        draw(1, count=1, every=1.0, kinds=["scale"], cast=Cast(tasks=TASKS, hosts=1))


def test_a_host_that_is_hit_at_random_comes_back_where_the_job_cannot_do_without_it():
    [fixed] = draw(1, count=1, every=1.0, kinds=["agent"], cast=Cast(tasks=TASKS, hosts=2))
    [elastic] = draw(1, count=1, every=1.0, kinds=["agent"], cast=CAST)
    assert (fixed.value, elastic.value) == (2.0, None)
    assert str(fixed).endswith("back after 2 s")


def test_each_kind_that_hits_a_pair_may_pass_or_blame_one_of_the_two():
    assert {row.takes.name for row in KINDS.values() if row.aim is Aim.PAIR} == {"EITHER"}

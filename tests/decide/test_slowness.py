"""Who makes a training slow: the right one, by how much, and nobody where all are equal."""

from __future__ import annotations

import dataclasses
import random
import statistics
import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phalanx.decide.others import Others
from phalanx.decide.pace import STRETCHES, LinkPace, Paces, Places, Samples, TaskPace, paces
from phalanx.decide.persistence import Streaks, about, settle
from phalanx.decide.slowness import BEGINS, ENDS, Cause, Verdict, judge
from phalanx.names import TaskId
from phalanx.sample import LinkSample, LoadSample, TaskSample
from phalanx.slowevents import SlowEnded, SlowFound

#: As measured on this machine with both cores shared by others: equal workers' own times lie within so much of each
#: other, and what equal links carry within a factor (docs/design, page 9).
NOISE, SPREAD = 0.1, 1.4


def worker(index: int) -> TaskId:
    return TaskId("worker", index)


def trained(owns: Iterable[float], *, network: float = 0.002, busy: float = 1.0) -> tuple[TaskPace, ...]:
    """What workers of these own times do in a synchronous training: each step ends with the last of them."""
    owns = list(owns)
    step = max(owns) + network
    return tuple(
        TaskPace(task=worker(i), step=step, own=own, collective=step - own, cores=busy * own / step)
        for i, own in enumerate(owns)
    )


def ring(carries: Iterable[float], *, bytes_a_step: float = 1e6, step: float = 0.1) -> tuple[LinkPace, ...]:
    """Each sends the next one as much a step."""
    carries = list(carries)
    return tuple(
        LinkPace(
            source=worker(i),
            target=worker((i + 1) % len(carries)),
            rate=bytes_a_step / step,
            load=min(bytes_a_step / one / step, 1.0),
            carries=one,
        )
        for i, one in enumerate(carries)
    )


def on_own_hosts(count: int) -> Places:
    return Places(hosts={worker(i): i for i in range(count)}, names={i: f"n{i}" for i in range(count)})


def on_hosts(*hosts: int) -> Places:
    return Places(
        hosts=dict(map(lambda i, h: (worker(i), h), range(len(hosts)), hosts)), names={h: f"n{h}" for h in hosts}
    )


def test_who_takes_longer_outside_of_collectives_is_named_with_the_factor():
    """The measured case of facts §11: 20 ms more a step; the others spend 92 % of it in the collective."""
    (found,) = judge(Paces(tasks=trained([0.0019, 0.0219])), on_own_hosts(2))
    assert (found.cause, found.task, found.host) == (Cause.TASK, worker(1), 1)
    assert found.factor == pytest.approx(11.5, abs=0.1)
    assert "worker:1 on n1 computes 11.5×" in found.says  # noqa: RUF001 - a factor
    assert found.says.endswith("network is fine")


def test_a_slow_one_that_uses_no_core_waits_for_its_input():
    tasks = trained([0.01, 0.05])
    tasks = (tasks[0], dataclasses.replace(tasks[1], cores=0.1))
    (found,) = judge(Paces(tasks=tasks), on_own_hosts(2))
    assert (found.cause, found.task) == (Cause.TASK, worker(1))
    assert "waits" in found.says
    assert "its input" in found.advice
    gpus = dataclasses.replace(on_own_hosts(2), gpus=frozenset({0, 1}))
    assert "computes" in judge(Paces(tasks=tasks), gpus)[0].says


def test_a_difference_that_costs_little_of_a_step_is_none():
    """Twice as slow, but both are lost in what the network takes."""
    assert judge(Paces(tasks=trained([0.0003, 0.0006], network=0.01)), on_own_hosts(2)) == ()


def test_a_host_is_named_where_all_its_tasks_are_slow_and_a_task_where_it_is_alone():
    places = on_hosts(0, 0, 1, 1)
    (found,) = judge(Paces(tasks=trained([0.01, 0.0105, 0.02, 0.021])), places)
    assert (found.cause, found.task, found.host) == (Cause.HOST, None, 1)
    assert "host n1 computes 2.0×" in found.says  # noqa: RUF001 - a factor
    assert "worker:2, worker:3" in found.says
    (found,) = judge(Paces(tasks=trained([0.01, 0.0105, 0.02, 0.0101])), places)
    assert (found.cause, found.task) == (Cause.TASK, worker(2))


def test_two_slow_ones_are_both_named_the_dearer_one_first():
    found = judge(Paces(tasks=trained([0.01, 0.02, 0.03, 0.01, 0.01])), on_own_hosts(5))
    assert [one.task for one in found] == [worker(2), worker(1)]


def test_a_slow_link_is_named_with_both_rates():
    (found,) = judge(Paces(tasks=trained([0.01] * 3, network=0.1), links=ring([110e6, 11e6, 112e6])), on_own_hosts(3))
    assert (found.cause, found.task, found.peer) == (Cause.LINK, worker(1), worker(2))
    assert found.says.startswith("link n1–n2 carries 11 MB/s, others 110 MB/s")  # noqa: RUF001 - as a link is written
    assert found.factor == pytest.approx(10.1, abs=0.1)


def test_a_slow_link_that_is_seldom_busy_costs_nothing_and_is_none():
    links = ring([110e6, 11e6, 112e6], step=2.0)
    assert judge(Paces(links=links), on_own_hosts(3)) == ()


def test_a_link_that_carries_only_requests_is_no_slow_one():
    """Acknowledgements are delayed by up to 40 ms: 124 bytes seem to take as long (measured)."""
    requests = LinkPace(source=worker(1), target=worker(0), rate=11e3, load=0.94, carries=12e3)
    assert judge(Paces(links=(*ring([110e6, 111e6, 112e6]), requests)), on_own_hosts(3)) == ()


def test_all_links_of_a_host_are_the_hosts_network():
    places = on_own_hosts(4)
    (found,) = judge(Paces(links=ring([110e6, 11e6, 11.5e6, 112e6])), places)
    assert (found.cause, found.host) == (Cause.HOST_LINKS, 2)
    assert "the network of host n2 carries 11 MB/s, the others' 110 MB/s" in found.says


def test_a_network_that_is_slow_everywhere_is_everybodys():
    """R70: several nodes are slower than one, and no link is the culprit."""
    paces_ = Paces(tasks=trained([0.01, 0.0101, 0.0099], network=0.09), links=ring([11e6, 11.2e6, 11.1e6]))
    (found,) = judge(paces_, on_own_hosts(3))
    assert found.cause is Cause.NETWORK
    assert "90% of each step is communication" in found.says
    assert "the links carry 11 MB/s; 3 workers do what 0.3 would do alone" in found.says


def test_what_does_not_leave_the_machine_is_no_network():
    """On loopback a crowded machine makes links busy: 25 MB/s at more than half of the time were seen (page 9)."""
    paces_ = Paces(tasks=trained([0.01, 0.0101], network=0.09), links=ring([11e6, 11.2e6]))
    assert judge(paces_, on_hosts(0, 0)) == ()
    here = dataclasses.replace(on_own_hosts(2), addresses={0: "127.0.0.1", 1: "127.0.0.1"})
    assert judge(paces_, here) == ()
    there = dataclasses.replace(here, addresses={0: "10.0.0.1", 1: "10.0.0.2"})
    assert [one.cause for one in judge(paces_, there)] == [Cause.NETWORK]


def test_collectives_that_take_long_over_links_that_idle_are_not_the_networks():
    paces_ = Paces(tasks=trained([0.001, 0.001], network=0.09), links=ring([1e9, 1e9], bytes_a_step=1e6))
    assert judge(paces_, on_own_hosts(2)) == ()


def test_all_that_wait_outside_of_collectives_wait_for_their_input():
    (found,) = judge(Paces(tasks=trained([0.05, 0.051], busy=0.1)), on_own_hosts(2))
    assert found.cause is Cause.INPUT
    assert "dataset.prefetch" in found.advice


def served(*bytes_: float) -> tuple[TaskPace, ...]:
    return tuple(
        TaskPace(task=TaskId("ps", i), sent=one / 2, received=one / 2, cores=0.1) for i, one in enumerate(bytes_)
    )


def test_a_ps_with_all_the_variables_is_told_with_the_partitioner():
    """R71: one large variable, three ps."""
    places = Places(hosts={TaskId("ps", i): 0 for i in range(3)})
    (found,) = judge(Paces(tasks=served(95e6, 3e6, 2e6)), places)
    assert (found.cause, found.task) == (Cause.SERVER, TaskId("ps", 0))
    assert "ps:0 serves 95% of the bytes (95 MB/s), 2.9× its even share of 3 ps" in found.says  # noqa: RUF001 - a factor
    assert "MinSizePartitioner(max_shards=3)" in found.advice
    assert judge(Paces(tasks=served(40e6, 33e6, 30e6)), places) == ()
    assert judge(Paces(tasks=served(950, 30, 20)), places) == ()


def test_a_ps_with_all_the_variables_that_idles_all_the_same_costs_nothing():
    places = Places(hosts={TaskId("ps", 0): 0, TaskId("ps", 1): 0, worker(0): 0})

    def link(load: float) -> LinkPace:
        return LinkPace(source=TaskId("ps", 0), target=worker(0), rate=5e6, load=load, carries=5e6 / load)

    tasks = served(5e6, 1e4)
    assert judge(Paces(tasks=tasks, links=(link(0.05),)), places) == ()
    assert [one.cause for one in judge(Paces(tasks=tasks, links=(link(0.5),)), places)] == [Cause.SERVER]


@settings(deadline=None)
@given(st.integers(2, 12), st.floats(1e-4, 1.0), st.floats(0, 1.0), st.integers(0), st.integers(1, 4))
def test_equal_workers_have_no_verdict_whatever_the_noise(count: int, own: float, network: float, seed: int, per: int):
    noise = random.Random(seed)  # noqa: S311 - noise
    owns = [own * noise.uniform(1 - NOISE, 1 + NOISE) for _ in range(count)]
    carries = [1e8 * noise.uniform(1, SPREAD) for _ in range(count)]
    links = ring(carries, step=own + network + 0.1)
    places = on_hosts(*(i // per for i in range(count)))
    assert not [
        one
        for one in judge(Paces(tasks=trained(owns, network=network), links=links), places)
        if one.cause is not Cause.NETWORK
    ]


@settings(deadline=None)
@given(st.integers(2, 12), st.floats(1e-3, 1.0), st.floats(1.7, 50.0), st.data())
def test_one_slowed_worker_is_the_only_one_named(count: int, own: float, factor: float, data: st.DataObject):
    slow, noise = data.draw(st.integers(0, count - 1)), random.Random(data.draw(st.integers(0)))  # noqa: S311 - noise
    owns = [own * noise.uniform(1 - NOISE, 1 + NOISE) * (factor if i == slow else 1) for i in range(count)]
    (found,) = judge(Paces(tasks=trained(owns, network=own * 0.1)), on_own_hosts(count))
    assert (found.cause, found.task) == (Cause.TASK, worker(slow))
    assert found.factor == pytest.approx(factor, rel=2.5 * NOISE)


@settings(deadline=None)
@given(st.integers(3, 12), st.floats(5.0, 100.0), st.data())
def test_one_slowed_link_is_the_only_one_named(count: int, factor: float, data: st.DataObject):
    slow, noise = data.draw(st.integers(0, count - 1)), random.Random(data.draw(st.integers(0)))  # noqa: S311 - noise
    carries = [1e8 * noise.uniform(1, SPREAD) / (factor if i == slow else 1) for i in range(count)]
    (found,) = judge(Paces(links=ring(carries, step=0.01 * factor * 0.8)), on_own_hosts(count))
    assert found.cause is Cause.LINK
    assert {found.task, found.peer} == {worker(slow), worker((slow + 1) % count)}


@settings(deadline=None)
@given(
    st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=9),
    st.lists(st.integers(0, 3), min_size=9, max_size=9),
    st.randoms(),
)
def test_the_order_of_tasks_and_links_changes_nothing(owns: list[float], hosts: list[int], chance: random.Random):
    tasks, links = [*trained(owns)], [*ring([1e8 / (1 + 30 * own) for own in owns])]
    places = on_hosts(*hosts[: len(owns)])
    before = judge(Paces(tasks=tuple(tasks), links=tuple(links)), places)
    chance.shuffle(tasks)
    chance.shuffle(links)
    after = judge(Paces(tasks=tuple(tasks), links=tuple(links)), places)
    assert sorted(before, key=str) == sorted(after, key=str)


@settings(deadline=None)
@given(st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=9))
def test_what_is_found_anew_is_found_the_more_where_it_stands(owns: list[float]):
    found = judge(Paces(tasks=trained(owns)), on_own_hosts(len(owns)))
    again = judge(Paces(tasks=trained(owns)), on_own_hosts(len(owns)), {one.about for one in found})
    assert {one.about for one in found} <= {one.about for one in again}


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 20), st.floats(0, 1), min_size=2), st.data())
def test_the_middle_of_the_others_is_their_median(values: dict[int, float], data: st.DataObject):
    without = data.draw(st.sets(st.sampled_from(sorted(values)), max_size=len(values) - 1))
    rest = [value for name, value in values.items() if name not in without]
    assert Others(values).middle(without) == statistics.median_high(rest)
    assert Others(values).middle(without, low=True) == statistics.median_low(rest)


def test_ten_thousand_tasks_are_judged_before_anybody_notices():
    """The lead's loop stands still meanwhile; agents are patient for ten seconds."""
    tasks = trained([0.01 + i % 7 * 1e-4 for i in range(9_999)] + [0.05])
    places, links = on_hosts(*(i // 8 for i in range(10_000))), ring([1e8 + i % 7 for i in range(10_000)])
    began = time.process_time()
    (found,) = judge(Paces(tasks=tasks, links=links), places)
    assert time.process_time() - began < 2.0
    assert found.task == worker(9_999)


def test_every_limit_that_ends_a_verdict_is_below_the_one_that_begins_it():
    pairs = zip(dataclasses.astuple(BEGINS), dataclasses.astuple(ENDS), strict=True)
    assert all(begins > ends for begins, ends in pairs)


# From samples to paces ------------------------------------------------------------------------------------------------


def steps(
    task: TaskId, *, own: float, step: float, every: float = 5.0, count: int = 5, pause: int = -1
) -> list[TaskSample]:
    """As often as told; the stretch of number `pause` holds a checkpoint of three seconds."""
    found, at, done, inside = [], 1000.0, 0, 0.0
    for number in range(count):
        found.append(TaskSample(task=task, generation=1, attempt=1, at=at, steps=done, collective=inside))
        more = int((every - (3.0 if number == pause else 0.0)) / step)
        at, done, inside = at + every, done + more, inside + more * (step - own)
    return found


def pace(samples: Iterable[TaskSample], loads: Iterable[LoadSample] = ()) -> TaskPace:
    (found,) = paces(Samples(steps={worker(0): [*samples]}, loads={worker(0): [*loads]}), 0.0).tasks
    return found


def test_a_pause_in_one_stretch_changes_nothing():
    calm, paused = pace(steps(worker(0), own=0.01, step=0.02)), pace(steps(worker(0), own=0.01, step=0.02, pause=2))
    assert calm.own == pytest.approx(0.01, rel=0.01)
    assert paused.own == pytest.approx(calm.own, rel=0.01)


def test_too_few_samples_and_those_of_another_attempt_say_nothing():
    few = steps(worker(0), own=0.01, step=0.02, count=STRETCHES)
    assert pace(few).own is None
    again = [dataclasses.replace(one, attempt=2, at=one.at + 60) for one in few]
    assert pace([*few, *again]).own is None


def test_a_task_without_collectives_has_a_step_and_no_own_time():
    blind = [dataclasses.replace(one, collective=None) for one in steps(worker(0), own=0.01, step=0.02)]
    found = pace(blind)
    assert found.step == pytest.approx(0.02, rel=0.01)
    assert (found.own, found.share) == (None, None)


def test_a_load_is_what_was_used_in_between():
    loads = [
        LoadSample(task=worker(0), generation=1, attempt=1, at=10.0 * i, cpu=5.0 * i, sent=100 * i, received=0)
        for i in range(3)
    ]
    found = pace([], loads)
    assert (found.cores, found.sent, found.received) == (0.5, 10.0, 0.0)


def test_what_a_link_carries_is_counted_while_it_is_busy_and_a_new_connection_is_none():
    def link(*counts: tuple[int, float | None]) -> tuple[LinkPace, ...]:
        found = [
            LinkSample(source=worker(0), target=worker(1), at=10.0 * i, sent=sent, busy=busy)
            for i, (sent, busy) in enumerate(counts)
        ]
        return paces(Samples(links={(worker(0), worker(1)): found}), 0.0).links

    (found,) = link((0, 0.0), (10_000, 1.0), (20_000, 2.0))
    assert (found.rate, found.load, found.carries) == (1000.0, 0.1, 10_000.0)
    (old,) = link((0, None), (10_000, None))
    assert (old.rate, old.load, old.carries) == (1000.0, None, None)
    assert link((10_000, 1.0), (500, 0.1)) == ()


# When it is told ------------------------------------------------------------------------------------------------------

VERDICT = Verdict(cause=Cause.TASK, task=worker(1), host=1, factor=2.0, says="worker:1 is slow", advice="look")


def told(looks: Iterable[bool]) -> list[str]:
    """`+` where it is told, `-` where it is taken back, `.` where nothing is said."""
    streaks, holding, said = Streaks(), [], []
    for number, seen in enumerate(looks):
        streaks, events = settle(streaks, [VERDICT] if seen else [], holding, generation=1, now=float(number))
        said.append("".join("+" if isinstance(one, SlowFound) else "-" for one in events) or ".")
        for event in events:
            assert about(event) == VERDICT.about
            holding = [event] if isinstance(event, SlowFound) else []
    return said


def test_a_verdict_is_told_at_the_second_look_and_taken_back_at_the_second_without_it():
    assert "".join(told([True, True, True, False, True, False, False, False])) == ".+....-."


def test_a_verdict_that_comes_and_goes_is_not_told():
    assert set(told([True, False] * 10)) == {"."}


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=40))
def test_what_is_told_and_taken_back_takes_turns(looks: list[bool]):
    said = [one for one in told(looks) if one != "."]
    assert said == ["+", "-"] * (len(said) // 2) + ["+"] * (len(said) % 2)


def test_the_end_says_what_it_is_about():
    (_, (begins,)) = settle(Streaks({VERDICT.about: 1}), [VERDICT], [], generation=3, now=1.0)
    assert isinstance(begins, SlowFound)
    (_, (ends,)) = settle(Streaks({VERDICT.about: 1}), [], [begins], generation=3, now=2.0)
    assert isinstance(ends, SlowEnded)
    assert (ends.about, ends.generation) == (begins.about, 3)


def crowded(tasks: Iterable[TaskPace], *, busy: float = 2.0, cpus: int = 2) -> tuple[TaskPace, ...]:
    """On machines of which so many CPUs are busy."""
    return tuple(dataclasses.replace(one, busy=busy, cpus=cpus) for one in tasks)


ONE_HOST = on_hosts(0, 0)


def test_where_others_take_the_cores_nobody_is_told_to_look_at_the_input():
    tasks = trained([0.1, 0.1], network=0.002, busy=0.2)
    assert [one.cause for one in judge(Paces(tasks=tasks), ONE_HOST)] == [Cause.INPUT]
    (found,) = judge(Paces(tasks=crowded(tasks)), ONE_HOST)
    assert (found.cause, found.host, found.factor) == (Cause.CROWD, 0, pytest.approx(0.8, abs=0.01))
    assert found.says.startswith("other programs take 80% of the 2 cores of n0")
    assert "prefetch" not in found.advice


def test_a_core_that_is_free_or_busy_for_the_run_itself_is_no_crowd():
    waiting = trained([0.1, 0.1], network=0.002, busy=0.2)
    assert [one.cause for one in judge(Paces(tasks=crowded(waiting, busy=1.4)), ONE_HOST)] == [Cause.INPUT]
    own = crowded(trained([0.05, 0.1], busy=1.0))
    assert [one.cause for one in judge(Paces(tasks=own), ONE_HOST)] == [Cause.TASK]


def test_two_hosts_of_one_machine_are_no_crowd_for_each_other():
    tasks = crowded(trained([0.05, 0.1], busy=1.0))
    places = dataclasses.replace(on_own_hosts(2), addresses={0: "10.0.0.1", 1: "10.0.0.1"})
    assert [one.cause for one in judge(Paces(tasks=tasks), places)] == [Cause.TASK]


def test_in_a_crowd_a_worker_is_slow_only_where_its_own_computing_is_what_differs():
    tasks = trained([0.05, 0.105], busy=0.2)
    same = tuple(dataclasses.replace(one, cores=0.1) for one in tasks)
    (found,) = judge(Paces(tasks=crowded(same)), ONE_HOST)
    assert found.cause is Cause.CROWD
    more = (dataclasses.replace(tasks[0], cores=0.1), dataclasses.replace(tasks[1], cores=0.6))
    (found,) = judge(Paces(tasks=crowded(more)), ONE_HOST)
    assert (found.cause, found.task) == (Cause.TASK, worker(1))


def test_a_worker_far_slower_than_others_in_the_same_crowd_is_named():
    tasks = trained([0.006, 0.026])
    tasks = crowded(dataclasses.replace(one, cores=0.13) for one in tasks)
    (found,) = judge(Paces(tasks=tasks), ONE_HOST)
    assert (found.cause, found.task) == (Cause.TASK, worker(1))


def test_a_host_that_others_crowd_is_named_with_them_and_not_its_workers():
    tasks = [dataclasses.replace(one, cores=0.2) for one in trained([0.02, 0.02, 0.09, 0.09])]
    tasks = [*tasks[:2], *crowded(tasks[2:])]
    (found,) = judge(Paces(tasks=tuple(tasks)), on_hosts(0, 0, 1, 1))
    assert (found.cause, found.host) == (Cause.CROWD, 1)


def test_thousands_that_are_late_in_crowds_are_judged_before_anybody_notices():
    tasks = trained([0.1 if i % 3 == 0 else 0.05 for i in range(10_000)])
    began = time.process_time()
    found = judge(Paces(tasks=crowded(tasks, busy=15.0, cpus=16)), on_own_hosts(10_000))
    assert time.process_time() - began < 2.0
    assert {one.cause for one in found} == {Cause.TASK}


def test_what_a_machine_was_busy_with_comes_from_the_first_and_the_last_sample():
    loads = [
        LoadSample(task=worker(0), generation=1, attempt=1, at=at, cpu=at, busy=at * 1.5, cpus=2) for at in (0, 10)
    ]
    (found,) = paces(Samples(loads={worker(0): loads}), 10.0).tasks
    assert (found.cores, found.busy, found.cpus) == (1.0, 1.5, 2)

"""Standbys for the next generation: when they are started, how many, for whom, and what ends them. In virtual time."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from phalanx import events as ev
from phalanx.agent.children import Child, Exited, Started
from phalanx.agent.life import Life
from phalanx.agent.machine import Machine, Memory
from phalanx.agent.pool import BACK_OFF, CALM, FAILURES, LOOK, Bounds, Pool
from phalanx.agent.prestart import Waiting
from phalanx.agent.running import Running
from phalanx.names import TaskId
from phalanx.protocol.messages import StartTask

pytestmark = pytest.mark.looptime

GB = 1_000_000_000
ARGV = ("python", "train.py")


class FakeStandby:
    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self.ready = False

    async def wait_ready(self) -> bool:
        await self.heard.wait()
        return self.ready

    def imported(self) -> None:
        self.ready = True
        self.heard.set()

    def discard(self) -> None:
        self.heard.set()


class FakeMachine(Machine):
    def __init__(self) -> None:
        super().__init__()
        self.free = 20 * GB
        self.rss = 0
        self.back: list[int] = []
        self.up: list[int] = []

    def memory(self) -> Memory:
        return Memory(total=24 * GB, available=self.free)

    def unique(self, pid: int) -> int:
        return 187_000_000

    def resident(self, pid: int) -> int:
        return self.rss

    def step_back(self, pid: int) -> None:
        self.back.append(pid)

    def step_up(self, pid: int) -> None:
        self.up.append(pid)


class Bench:
    """A pool with made-up processes that are ready `takes` seconds after their start."""

    def __init__(self, cwd: Path, *, takes: float = 2.0, fit: bool = True, first: tuple[Waiting, ...] = (), **bounds):
        self.cwd, self.takes, self.fit = cwd, takes, fit
        self.started: list[Waiting] = []
        self.killed: list[Waiting] = []
        self.said: list[ev.Event] = []
        self.machine = FakeMachine()
        self.dies_at_once = False
        self.pool = Pool(
            first,
            host=0,
            cwd=str(cwd),
            bounds=Bounds(**bounds),
            start=self.start,
            kill=self.killed.append,
            say=self.said.append,
            machine=self.machine,
        )

    def start(self, *, name, argv, env, imports) -> Waiting | None:
        if not self.fit:
            return None
        waiting = made(name, argv, env, pid=1000 + len(self.started))
        self.started.append(waiting)
        loop = asyncio.get_running_loop()
        loop.call_soon(self.pool.on_child, Started(id=name, pid=waiting.child.pid, time=0.0))
        if self.dies_at_once:
            loop.call_later(0.1, self.die, waiting)
        else:
            loop.call_later(self.takes, waiting.standby.imported)
        return waiting

    def die(self, waiting: Waiting, number: int = signal.SIGKILL) -> None:
        waiting.child.alive = False
        self.pool.on_child(
            Exited(
                id=waiting.child.id,
                pid=waiting.child.pid,
                time=0.0,
                code=None,
                signal=number,
                core=False,
                user=0.0,
                system=0.0,
                max_rss=0,
            )
        )
        waiting.standby.heard.set()

    def counts(self) -> list[int]:
        return [event.count for event in self.said if isinstance(event, ev.StandbysReady)]

    def notes(self) -> str:
        return "; ".join(event.message for event in self.said if isinstance(event, ev.Noted))


def made(name: str, argv=ARGV, env=None, *, pid: int = 7, ready: bool = False) -> Waiting:
    out, err = os.pipe()  # two descriptors of its own
    child = Child(name, {})
    child.pid = pid
    standby = FakeStandby()
    if ready:
        standby.imported()
    return Waiting(argv=argv, env=dict(env or {}), standby=standby, child=child, life=Life(), out=out, err=err)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made_here: list[Bench] = []

    def make(**more) -> Bench:
        made_here.append(Bench(tmp_path, **more))
        return made_here[-1]

    yield make
    for each in made_here:
        each.pool.close()


def worker(index: int, *, argv=ARGV, env=None, again: bool = True, listens: bool = True) -> Running:
    task = TaskId("worker", index)
    own = {"PHALANX_RUN": "r", "PHALANX_TASK": str(task), "PHALANX_GENERATION": "1", "PYTHONUNBUFFERED": "1"}
    running = Running(StartTask(id=task, argv=argv, env=own | (env or {}), port=1, again=again), 1, None)
    running.started.set()
    if listens:
        running.listens.set()
    return running


async def test_standbys_come_one_at_a_time_once_the_generation_has_come_up_and_are_told(bench):
    here = bench(imports={"worker": ("import tensorflow",)})
    tasks = [worker(0), worker(1, listens=False)]
    here.pool.follow(tasks)
    await asyncio.sleep(CALM * 2)
    assert here.started == []
    tasks[1].listens.set()
    await asyncio.sleep(CALM + 1)
    assert len(here.started) == 1
    await asyncio.sleep(1.5)
    assert len(here.started) == 2
    await asyncio.sleep(60)
    assert len(here.started) == 2
    told = [event for event in here.said if isinstance(event, ev.StandbysReady)]
    assert [(event.count, event.bytes) for event in told] == [(2, 374_000_000)]


async def test_a_standby_steps_back_while_it_imports_and_is_itself_before_anybody_gets_it(bench):
    here = bench(takes=10)
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(CALM + 1)
    assert (here.machine.back, here.machine.up) == ([1000], [])
    await asyncio.sleep(10)
    assert (here.machine.back, here.machine.up) == ([1000, 1001], [1000])
    ready, importing = (here.pool.take(TaskId("worker", n), ARGV, worker(n).task.env) for n in (0, 1))
    assert (ready, importing) == tuple(here.started)
    assert here.machine.up[-1] == 1001


async def test_it_knows_nothing_that_is_one_tasks_own_so_any_task_with_this_command_may_have_it(bench):
    here = bench()
    here.pool.follow([worker(3)])
    await asyncio.sleep(CALM + 5)
    assert here.started[0].env == {"PHALANX_RUN": "r", "PYTHONUNBUFFERED": "1"}
    renumbered = worker(0, env={"TF_NUM_INTEROP_THREADS": "1"}).task.env
    assert here.pool.take(TaskId("worker", 0), ARGV, renumbered) is here.started[0]
    assert here.pool.take(TaskId("worker", 0), ARGV, renumbered) is None


@pytest.mark.parametrize(
    ("argv", "env"),
    [(("python", "other.py"), {}), (ARGV, {"CUDA_VISIBLE_DEVICES": "1"}), (ARGV, {"KERAS_BACKEND": "jax"})],
)
async def test_another_command_or_another_variable_that_imports_may_read_gets_no_standby(bench, argv, env):
    here = bench()
    here.pool.follow([worker(0)])
    await asyncio.sleep(CALM + 5)
    assert here.pool.take(TaskId("worker", 0), argv, worker(0, env=env).task.env) is None


async def test_a_script_that_has_been_written_since_gets_no_standby(bench, tmp_path):
    (tmp_path / "train.py").write_text("import tensorflow\n")
    here = bench()
    here.pool.follow([worker(0)])
    await asyncio.sleep(CALM + 5)
    (tmp_path / "train.py").write_text("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tensorflow\n")
    assert here.pool.take(TaskId("worker", 0), ARGV, worker(0).task.env) is None


async def test_each_task_of_the_first_generation_gets_its_own(bench):
    first = tuple(made(f"w{n}", env=dict(worker(n).task.env), ready=n == 0) for n in (0, 1))
    here = bench(first=first)
    assert here.pool.take(TaskId("worker", 1), ARGV, worker(1).task.env) is first[1]
    assert here.pool.take(TaskId("worker", 0), ARGV, worker(0).task.env) is first[0]


@pytest.mark.parametrize(("bounds", "most"), [({"count": 0}, 0), ({"count": 1}, 1), ({"count": 9}, 3), ({}, 3)])
async def test_never_more_than_the_number_and_never_more_than_tasks(bench, bounds, most):
    here = bench(**bounds)
    here.pool.follow([worker(n) for n in range(3)])
    await asyncio.sleep(300)
    assert len(here.started) == most


async def test_none_where_the_command_changes_or_cannot_stand_by(bench):
    changing, shell = bench(), bench(fit=False)
    changing.pool.follow([worker(0, again=False)])
    shell.pool.follow([worker(0, argv=("./train.sh",))])
    await asyncio.sleep(60)
    assert changing.started == shell.started == changing.said == shell.said == []


async def test_a_fifth_of_the_memory_stays_free(bench):
    here = bench()
    here.machine.free = int(24 * GB * 0.2) + 150_000_000  # room for no TensorFlow
    here.pool.follow([worker(0)])
    await asyncio.sleep(60)
    assert here.started == []
    here.machine.free += 100_000_000
    await asyncio.sleep(LOOK + 3)
    assert len(here.started) == 1


async def test_what_tasks_were_promised_counts_as_taken_as_far_as_they_have_not_taken_it(bench):
    here = bench(memory={"worker": 8 * GB})
    here.machine.free, here.machine.rss = 20 * GB, GB
    here.pool.follow([worker(0), worker(1), worker(2)])  # 21 GB are still owed
    await asyncio.sleep(60)
    assert here.started == []
    here.machine.rss, here.machine.free = 7 * GB, 10 * GB
    await asyncio.sleep(LOOK + 10)
    assert len(here.started) == 3


async def test_standbys_make_room_when_the_memory_is_needed_and_do_not_come_back(bench):
    here = bench()
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(CALM + 10)
    here.machine.free = 4 * GB
    await asyncio.sleep(LOOK + 1)
    assert here.killed == here.started
    assert here.counts() == [2, 0]
    assert "less than 20% of the memory was free" in here.notes()
    here.machine.free = 20 * GB
    await asyncio.sleep(100)
    assert len(here.started) == 2


async def test_one_that_is_killed_is_replaced_after_a_pause(bench):
    here = bench()
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(CALM + 10)
    here.die(here.started[0])
    await asyncio.sleep(BACK_OFF - 0.1)
    assert len(here.started) == 2
    await asyncio.sleep(LOOK)
    assert len(here.started) == 3
    assert here.counts() == [2, 1, 2]
    assert here.pool.take(TaskId("worker", 0), ARGV, worker(0).task.env) in here.started[1:]


async def test_standbys_that_keep_dying_are_given_up_with_one_word(bench):
    here = bench()
    here.dies_at_once = True
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(300)
    assert len(here.started) == FAILURES
    assert here.notes() == "no more standbys for the next generation: 3 have been killed by signal 9"
    assert here.counts() == []


async def test_the_pool_fills_again_for_each_generation(bench):
    here = bench()
    for generation in (1, 2, 3):
        here.pool.follow([worker(0), worker(1)])
        await asyncio.sleep(CALM + 10)
        assert len(here.started) == 2 * generation
        taken = [here.pool.take(TaskId("worker", n), ARGV, worker(n).task.env) for n in (0, 1)]
        assert taken == here.started[-2:]
    assert here.counts() == [2, 2, 2]


async def test_standbys_that_nobody_took_and_nobody_will_are_ended(bench):
    first = made("w0", argv=("python", "other.py"), ready=True)
    here = bench(first=(first,))
    assert here.pool.take(TaskId("worker", 0), ARGV, worker(0).task.env) is None
    here.pool.follow([worker(0), worker(1)])
    assert here.killed == [first]
    await asyncio.sleep(CALM + 10)
    here.pool.follow([worker(0)])  # the group has shrunk
    await asyncio.sleep(CALM + 1)
    assert here.killed[1:] == here.started[:1]
    assert here.counts() == [2, 1]


async def test_nothing_is_started_once_the_next_generation_is_due_and_nothing_is_left_at_the_end(bench):
    here = bench()
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(CALM + 1)
    here.pool.take(TaskId("worker", 0), ("another",), {})
    await asyncio.sleep(100)
    assert len(here.started) == 1
    here.pool.close()
    assert here.killed == here.started


async def test_where_no_generation_follows_every_standby_goes_and_the_lead_hears_it(bench):
    here = bench()
    here.pool.follow([worker(0), worker(1)])
    await asyncio.sleep(CALM + 60)
    here.pool.no_more()
    await asyncio.sleep(60)
    assert here.counts() == [2, 0]
    assert len(here.killed) == 2

"""Cores that a run holds against others, and gives up while others run on them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlines import a_host
from phalanx.agent import pins
from phalanx.agent.crowd import BUSY, CALM, FREE, LOOK, Crowd, Meter
from phalanx.agent.pins import Pins
from phalanx.agent.reservation import Reservation
from phalanx.agent.running import Running
from phalanx.names import TaskId
from phalanx.protocol.messages import StartTask

pytestmark = pytest.mark.real  # sockets of the machine


def task(*cpus: int, index: int = 0) -> StartTask:
    return StartTask(id=TaskId("worker", index), argv=("python",), env={}, cpus=cpus)


@pytest.fixture
def name():
    """Of cores that no run of this machine knows."""
    return f"\0phalanx.test.{uuid.uuid4()}.{{}}"


@pytest.fixture
def reservation(name):
    """Makes reservations of different runs."""
    made = []

    def make() -> Reservation:
        made.append(Reservation(name))
        return made[-1]

    yield make
    for one in made:
        one.keep(())


def host(count: int = 4):
    return a_host(cpus=count, nodes=(tuple((cpu,) for cpu in range(count)),))


def test_what_one_holds_another_does_not_get_until_it_is_let_go(reservation):
    first, second = reservation(), reservation()
    assert first.take((0, 1)) == {0, 1}
    assert first.take((1,)) == {1}
    assert second.take((1, 2)) == {2}
    first.keep((0,))
    assert second.take((1,)) == {1}


def test_a_dead_process_holds_nothing(name, reservation):
    bind = f"socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind({name.format(5)!r})"
    code = f"import socket; s = {bind}; print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        assert reservation().take((5,)) == set()
        holder.kill()
        holder.wait()
    assert reservation().take((5,)) == {5}


def test_a_run_takes_what_others_have_left_and_nothing_where_that_is_less_than_half(reservation):
    other = reservation()
    other.take((0,))
    some = Pins(host(), reservation())
    assert some.host.nodes == (((1,), (2,), (3,)),)
    none = Pins(host(), reservation())
    assert none.host.nodes == ()
    assert none.host.unpinned == "another run holds 4 of its 4 cores"


def test_cores_that_no_task_is_given_are_another_runs(reservation):
    mine = Pins(host(), reservation())
    assert mine.prepare([task(0), task(1, index=1)], whole=True) == ""
    assert reservation().take(range(4)) == {2, 3}


def test_cores_lost_meanwhile_are_named_and_the_task_is_left_free(reservation):
    mine, other = Pins(host(), reservation()), reservation()
    mine.prepare([task(0)], whole=True)
    other.take((1,))
    said = mine.prepare([task(0), task(1, index=1)], whole=True)
    assert said.startswith("not pinned: worker:1; CPUs 1 are another run's by now")
    assert (mine.of(task(0)), mine.of(task(1))) == ((0,), ())


def test_others_on_our_cores_are_given_way_at_once_and_longer_each_time():
    crowd = Crowd()
    assert not crowd.see(0.0, BUSY)
    assert crowd.see(2.0, 0.9)
    assert crowd.crowded
    changes = [now for now in range(4, 200, 2) if crowd.see(float(now), 0.0)]
    assert changes == [4 + CALM]
    again = [now for now in range(200, 400, 2) if crowd.see(float(now), 0.9 if now < 210 else 0.0)]
    assert again == [200, 210 + 2 * CALM]


@given(st.lists(st.floats(0, 1), max_size=60))
def test_who_gives_way_has_seen_others_each_time(series):
    crowd, seen = Crowd(), []
    for at, others in enumerate(series):
        seen.append(others)
        if crowd.see(at * LOOK, others):
            if crowd.crowded:
                assert others > BUSY
            else:
                assert max(seen[-int(CALM / LOOK) :]) <= FREE


def test_what_others_use_is_all_without_our_own(tmp_path):
    ticks = os.sysconf("SC_CLK_TCK")

    def at(cpu0: float, cpu1: float, own: float) -> None:
        lines = [f"cpu{n} {int(used * ticks)} 0 0 999 9 9 9 9 0 0" for n, used in enumerate((cpu0, cpu1))]
        (tmp_path / "stat").write_text("cpu 1 2 3\n" + "\n".join(lines) + "\nintr 5\n")
        (tmp_path / "7").mkdir(exist_ok=True)
        (tmp_path / "7/stat").write_text(f"7 (a (b) c) S {'0 ' * 10}{int(own * ticks)} 0 0 0\n")

    meter = Meter(tmp_path)
    at(10, 20, 5)
    assert meter.look(100.0, (0, 1), (7,)) is None
    at(12, 21, 7)
    assert meter.look(102.0, (0, 1), (7, 8)) == pytest.approx(0.25)
    at(14, 21, 7)
    assert meter.look(104.0, (0,), (7,)) == pytest.approx(1.0)


async def test_a_pinned_task_is_set_free_while_others_use_its_core_and_pinned_again_afterwards(
    reservation, monkeypatch
):
    mask = os.sched_getaffinity(0)
    if len(mask) < 2:
        pytest.skip("one core: there is nothing to pin to")
    cpu = min(mask)
    monkeypatch.setattr(pins, "LOOK", 0.01)
    mine = Pins(a_host(cpus=len(mask), nodes=(tuple((one,) for one in sorted(mask)),)), reservation())
    others = iter([0.9, *[0.0] * 10_000])
    monkeypatch.setattr(mine._meter, "look", lambda *_: next(others))
    monkeypatch.setattr(mine._crowd, "_patience", 0.05)
    code = "import threading; t = threading.Thread(target=input); t.start(); t.join()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:  # noqa: ASYNC220 - at once
        running = Running(task(cpu), 1, None)
        running.pid = child.pid
        mine.prepare([running.task], whole=True)
        mine.bind(child.pid, running.task)
        assert os.sched_getaffinity(child.pid) == {cpu}
        said: list[str] = []
        masks = {}

        def note(message: str) -> None:
            said.append(message)
            masks[len(said)] = os.sched_getaffinity(child.pid)

        mine.follow(running, note)
        async with asyncio.timeout(30):
            while len(said) < 2:
                await asyncio.sleep(0.01)
        running.ended.set()
        mine.close()
        child.communicate(b"\n")
    assert said[0] == "not pinned any more: worker:0; others take 90% of their cores' time"
    assert said[1] == "pinned again: worker:0; nobody else uses their cores"
    assert masks == {1: mask, 2: {cpu}}

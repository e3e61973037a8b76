"""What the life lines of a host's tasks say to the lead."""

from __future__ import annotations

import dataclasses
import math
import struct
import time

import pytest

from phalanx.agent.life import Life
from phalanx.agent.progress import Progress
from phalanx.agent.running import Running
from phalanx.names import TaskId
from phalanx.protocol.messages import StartTask
from phalanx.runtime.boot import phalanx_life as inside
from phalanx.sample import TaskSample

pytestmark = pytest.mark.looptime


def write(life: Life, place: int, value: int) -> None:
    struct.pack_into("=q", life._map, 8 * place, value)


async def test_a_sample_tells_what_is_counted_at_this_moment_and_for_a_while_what_was_at_the_end():
    progress = Progress(lambda *_, **__: None, lambda _: None)
    attempts = []
    for index in range(2):
        running = Running(StartTask(id=TaskId("worker", index), argv=(), env={}, attempt=3), 2, None)
        running.life = Life()
        progress.follow(running)
        attempts.append(running)
    assert progress.samples() == ()
    write(attempts[1].life, inside.STEPS, 41)
    (sample,) = progress.samples()
    about = {"task": TaskId("worker", 1), "generation": 2, "attempt": 3}
    assert sample == TaskSample(**about, at=sample.at, steps=41)
    assert abs(sample.at - time.time()) < 60
    assert progress.parting() == ()
    for running in attempts:
        progress.leave(running)
    assert progress.samples() == ()
    (last,) = progress.parting()
    assert last == dataclasses.replace(sample, at=last.at)


async def test_a_sample_tells_of_epochs_loss_and_collectives_only_where_they_are_known():
    progress = Progress(lambda *_, **__: None, lambda *_: None)
    running = Running(StartTask(id=TaskId("worker", 0), argv=(), env={}), 1, None)
    running.life = Life()
    progress.follow(running)
    for place, value in (
        (inside.STEPS, 7),
        (inside.IN_EPOCH, 2),
        (inside.LOSS, struct.unpack("=q", struct.pack("=d", float("nan")))[0]),
    ):
        write(running.life, place, value)
    (sample,) = progress.samples()
    assert (sample.epoch, sample.epoch_step, sample.loss, sample.collective) == (None, None, None, None)
    known = (inside.EPOCH, 3), (inside.EPOCHS, 10), (inside.PER_EPOCH, 5), (inside.LOSSES, 1)
    for place, value in known:
        write(running.life, place, value)
    write(running.life, inside.COLLECTIVE, 2_500_000_000)
    (sample,) = progress.samples()
    assert (sample.epoch, sample.epochs, sample.steps_per_epoch, sample.epoch_step) == (3, 10, 5, 2)
    assert math.isnan(sample.loss)
    assert sample.collective == 2.5
    progress.leave(running)

"""What the life lines of a host's tasks say to the lead."""

from __future__ import annotations

import struct

import pytest

from phalanx.agent.life import Life
from phalanx.agent.progress import Progress
from phalanx.agent.running import Running
from phalanx.names import TaskId
from phalanx.protocol.messages import StartTask, Steps
from phalanx.runtime.boot import phalanx_life as inside

pytestmark = pytest.mark.looptime


async def test_the_steps_of_this_moment_are_those_of_each_attempt_that_counts_any():
    progress = Progress(lambda *_, **__: None, lambda _: None)
    attempts = []
    for index in range(2):
        running = Running(StartTask(id=TaskId("worker", index), argv=(), env={}, attempt=3), 2, None)
        running.life = Life()
        progress.follow(running)
        attempts.append(running)
    assert progress.steps() == ()
    struct.pack_into("=q", attempts[1].life._map, 8 * inside.STEPS, 41)
    assert progress.steps() == (Steps(task=TaskId("worker", 1), generation=2, attempt=3, step=41),)
    for running in attempts:
        progress.leave(running)
    assert progress.steps() == ()

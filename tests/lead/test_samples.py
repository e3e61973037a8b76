"""The samples that come with what agents send: by the lead's clock, the last ones too."""

from __future__ import annotations

from phalanx.lead.testimony import by_our_clock
from phalanx.names import TaskId
from phalanx.protocol.messages import Poll, Report, decode, encode
from phalanx.sample import TaskSample


def sample(at: float, **more: object) -> TaskSample:
    return TaskSample(**{"task": TaskId("worker", 0), "generation": 1, "attempt": 1, "at": at, "steps": 7} | more)


def poll(*samples: TaskSample) -> Poll:
    return Poll(instance="i", host=0, after=0, samples=samples)


def report(now: float | None, *samples: TaskSample) -> Report:
    return Report(instance="i", host=0, first=1, events=(), now=now, samples=samples)


def test_a_clock_that_is_right_or_nearly_so_is_left_alone():
    assert by_our_clock(poll(sample(1000.0)), 1003.0) == [sample(1000.0)]
    assert by_our_clock(report(1000.0, sample(990.0)), 1003.0) == [sample(990.0)]
    assert by_our_clock(report(None, sample(990.0)), 5000.0) == [sample(990.0)]
    assert by_our_clock(poll(), 1003.0) == []


def test_a_clock_that_is_wrong_is_set_right_by_what_the_message_says_of_it():
    assert by_our_clock(poll(sample(1000.0)), 5000.0) == [sample(5000.0)]
    assert by_our_clock(report(1000.0, sample(990.0)), 5000.0) == [sample(4990.0)]


def test_a_sample_travels_whole_and_unknown_values_take_no_room():
    full = sample(1.5, epoch=1, epochs=2, steps_per_epoch=3, epoch_step=1, loss=0.5, collective=0.25)
    assert decode(Poll, encode(poll(full))).samples == (full,)
    assert decode(Report, encode(report(1.0, full))).samples == (full,)
    assert len(encode(poll(sample(1796061868.949)))) < 200

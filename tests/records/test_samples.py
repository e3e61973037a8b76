"""Samples in files: what is written is read, whatever happens to the file; and it stays small."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest

from phalanx.names import TaskId
from phalanx.records.sampler import EVERY, Sampler, Sieve
from phalanx.records.samples import SampleReader, head, read_samples, thinned, to_line
from phalanx.records.writer import FencedError
from phalanx.sample import LinkSample, LoadSample, TaskSample

ZERO, ONE = TaskId("worker", 0), TaskId("worker", 1)


def sample(at: float, *, task: TaskId = ZERO, attempt: int = 1, **more: object) -> TaskSample:
    return TaskSample(**{"task": task, "generation": 1, "attempt": attempt, "at": at, "steps": int(at)} | more)


def free() -> None:
    return


def written(path: Path, *samples: TaskSample, small: int = 1 << 20) -> list[TaskSample]:
    sampler = Sampler(path, TaskSample, fence=free, small=small)
    for one in samples:
        sampler.put([one])
    sampler.close(60)
    return read_samples(path, TaskSample)


def test_what_is_written_is_read(tmp_path: Path):
    samples = [
        sample(1.5, epoch=1, epochs=3, steps_per_epoch=10, epoch_step=1, loss=0.25, collective=0.5),
        sample(2.5, task=ONE, loss=float("inf")),
    ]
    assert written(tmp_path / "metrics" / "tasks.jsonl", *samples) == samples
    assert written(tmp_path / "metrics" / "tasks.jsonl", sample(3.5)) == [*samples, sample(3.5)]


def test_links_have_a_file_of_their_own_kind(tmp_path: Path):
    link = LinkSample(source=ZERO, target=ONE, at=1.0, sent=1 << 40, rtt=0.001)
    path = tmp_path / "links.jsonl"
    path.write_text(head(LinkSample) + "\n" + to_line(link) + "\n")
    assert read_samples(path, LinkSample) == [link]


def test_each_line_is_strict_json_even_of_a_loss_that_is_no_number():
    line = to_line(sample(1.0, loss=math.nan))
    assert "NaN" in json.loads(line, parse_constant=pytest.fail)


def test_a_torn_line_and_one_of_a_newer_phalanx_cost_themselves_only(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    written(path, sample(1.0))
    with path.open("a") as file:
        file.write(
            '["task","attempt","generation","at","steps","colour"]\n["worker:1",1,1,5.0,5,"red"]\n["worker:0",1,'
        )
    assert written(path, sample(9.0)) == [sample(1.0), sample(5.0, task=ONE), sample(9.0)]


FULL = ["worker:0", 1, 1, 5.0, 5, 1, 1, 1, 1, 0.5, 0.5]


def but(at: int, value: object) -> list[object]:
    return [*FULL[:at], value, *FULL[at + 1 :]]


@pytest.mark.parametrize(
    "row",
    [
        [],
        {},
        None,
        7,
        "worker:0",
        [[]],
        FULL[:-1],
        [*FULL, None],
        *(
            but(at, wrong)
            for at in range(5)
            for wrong in (None, [1], {}, "NaN", "5", True, math.nan, math.inf, 10**400)
        ),
        *(but(at, wrong) for at in (5, 6, 7, 8) for wrong in ([1], {}, "1", 1.5, True, math.nan, 10**400)),
        *(but(at, wrong) for at in (9, 10) for wrong in ([1], {}, "much", True, 10**400)),
        but(10, "Infinity"),
        ["worker:0", 1, 1, "Infinity", "NaN", None, None, None, None, None, None],
        ["worker", *FULL[1:]],
    ],
    ids=repr,
)
def test_a_damaged_line_costs_itself_only(tmp_path: Path, row: object):
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join([head(TaskSample), to_line(sample(1.0)), json.dumps(row), to_line(sample(9.0)), ""]))
    assert read_samples(path, TaskSample) == [sample(1.0), sample(9.0)]


@pytest.mark.parametrize("kind", [LinkSample, LoadSample])
def test_a_damaged_line_about_a_link_or_a_load_costs_itself_only(tmp_path: Path, kind):
    good = (
        LinkSample(source=ZERO, target=ONE, at=1.0, sent=1)
        if kind is LinkSample
        else LoadSample(task=ZERO, generation=1, attempt=1, at=1.0, cpu=0.5)
    )
    row = json.loads(to_line(good))
    needed = 4 if kind is LinkSample else 5
    wrong = [[*row[:at], value, *row[at + 1 :]] for at in range(needed) for value in (None, [1], "NaN", math.inf)]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{line}\n" for line in (head(kind), *map(json.dumps, wrong), to_line(good))))
    assert read_samples(path, kind) == [good]


def test_a_reader_hears_of_new_samples_also_after_the_file_was_replaced(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    reader = SampleReader(path, TaskSample)
    assert reader.poll() == []
    written(path, sample(1.0))
    assert reader.poll() == [sample(1.0)]
    assert reader.poll() == []
    scratch = tmp_path / "thinner"
    scratch.write_text(head(TaskSample) + "\n" + to_line(sample(2.0)) + "\n")
    scratch.replace(path)
    assert reader.poll() == [sample(2.0)]


def test_a_month_of_a_task_is_some_hundred_samples_dense_at_its_end():
    now = 30 * 86400.0
    kept = thinned([sample(3.0 * n) for n in range(int(now / 3))], now)
    assert len(kept) < 1000
    assert kept[0].at == 0.0
    assert [now - one.at for one in kept[-50:]] == [3.0 * n for n in range(50, 0, -1)]
    gaps = [later.at - sooner.at for sooner, later in itertools.pairwise(kept)]
    assert all(gap <= (now - later.at) / 32 + 6 for gap, later in zip(gaps, kept[1:], strict=True))


def test_of_each_attempt_the_first_and_the_last_survive_any_thinning():
    told = [sample(float(n), attempt=1 + n // 10) for n in range(30)]
    for _ in range(3):
        told = thinned(told, 1e9)
    assert [one.at for one in told] == [0.0, 9.0, 10.0, 19.0, 20.0, 29.0]


def test_a_file_that_has_grown_is_thinned(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    read = written(path, *(sample(float(n)) for n in range(2000)), small=20_000)
    assert path.stat().st_size < 21_000
    assert (read[0], read[-1]) == (sample(0.0), sample(1999.0))


def test_who_is_fenced_off_writes_nothing_any_more(tmp_path: Path):
    def fenced() -> None:
        raise FencedError("another lead")

    sampler = Sampler(tmp_path / "tasks.jsonl", TaskSample, fence=fenced)
    sampler.put([sample(1.0)])
    sampler.settle(60)
    sampler.put([sample(2.0)])
    sampler.close(60)
    assert not (tmp_path / "tasks.jsonl").exists()


def test_a_disk_that_takes_nothing_costs_samples_and_nothing_else(tmp_path: Path):
    (tmp_path / "metrics").touch()
    assert written(tmp_path / "metrics" / "tasks.jsonl", sample(1.0)) == []


def test_a_task_passes_now_and_then_and_its_last_sample_once():
    sieve = Sieve()
    often = [sample(n / 10) for n in range(100)]
    passed = sieve.through(often, last=False)
    assert [one.at for one in passed] == [n * EVERY for n in range(5)]
    assert sieve.through([sample(9.95)], last=True) == [sample(9.95)]
    assert sieve.through([sample(9.95)], last=True) == []
    assert sieve.through([sample(0.1, attempt=2)], last=False) == [sample(0.1, attempt=2)]

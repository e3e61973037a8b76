"""Records and output out of the logs of pods: in order, each once, whoever tells them and however often."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx import events as ev
from phalanx.engine.kubernetes.copy import Outputs, Positions, RecordFile, Starts, parsed
from phalanx.events import Record
from phalanx.names import TaskId
from phalanx.records.folder import RunFolder
from phalanx.records.reader import Tail

W1 = TaskId("worker", 1)


def record(seq: int, epoch: int = 1, message: str = "x") -> str:
    return json.dumps(Record(seq=seq, epoch=epoch, event=ev.Noted(time=float(seq), message=message)).to_json())


def kept(path) -> list[int]:
    return [json.loads(line)["seq"] for line in path.read_text().splitlines()]


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@given(order=st.permutations(range(1, 9)), again=st.lists(st.integers(1, 8)))
def test_records_come_out_in_order_and_once_however_they_come(tmp_path_factory, order, again):
    path = tmp_path_factory.mktemp("run") / "events.jsonl"
    records = RecordFile(path)
    for seq in [*order, *again]:
        records.take(record(seq))
    assert kept(path) == list(range(1, 9))


def test_a_gap_is_waited_for_and_then_counted(tmp_path):
    clock = Clock()
    records = RecordFile(tmp_path / "events.jsonl", clock=clock)
    for seq in (1, 2, 4, 5):
        records.take(record(seq))
    assert kept(tmp_path / "events.jsonl") == [1, 2]
    clock.now += 60
    records.flush()
    assert kept(tmp_path / "events.jsonl") == [1, 2, 4, 5]
    assert records.missing == 1


def test_the_newer_leads_word_counts_where_two_told_the_same_number(tmp_path):
    records = RecordFile(tmp_path / "events.jsonl")
    records.take(record(1))
    records.take(record(3, message="old"))
    records.take(record(3, epoch=2, message="new"))
    records.take(record(2))
    assert "new" in (tmp_path / "events.jsonl").read_text().splitlines()[2]


def test_a_later_follower_goes_on_where_the_file_ends(tmp_path):
    RecordFile(tmp_path / "events.jsonl").take(record(1))
    records = RecordFile(tmp_path / "events.jsonl")
    for seq in (1, 2):
        records.take(record(seq))
    assert kept(tmp_path / "events.jsonl") == [1, 2]


def test_a_run_that_is_begun_anew_has_a_new_story_and_keeps_the_old_one_beside(tmp_path):
    path = tmp_path / "events.jsonl"
    (tmp_path / "logs").mkdir()
    tail = Tail(path)
    records = RecordFile(path)
    for seq in (1, 2, 3):
        records.take(record(seq))
    assert [one.seq for one in tail.poll()] == [1, 2, 3]
    for seq in (1, 2):
        records.take(record(seq, epoch=200, message="anew"))
    records.take(record(4))
    assert kept(path) == [1, 2]
    assert kept(tmp_path / "events.before-1.jsonl") == [1, 2, 3]
    assert tail.poll() == []
    assert tail.anew == 1
    assert [one.seq for one in tail.poll()] == [1, 2]
    tail.close()
    assert RecordFile(path).epoch == 200


def test_what_is_no_record_is_left_out(tmp_path):
    records = RecordFile(tmp_path / "events.jsonl")
    for line in ("", "{", "[]", '{"seq": "x", "epoch": 1}', "null"):
        records.take(line)
    assert not (tmp_path / "events.jsonl").exists()


@pytest.fixture
def outputs(tmp_path):
    return Outputs(RunFolder(tmp_path), Starts())


def test_output_goes_to_the_start_that_the_pod_has_announced_last(outputs, tmp_path):
    for text in ("phalanx-start: worker:1 g1.a1", "worker:1 | a", "phalanx-start: worker:1 g2.a1", "worker:1 | b | c"):
        outputs.take("pod", 1, parsed(f"2026-11-30T12:00:00.5Z {text}".encode()))
    assert (tmp_path / "logs/worker_1/g1.a1.out").read_text() == "a\n"
    assert (tmp_path / "logs/worker_1/g2.a1.out").read_text() == "b | c\n"


def test_output_of_an_unannounced_start_is_sorted_by_its_time(tmp_path):
    starts = Starts()
    for generation, at in ((1, 1000.0), (2, 2000.0)):
        starts.add(ev.TaskStarted(time=at, task=W1, host=1, generation=generation, pid=9))
    assert [starts.at(W1, when) for when in (10.0, 1000.1, 1999.0, 2000.1)] == [(1, 1), (1, 1), (1, 1), (2, 1)]


def test_what_else_a_pod_says_is_its_agents_word(outputs, tmp_path):
    for text in ("agent: joined", "note: a | b", "x:y:z | c"):
        outputs.take("pod", 1, parsed(f"2026-11-30T12:00:00Z {text}".encode()))
    assert (tmp_path / "agents/1.log").read_text() == "agent: joined\nnote: a | b\nx:y:z | c\n"


def test_a_log_that_is_read_again_from_its_last_second_gives_nothing_twice(tmp_path):
    lines = [
        parsed(f"2026-11-30T12:00:00.{n}Z {text}".encode()) for n, text in ((1, "a"), (2, "b"), (2, "c"), (3, "d"))
    ]
    positions = Positions(tmp_path / "pods.json")
    seen: dict[str, int] = {}
    assert [line.text for line in lines[:3] if positions.is_new("pod", line, seen)] == ["a", "b", "c"]
    positions.save()
    again = Positions(tmp_path / "pods.json")
    seen = {}
    assert [line.text for line in lines if again.is_new("pod", line, seen)] == ["d"]


def test_times_of_the_api_are_read_to_the_nanosecond():
    assert parsed(b"1970-01-01T00:00:01.000000002Z x").nanoseconds == 1_000_000_002
    assert parsed(b"1970-01-01T00:00:01Z x").nanoseconds == 1_000_000_000
    assert parsed(b"nothing").nanoseconds == 0

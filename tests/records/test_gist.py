"""The report where there is room for four kilobytes: whole lines, the most telling first."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from phalanx.records.gist import gist

REPORT: dict[str, Any] = {
    "run": "ctr-1130-101500",
    "result": "failed",
    "duration": 75.0,
    "cause": "worker:3 exited with code 1: ValueError: bad shape",
    "kind": "user",
    "culprit": "worker:3",
    "culprit_host": "ctr-worker-3-x7k2p",
    "step": 200,
    "kept": {"path": "/ckpt/200"},
    "next_steps": ["phalanx logs ctr-1130-101500 worker:3"],
    "past": [{"number": 1, "cause": "host n1 was lost", "restart": "restart 1 of 3"}],
    "tasks": [
        {"task": "worker:2", "state": "victim", "last_output": "loss 0.3", "last_lines": []},
        {
            "task": "worker:3",
            "state": "failed",
            "last_output": "",
            "last_lines": ["Traceback", "ValueError: bad shape"],
        },
    ],
    "notes": ["the disk was slow"],
}


def test_it_begins_with_the_cause_and_the_next_step():
    assert gist(REPORT, 4096).splitlines() == [
        "ctr-1130-101500 failed after 1 min 15 s: worker:3 exited with code 1: ValueError: bad shape",
        "first to fail: worker:3 on ctr-worker-3-x7k2p (user)",
        "training steps: 200",
        "kept: /ckpt/200",
        "next: phalanx logs ctr-1130-101500 worker:3",
        "worker:3 | Traceback",
        "worker:3 | ValueError: bad shape",
        "before, in generation 1: host n1 was lost; restart 1 of 3",
        "worker:2 victim: loss 0.3",
        "the disk was slow",
    ]


@given(st.integers(20, 600), st.text(max_size=400))
def test_it_never_takes_more_room_and_cuts_no_line_but_the_first(room, cause):
    text = gist({**REPORT, "cause": cause}, room)
    whole = gist({**REPORT, "cause": cause}, 1 << 20)
    assert 0 < len(text.encode()) <= room
    assert whole.startswith(text) or text.endswith("…")


def test_no_report_is_no_word():
    assert gist({}, 4096) == ""

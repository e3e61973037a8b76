"""The wall clock that `phalanx chaos` gives agents and leads."""

from __future__ import annotations

import os
import time

from phalanx.chaos.inside.agent_main import OFFSET, jumpy


def test_the_clock_of_an_agent_jumps_by_what_its_file_says(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", time.time)
    monkeypatch.setattr(time, "time_ns", time.time_ns)
    before = time.time()
    jumpy(str(tmp_path))
    assert time.time() - before < 60
    with (tmp_path / f"clock-{os.getpid()}").open("r+b") as file:
        file.write(OFFSET.pack(7200.0))
    assert 7200 <= time.time() - before < 7260
    assert 7200 <= time.time_ns() / 1e9 - before < 7260

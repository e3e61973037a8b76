"""What an agent says that cannot even start."""

from __future__ import annotations

import json

import pytest

from phalanx.agent import main as module
from phalanx.errors import PlaceError


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (PlaceError("worker:0/standby cannot be started: this host's reaper is gone"), "worker:0/standby cannot be"),
        (OSError(11, "Resource temporarily unavailable"), "raise `ulimit -u`"),
    ],
)
def test_a_start_that_is_refused_is_one_line_and_the_code_of_its_kind(monkeypatch, capsys, wrong, said):
    def refused(*_: object) -> None:
        raise wrong

    monkeypatch.setattr(module, "_first_line", lambda _: json.dumps({"carry": {}}).encode())
    monkeypatch.setattr(module, "patient_stderr", lambda: None)
    monkeypatch.setattr(module, "last_word_to", lambda _: None)
    monkeypatch.setattr(module, "fork_reaper", lambda: None)
    monkeypatch.setattr(module, "prestart", refused)
    assert module.main() == 3
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("the agent cannot start its processes: ")
    assert said in line

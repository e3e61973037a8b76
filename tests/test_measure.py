"""How a size of a bench has ended, decided on made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import history
from phalanx import measure
from phalanx.errors import JobFailedError, PhalanxError, StoppedError
from phalanx.job.flags import Flags


def bench(monkeypatch: pytest.MonkeyPatch, outcome: str, code: int, cause: str) -> PhalanxError:
    state = history("worker:0").joined().bound().started().ended(outcome, code, cause).state
    monkeypatch.setattr(measure, "declare", lambda *_args, **_words: None)
    monkeypatch.setattr(measure, "launch", lambda *_args, **_words: None)
    monkeypatch.setattr(measure, "follow", lambda _launched, _view: state)
    with pytest.raises(PhalanxError) as raised:
        measure.measure(["train.py"], Flags(), measure.Wanted(), cwd=Path(), environ={}, say=_silent)
    return raised.value


def _silent(_text: str) -> Any:
    """Nobody listens."""


def test_a_bench_that_somebody_stops_says_that_and_is_no_failure(monkeypatch):
    wrong = bench(monkeypatch, "stopped", 4, "stopped: SIGINT to the launcher")
    assert isinstance(wrong, StoppedError)
    assert str(wrong) == "stopped: SIGINT to the launcher; nothing was measured at this size"
    assert (wrong.exit_code, wrong.hint) == (4, None)


def test_a_job_that_fails_under_a_bench_does(monkeypatch):
    wrong = bench(monkeypatch, "failed", 1, "worker:0 exited with 1")
    assert isinstance(wrong, JobFailedError)
    assert str(wrong) == "it failed: worker:0 exited with 1"
    assert "--steps" in wrong.hint

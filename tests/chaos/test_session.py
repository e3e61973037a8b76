"""A session over a run that is only written down."""

from __future__ import annotations

import pytest

from builders import running
from phalanx.chaos import session
from phalanx.chaos.fault import Fault
from phalanx.chaos.session import Session
from phalanx.chaos.watch import Outcome
from phalanx.chaos.whereabouts import CannotError
from phalanx.records.index import Entry

STALL = Fault(kind="stall", target="worker:0")


@pytest.mark.parametrize(("ends", "outcome"), [(True, Outcome.MISSED), (False, Outcome.REFUSED)])
def test_what_cannot_be_done_since_the_program_is_over_was_not_reached(tmp_path, monkeypatch, ends, outcome):
    told = running()
    folder = told.write(tmp_path)
    entry = Entry(
        run=told.run, folder=str(folder.path), engine="local", lead="127.0.0.1:1", token="t", created=0.0, launcher=0
    )

    def cannot(*_: object) -> None:
        if ends:
            told.exited("worker:0", "worker:1").ended("succeeded", 0, "worker:0 exited with code 0").write(tmp_path)
        raise CannotError("its process is no Python")

    monkeypatch.setitem(session.STRIKES, "stall", cannot)
    monkeypatch.setattr(session.people, "alive", lambda *_: True)
    launched = Launched() if ends else None
    [found] = Session(entry, (STALL,), launched=launched).run()
    assert found.outcome is outcome


class Launched:
    """Somebody who follows the run."""

    def lives(self) -> bool:
        return True

    def end(self) -> None:
        return

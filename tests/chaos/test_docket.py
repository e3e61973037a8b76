"""Whose an event is, where the effect of one fault comes while another has been done."""

from __future__ import annotations

import pytest

from builders import DAWN, History, running
from phalanx import events as ev
from phalanx.chaos.docket import Docket
from phalanx.chaos.fault import Fault
from phalanx.chaos.watch import Told, Watch
from phalanx.states import fold_all

RESET = "UnavailableError: Collective ops is aborted by: recvmsg:Connection reset by peer"
CUT = Fault(kind="refuse", target="worker:0-worker:1")


def told_of(history: History, *faults: tuple[float, Fault], until: float = 40.0) -> dict[str, Told]:
    """Each fault is done at its second and lifted a second later; what is known at the end, by kind."""
    docket, settled = Docket(), []
    due = list(faults)
    records = list(history.records)
    lifts: list[tuple[float, Watch]] = []
    for tick in range(int(until * 10) + 1):
        now = tick / 10
        while records and records[0].event.time <= DAWN + now:
            done = history.records.index(records.pop(0)) + 1
            docket.see(history.records[done - 1].event, fold_all(history.records[:done]), now)
        if due and due[0][0] <= now:
            done = len(history.records) - len(records)
            docket.add(watch := Watch(due.pop(0)[1], fold_all(history.records[:done]), now=now, since=2.0))
            lifts.append((now + 1.0, watch))
        for at, watch in lifts:
            if at <= now < at + 0.1:
                watch.lifted(now)
        docket.wait(now, settle=3.0, patience=60.0)
        settled += docket.take()
    return {watch.told.fault.kind: watch.told for watch in (*settled, *docket)}


def outcomes(told: dict[str, Told]) -> dict[str, str]:
    return {kind: one.outcome.value for kind, one in told.items()}


def reset(at: float, task: str = "worker:1") -> History:
    """TensorFlow raises that late, and the group comes back."""
    told = (
        running().at(at).exited(task, code=1, said=(RESET,)).ordered("worker:0" if task == "worker:1" else "worker:1")
    )
    told.at(at + 0.3).exited("worker:0" if task == "worker:1" else "worker:1", signal=9, stopped=True)
    told.culprit(task, f"{task} exited with code 1").restarted()
    return told.at(at + 1).bound().at(at + 2).started().at(at + 3).listening()


def test_a_reset_that_shows_after_nine_seconds_is_its_own_recovery():
    told = told_of(reset(14.0), (5.0, CUT))
    assert outcomes(told) == {"refuse": "recovered"}
    assert told["refuse"].detected == pytest.approx(9.0)


def test_a_fault_is_late_while_something_may_still_come_of_it_and_no_longer():
    docket = Docket()
    docket.add(Watch(CUT, running().state, now=5.0, since=2.0))
    docket.wait(7.0, settle=3.0, patience=60.0)
    assert not docket.quiet
    docket.wait(8.5, settle=3.0, patience=60.0)
    assert docket.quiet
    assert docket.newest is not None
    docket.wait(5.0 + CUT.row.shows, settle=3.0, patience=60.0)
    assert [watch.told.outcome.value for watch in docket.take()] == ["unharmed"]


def test_a_stall_is_not_blamed_for_the_reset_that_came_before_it():
    """The soak's first mistake: "misblamed", since worker:0 raised the error."""
    told = told_of(reset(14.0, "worker:0"), (5.0, CUT), (13.0, Fault(kind="stall", target="worker:1")))
    assert outcomes(told) == {"refuse": "recovered", "stall": "overtaken"}
    assert told["stall"].detected is None
    assert told["stall"].outcome.good


@pytest.mark.parametrize("kind", ["clock", "disk"])
def test_what_harms_nobody_has_not_disturbed_where_a_reset_comes_late(kind):
    """The soak's second mistake."""
    told = told_of(reset(14.0), (5.0, CUT), (12.0, Fault(kind=kind)))
    assert outcomes(told) == {"refuse": "recovered", kind: "unharmed"}
    assert told[kind].detected is None


def test_a_new_lead_is_the_lost_leads_and_the_failure_after_it_the_resets():
    told = reset(14.0)
    started = ev.RunStarted(time=DAWN + 13.0, run=told.run, name="digits", tasks=told.tasks, strategy="mwms", hosts=1)
    at = next(n for n, record in enumerate(told.records) if record.event.time > DAWN + 13.0)
    told.records.insert(at, ev.Record(seq=0, epoch=2, event=started))
    assert outcomes(told_of(told, (5.0, CUT), (12.5, Fault(kind="lead")))) == {
        "refuse": "recovered",
        "lead": "recovered",
    }


def test_a_kill_is_the_kills_though_a_reset_may_still_show():
    told = running().at(10.1).exited("worker:1", signal=9).ordered("worker:0")
    told.at(10.2).exited("worker:0", code=1, said=(RESET,), stopped=True).culprit("worker:1", "killed").restarted()
    told.at(11).bound().started().at(12).listening()
    found = told_of(told, (5.0, CUT), (10.0, Fault(kind="kill", target="worker:1")))
    assert outcomes(found) == {"kill": "recovered", "refuse": "unharmed"}
    assert found["kill"].detected == pytest.approx(0.1)


def test_a_frozen_task_is_the_stops_and_its_peers_silence_too():
    told = running().at(10.5).lives(ev.TaskFroze, "worker:1", since=DAWN + 10).at(12).culprit("worker:1", "state T")
    told.exited("worker:0", "worker:1", signal=9, stopped=True).restarted().at(13).bound().started().at(14).listening()
    found = told_of(told, (5.0, CUT), (10.0, Fault(kind="stop", target="worker:1")))
    assert outcomes(found) == {"stop": "recovered", "refuse": "unharmed"}


def test_a_run_that_a_late_reset_ends_has_not_been_ended_by_what_came_after():
    told = running().at(14).exited("worker:1", code=1, said=(RESET,)).culprit("worker:1", "exited with code 1")
    told.exited("worker:0", signal=9, stopped=True).ended("failed", 1, "worker:1 exited with code 1")
    found = told_of(told, (5.0, CUT), (13.0, Fault(kind="clock")))
    assert outcomes(found) == {"refuse": "ended", "clock": "overtaken"}


def test_what_no_open_fault_can_do_is_put_down_to_the_newest():
    told = reset(14.0, "worker:0")
    found = told_of(told, (13.0, Fault(kind="kill", target="worker:1")))
    assert outcomes(found) == {"kill": "misblamed"}

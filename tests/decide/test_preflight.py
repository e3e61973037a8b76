"""What the answers of all hosts add up to: each row of the table, kept and not kept."""

from __future__ import annotations

import pytest

from builders import history
from phalanx import events as ev
from phalanx.decide.preflight import ROWS, judge, verdict
from phalanx.plan.checklist import ALL_PAIRS, Fact, Fault, tried
from phalanx.plan.policies import Preflight
from phalanx.states import RunPhase

#: A fact of each row that compares one, and another value of it.
DIFFERENT = {
    "same-script": (
        Fact(name="script", value="aa", of="/w/train.py"),
        Fact(name="script", value="bb", of="/w/train.py"),
    ),
    "same-python": (Fact(name="python", value="3.11"), Fact(name="python", value="3.12")),
    "same-tensorflow": (Fact(name="tensorflow", value="2.17.0"), Fact(name="tensorflow", value="2.16.1")),
    "same-keras": (Fact(name="keras", value="keras 3.15.1"), Fact(name="keras", value="keras 3.14.0")),
    "same-gpus": (Fact(name="gpus", value="4"), Fact(name="gpus", value="2")),
    "cudnn-skew": (Fact(name="cudnn", value="9.3"), Fact(name="cudnn", value="9.1")),
    "same-packages": (Fact(name="packages", value="120, ab"), Fact(name="packages", value="121, cd")),
    "clock": (Fact(name="clock", value="+0.100"), Fact(name="clock", value="-7.000")),
}


def looked(hosts=4, *, facts=None, faults=None):
    """A generation on `hosts` hosts that have all looked; `facts` and `faults` by host."""
    told = history(workers=hosts)
    for host in range(hosts):
        told.joined(host)
    told.bound()
    for host in range(hosts):
        told.say(
            ev.HostChecked(
                time=told.now,
                host=host,
                generation=1,
                seconds=0.2,
                looked=("names-resolve",),
                facts=(facts or {}).get(host, ()),
                faults=(faults or {}).get(host, ()),
            )
        )
    return told.state


def ids(state, **how):
    return [one.row.id for one in judge(state, **how)]


def events(state, **policy):
    return verdict(state, Preflight(**policy), now=1.0)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_fault_of_one_host_is_told_with_its_name_and_its_absence_is_not(row):
    peer = 1 if row.id == "peers-reachable" else None
    assert ids(looked()) == []
    (one,) = judge(looked(faults={2: (Fault(check=row.id, words="so it is", peer=peer),)}))
    assert (one.row, one.hosts) == (row, (2,))
    assert "n2" in one.words
    assert "so it is" in one.words


@pytest.mark.parametrize("row", DIFFERENT)
def test_the_host_that_differs_is_the_odd_one_out(row):
    """R62, R63, R90, R91."""
    usual, odd = DIFFERENT[row]
    assert ids(looked(facts=dict.fromkeys(range(4), (usual,)))) == []
    (one,) = judge(looked(facts={0: (usual,), 1: (usual,), 2: (odd,), 3: (usual,)}))
    assert (one.row.id, one.hosts) == (row, (2,))
    assert "n2" in one.words


def test_scripts_that_differ_by_role_are_no_difference():
    facts = {
        0: (Fact(name="script", value="aa", of="/w/chief.py"),),
        1: (Fact(name="script", value="bb", of="/w/w.py"),),
    }
    assert ids(looked(2, facts=facts)) == []


def test_the_failing_pair_is_named():
    """R42: two of twenty cannot reach each other, and everybody waits."""
    fault = Fault(check="peers-reachable", words="10.0.0.8:22107 timed out", peer=7)
    (one,) = judge(looked(20, faults={3: (fault,)}))
    assert one.words == "n3 does not reach n7: 10.0.0.8:22107 timed out"


def test_a_host_that_nobody_reaches_is_named_once():
    fault = Fault(check="peers-reachable", words="10.0.0.3:22102 timed out", peer=2)
    (one,) = judge(looked(20, faults={host: (fault,) for host in range(20) if host != 2}))
    assert one.words == "no host reaches n2: 10.0.0.3:22102 timed out"


def test_a_fatal_fault_ends_the_run_with_its_fix_and_code_2():
    fault = Fault(check="modules-found", words="train.py imports pandas, which python does not find")
    culprit, end = events(looked(faults={1: (fault,)}))
    assert (culprit.kind, culprit.host, culprit.task) == ("user", 1, None)
    assert culprit.cause.startswith("preflight modules-found: n1: train.py imports pandas")
    assert "--ignore-check modules-found" in culprit.hint
    assert (end.outcome, end.exit_code) == ("failed", 2)


def test_a_warning_is_noted_and_the_way_is_clear():
    note, passed = events(looked(faults={1: (Fault(check="memory", words="12 MiB are free"),)}))
    assert note.message.startswith("preflight memory: n1: 12 MiB are free (")
    assert (passed.generation, passed.warnings, passed.checks) == (1, 1, 1)


def test_a_warning_beside_a_fatal_fault_is_explained_too():
    both = (Fault(check="disk", words="12 MiB are left"), Fault(check="checkpoint-writable", words="not a directory"))
    note, _, end = events(looked(faults={0: both}))
    assert isinstance(note, ev.Noted)
    assert "disk" in note.message
    assert "12 MiB are left" in note.message
    assert isinstance(end, ev.RunEnded)


def test_what_is_ignored_neither_ends_nor_warns():
    state = looked(faults={1: (Fault(check="modules-found", words="x"), Fault(check="memory", words="y"))})
    (passed,) = events(state, ignore=("modules-found", "memory"))
    assert isinstance(passed, ev.PreflightPassed)


def test_nothing_is_decided_before_every_host_has_looked_nor_twice():
    told = history(workers=2).joined(0).joined(1).bound()
    assert events(told.state) == ()
    told.say(ev.HostChecked(time=told.now, host=0, generation=1, seconds=0.1))
    assert events(told.state) == ()
    told.say(ev.HostChecked(time=told.now, host=1, generation=1, seconds=0.1))
    (passed,) = events(told.state)
    assert events(told.say(passed).state) == ()


def test_a_later_generation_is_looked_at_anew():
    state = history(workers=1).joined(0).bound().state
    assert not state.cleared
    told = history(workers=1).joined(0).bound()
    told.say(ev.HostChecked(time=told.now, host=0, generation=1, seconds=0.1))
    told.say(ev.PreflightPassed(time=told.now, generation=1, checks=1))
    assert told.state.cleared
    assert not told.bound().state.cleared
    assert told.state.checked == {}


def test_the_checks_alone_end_a_run_in_success():
    assert [type(event) for event in events(looked(), only=True)] == [ev.PreflightPassed, ev.RunEnded]
    assert events(looked(), on=False) == ()
    assert looked().phase is RunPhase.STARTING


@pytest.mark.parametrize("hosts", [1, 2, ALL_PAIRS])
def test_up_to_64_hosts_every_pair_is_tried(hosts):
    assert all(tried(hosts, own, 0) == list(range(hosts)) for own in range(hosts))


@pytest.mark.parametrize("hosts", [65, 1000, 10_000])
def test_beyond_64_hosts_each_tries_its_neighbours_the_leader_and_a_few(hosts):
    for own in (0, 1, hosts // 2, hosts - 1):
        found = tried(hosts, own, 7)
        assert {(own - 1) % hosts, own, (own + 1) % hosts, 7} <= set(found)
        assert len(found) <= hosts.bit_length() + 5


def test_that_not_every_pair_was_tried_is_said():
    assert [type(event) for event in events(looked(ALL_PAIRS))] == [ev.PreflightPassed]
    note, passed = events(looked(ALL_PAIRS + 1))
    assert "each of the 65 hosts tried 8 others" in note.message
    assert passed.warnings == 0


def test_every_row_says_what_it_looks_at_its_fix_and_its_source():
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert all(row.looks and row.fix and row.source for row in ROWS)

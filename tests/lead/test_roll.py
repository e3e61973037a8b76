"""Whom a lead has met, and who may lead next: the lowest living hosts, whatever the order in which they came."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from phalanx import events as ev
from phalanx.decide.quorum import LINE
from phalanx.hoststate import HostState
from phalanx.lead.roll import Roll
from phalanx.plan.host import Host
from phalanx.protocol.messages import VERSION, Join
from phalanx.states import RunState


def join(number: int, lead: str) -> Join:
    host = Host(id=number, name=f"n{number}", address=f"n{number}", ports=(1,))
    return Join(version=VERSION, run="r", instance=f"i{number}", host=host, pid=1, lead=lead)


def host(number: int, lost: str = "") -> HostState:
    joined = ev.HostJoined(time=0.0, host=number, name="", address="", cpus=1, gpus=0, memory=0, agent_pid=1)
    return HostState(id=number, joined=joined, lost=lost)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), unique_by=lambda one: one[0]),
    st.sets(st.integers(0, 20)),
)
def test_the_line_holds_the_lowest_living_hosts_that_would_lead(joined, lost):
    roll = Roll(RunState(), hosts=20, epoch=1, now=0.0)
    for number, leads in joined:
        roll.enter(join(number, f"n{number}:1" if leads else ""), 0.0)
    state = RunState(hosts={number: host(number, "gone" if number in lost else "") for number, _ in joined})
    able = sorted(number for number, leads in joined if leads and number not in lost)
    assert roll.line(state) == tuple(f"n{number}:1" for number in able[:LINE])
    assert sorted(roll.living(state)) == sorted(number for number, _ in joined if number not in lost)


def test_a_new_lead_tells_no_line_while_it_awaits_hosts_of_the_one_before_it():
    state = RunState(hosts={number: host(number) for number in range(3)})
    roll = Roll(state, hosts=3, epoch=2, now=0.0)
    roll.enter(join(2, "n2:1"), 0.0)
    assert roll.line(state) == ()
    roll.enter(join(1, "n1:1"), 0.0)
    roll.awaited.clear()
    assert roll.line(state) == ("n1:1", "n2:1")

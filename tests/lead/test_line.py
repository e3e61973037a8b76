"""Who may lead next: the lowest living hosts, whatever the order in which they came."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given

from phalanx import events as ev
from phalanx.decide.quorum import LINE
from phalanx.hoststate import HostState
from phalanx.lead.line import Line
from phalanx.lead.mailbox import Mailbox
from phalanx.plan.host import Host
from phalanx.protocol.messages import VERSION, Join


def box(number: int, lead: str) -> Mailbox:
    host = Host(id=number, name=f"n{number}", address=f"n{number}", ports=(1,))
    join = Join(version=VERSION, run="r", instance=f"i{number}", host=host, pid=1, lead=lead)
    return Mailbox(join, epoch=1, heard=0.0, lease=10.0)


def host(number: int, lost: str = "") -> HostState:
    joined = ev.HostJoined(time=0.0, host=number, name="", address="", cpus=1, gpus=0, memory=0, agent_pid=1)
    return HostState(id=number, joined=joined, lost=lost)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.booleans()), unique_by=lambda one: one[0]),
    st.sets(st.integers(0, 20)),
)
def test_the_line_holds_the_lowest_living_hosts_that_would_lead(joined, lost):
    line, boxes = Line(), {}
    for number, leads in joined:
        place = f"n{number}:1" if leads else ""
        boxes[number] = box(number, place)
        line.joins(number, place)
    hosts = {number: host(number, "gone" if number in lost else "") for number in boxes}
    able = sorted(number for number, leads in joined if leads and number not in lost)
    assert line.places(boxes, hosts) == tuple(f"n{number}:1" for number in able[:LINE])

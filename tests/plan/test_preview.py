"""Hosts that are not there yet: enough of them to show a plan."""

from __future__ import annotations

import pytest
from hypothesis import given

from outlines import outlines, unhurried
from phalanx.errors import PlaceError
from phalanx.plan.bind import bind
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.preview import preview_hosts


@unhurried
@given(outlines())
def test_any_outline_can_be_bound_to_its_preview(job):
    plan = bind(job, preview_hosts(job), run="r", generation=1)
    assert len(plan.hosts) == job.hosts
    addresses = [task.address for task in plan.tasks if task.address]
    assert len(addresses) == len(set(addresses)), "simulated hosts share one machine, so they share no port"


def outline(workers: int, **more) -> Outline:
    role = Role(type="worker", count=workers, command=("x",), per_host=more.pop("per_host", None))
    return Outline(name="j", roles=(role,), strategy=Strategy.MWMS, cwd="/", **more)


def test_ports_are_examples_from_20000_on():
    assert [host.ports for host in preview_hosts(outline(3, hosts=2))] == [(20000, 20001), (20002,)]


def test_ports_are_of_the_declared_range():
    assert preview_hosts(outline(2, ports=(22000, 22009)))[0].ports == (22000, 22001)


def test_simulated_hosts_are_numbered_after_the_machine():
    assert [host.name for host in preview_hosts(outline(2, hosts=2), name="box")] == ["box-0", "box-1"]
    assert [host.name for host in preview_hosts(outline(2), name="box")] == ["box"]


def test_hosts_that_cannot_suffice_are_refused_as_bind_would():
    with pytest.raises(PlaceError, match="4 worker tasks at 1 a host need 4 hosts"):
        preview_hosts(outline(4, per_host=1, hosts=2))

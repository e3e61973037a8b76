"""Hosts that are not there yet: enough of them to show a plan."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from outlines import outlines, unhurried
from phalanx.errors import PlaceError
from phalanx.plan.bind import bind
from phalanx.plan.outline import Failure, Outline, Role, Strategy
from phalanx.plan.preview import held_ports, preview_hosts
from phalanx.plan.size import at_its_largest, elastic_of, resized
from simulated import outline as small


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


@pytest.mark.parametrize("more", [{"chief": True}, {"dispatcher": Failure.ALONE}, {"chief": True, "fewest": 2}])
def test_whichever_hosts_are_left_of_an_elastic_job_hold_ports_for_all_that_moves_to_them(more):
    job = small(**{"workers": 4, "fewest": 1, "most": 6, "hosts": 3} | more)
    hosts = [
        dataclasses.replace(host, ports=tuple(range(100 * host.id, 100 * host.id + count)))
        for host, count in zip(preview_hosts(at_its_largest(job)), held_ports(job), strict=True)
    ]
    for left in (hosts[:1], hosts[1:2], hosts[2:], hosts[1:], hosts[::2], hosts):
        size = elastic_of(job).size(len(left))
        if size is not None:
            bind(resized(job, size), left, run="r", generation=2)
    assert held_ports(dataclasses.replace(job, hosts=1)) == (len(at_its_largest(job).tasks()),)

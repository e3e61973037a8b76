"""A pod is a host of one role: which tasks it takes, what it is numbered, and what its loss means."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx import events as ev
from phalanx.decide.elastic import awaits, can_start, is_complete, living_hosts, missing, outline_for
from phalanx.errors import PlaceError
from phalanx.lead.opening import opening_events
from phalanx.names import TaskId
from phalanx.plan.bind import bind
from phalanx.plan.host import Host
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.placement import place
from phalanx.plan.pods import one_task_a_host, pod_hosts, pod_sets
from phalanx.plan.wire import from_wire, to_wire
from phalanx.states import RunState, fold_all

COUNTS = st.fixed_dictionaries(
    {"worker": st.integers(1, 5)},
    optional={"chief": st.just(1), "ps": st.integers(1, 3), "evaluator": st.just(1), "tuner": st.integers(1, 2)},
)


def job(counts: dict[str, int], *, most: int | None = None, fewest: int | None = None) -> Outline:
    roles = tuple(
        Role(
            type=kind,
            count=count,
            command=("x",),
            min=fewest if kind == "worker" else None,
            max=most if kind == "worker" else None,
            in_cluster=kind != "tuner",
        )
        for kind, count in counts.items()
    )
    strategy = Strategy.PS if "ps" in counts else Strategy.MWMS
    return one_task_a_host(Outline(name="job", roles=roles, strategy=strategy, cwd=""))


def named(role: str, index: int) -> str:
    return f"r-{role}-{index}.r"


def joined(host: Host) -> ev.HostJoined:
    return ev.HostJoined(
        time=2.0,
        host=host.id,
        name=host.name,
        address=host.address,
        cpus=1,
        gpus=0,
        memory=0,
        agent_pid=1,
        instance="i",
        role=host.role,
    )


def after(outline: Outline, *events: ev.Event) -> RunState:
    opening = opening_events(outline, "r", 1.0, dropped=0)
    return fold_all(
        ev.Record(seq=number, epoch=1, event=event) for number, event in enumerate([*opening, *events], start=1)
    )


@given(COUNTS)
def test_every_task_has_a_pod_of_its_own_role_to_itself(counts):
    outline = job(counts)
    hosts = pod_hosts(outline, named)
    placed = place(outline, hosts)
    assert len(hosts) == outline.hosts == len(placed)
    assert len({host.id for host in placed.values()}) == len(placed)
    assert all(host.role == task.type for task, host in placed.items())
    plan = bind(outline, hosts, run="r", generation=1)
    assert {task.address.partition(":")[0] for task in plan.tasks if task.address} <= {host.address for host in hosts}


@given(COUNTS, st.integers(0, 4))
def test_numbers_are_kept_for_all_the_pods_that_a_role_may_have_and_host_0_is_the_leads(counts, more):
    outline = job(counts, most=counts["worker"] + more)
    sets = pod_sets(outline)
    taken = [number for pods in sets for number in range(pods.first, pods.first + pods.most)]
    assert taken == list(range(len(taken)))
    assert sets[0].role == ("chief" if "chief" in counts else "worker")
    assert next(pods for pods in sets if pods.role == "worker").most == counts["worker"] + more


@given(COUNTS, st.data())
def test_a_job_in_pods_starts_when_every_role_has_its_pods_and_says_which_has_not(counts, data):
    outline = job(counts)
    hosts = pod_hosts(outline, named)
    gone = data.draw(st.sets(st.sampled_from([host.id for host in hosts])))
    lost = [ev.HostLost(time=3.0, host=number, reason="gone") for number in sorted(gone)]
    state = after(outline, *map(joined, hosts), *lost)
    assert can_start(state) == is_complete(state) == (not gone)
    assert set(missing(state)) == {host.role for host in hosts if host.id in gone}
    for kind, (there, wanted) in missing(state).items():
        assert there == living_hosts(state, kind)
        assert f"{there} of {wanted} {kind}" in awaits(state)


def test_a_lost_ps_pod_is_not_a_lost_worker():
    outline = job({"chief": 1, "worker": 2, "ps": 1})
    hosts = pod_hosts(outline, named)
    others = [Host(id=9, name="w9", address="w9", ports=(1,), role="worker")]
    state = after(outline, *map(joined, [*hosts, *others]), ev.HostLost(time=3.0, host=3, reason="gone"))
    assert living_hosts(state) == state.wanted_hosts  # enough of them, were they alike
    assert not can_start(state)
    assert awaits(state) == "0 of 1 ps pods are there"
    with pytest.raises(PlaceError, match="1 ps tasks, and no host has joined that takes any"):
        place(outline, [host for host in [*hosts, *others] if host.role != "ps"])


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 1))
def test_an_elastic_group_has_as_many_workers_as_worker_pods(living, lost, evaluators):
    counts = {"chief": 1, "worker": living + lost} | ({"evaluator": 1} if evaluators else {})
    outline = job(counts, fewest=1, most=living + lost)
    hosts = [host for host in pod_hosts(outline, named) if host.role != "worker" or host.id <= living]
    state = after(outline, *map(joined, hosts))
    assert can_start(state)
    assert is_complete(state) == (not lost)
    smaller = outline_for(outline, state, hosts)
    assert smaller.role("worker").count == living
    assert len(bind(smaller, hosts, run="r", generation=2).tasks) == 1 + living + evaluators


def test_where_hosts_are_of_no_role_nothing_has_changed():
    hosts = [Host(id=number, name="n", address="n", ports=(1, 2)) for number in range(2)]
    outline = dataclasses.replace(
        job({"chief": 1, "worker": 1}),
        hosts=2,
        roles=(Role(type="chief", count=1, command=("x",)), Role(type="worker", count=1, command=("x",))),
    )
    state = after(outline, *map(joined, hosts))
    assert missing(state) == {}
    assert can_start(state)
    assert {host.id for host in place(outline, hosts).values()} == {0}


def test_a_record_of_a_host_without_a_role_is_read_and_written_as_before():
    told = joined(Host(id=1, name="n", address="a", ports=()))
    assert "role" not in to_wire(told)
    assert from_wire(ev.HostJoined, to_wire(told)).role == ""
    assert TaskId("worker", 0) in after(job({"worker": 1}), told).tasks

"""Plans as JSON: what is written is read back, by this version and by an older one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from outlines import host_lists, outlines, unhurried
from phalanx.plan.bind import bind
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.plan import Plan
from phalanx.plan.wire import WireError, from_wire, to_wire


@unhurried
@given(outlines(), host_lists())
def test_any_plan_survives_the_round_trip(job, living):
    plan = bind(job, living, run="r", generation=3)
    assert from_wire(Plan, json.loads(json.dumps(to_wire(plan)))) == plan


def test_defaults_are_left_out_and_come_back():
    job = Outline(name="j", roles=(Role(type="worker", count=1, command=("x",)),), strategy=Strategy.NONE, cwd="/")
    wire = to_wire(job)
    assert set(wire) == {"name", "roles", "strategy", "cwd"}
    assert from_wire(Outline, wire) == job


def test_what_a_newer_writer_adds_is_ignored():
    wire = {"type": "worker", "count": 1, "command": ["x"], "colour": "red"}
    assert from_wire(Role, wire) == Role(type="worker", count=1, command=("x",))


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ({"type": "worker", "count": 1}, "Role: no 'command'"),
        ({"type": "worker", "count": True, "command": []}, "Role.count: int wanted, True found"),
        ({"type": "worker", "count": 1, "command": "x"}, "Role.command: list wanted, 'x' found"),
        ({"type": "worker", "count": 1, "command": ["x", 3]}, r"Role.command\[1\]: str wanted, 3 found"),
        ([], r"Role: dict wanted, \[\] found"),
    ],
)
def test_a_broken_message_names_the_place(wire, said):
    with pytest.raises(WireError, match=said):
        from_wire(Role, wire)

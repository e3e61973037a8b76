"""Our own processes are found again and again without a look at everybody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable

import pytest

from phalanx.agent import tree
from phalanx.agent.kin import Kin

AGENT = 100


class Machine:
    """Processes by their number, each with its parent, and what was read of them."""

    def __init__(self) -> None:
        self.parents = {1: 0, 2: 0, AGENT: 1} | dict.fromkeys(range(1000, 3000), 1)
        self.read: list[int] = []
        self.gone: set[int] = set()
        self.now = 0.0

    def pids(self) -> set[int]:
        return set(self.parents)

    def table(self, these: Iterable[int]) -> dict[int, tree.Process]:
        self.read = list(these)
        return {pid: tree.Process(pid, self.parents[pid], 0, 0, 0) for pid in self.read if pid not in self.gone}


@pytest.fixture
def machine(monkeypatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(tree, "pids", made.pids)
    monkeypatch.setattr(tree, "table", made.table)
    return made


@pytest.fixture
def kin(machine) -> Kin:
    return Kin(AGENT, clock=lambda: machine.now)


def test_who_is_somebody_elses_is_read_once_a_minute(machine, kin):
    assert set(kin.look()) == {AGENT}
    assert len(machine.read) == len(machine.parents)
    machine.now = 2.0
    assert set(kin.look()) == {AGENT}
    assert machine.read == [AGENT]
    machine.now = 61.0
    kin.look()
    assert len(machine.read) == len(machine.parents)


def test_children_of_ours_are_found_at_once_and_let_go_of_when_they_have_ended(machine, kin):
    kin.look()
    machine.parents |= {201: AGENT, 202: 201, 5000: 1000}
    assert set(kin.look()) == {AGENT, 201, 202}
    kin.look()
    assert 5000 not in machine.read
    del machine.parents[201]
    machine.parents[202] = AGENT  # adopted
    assert set(kin.look()) == {AGENT, 202}


def test_one_whose_parent_ends_during_the_look_is_not_taken_for_a_strangers(machine, kin):
    machine.parents |= {201: AGENT, 202: 201}
    machine.gone = {201}
    assert set(kin.look()) == {AGENT}
    machine.parents[202] = AGENT
    assert set(kin.look()) == {AGENT, 202}


def test_a_number_that_has_become_ours_is_found_within_a_minute(machine, kin):
    kin.look()
    machine.parents[1500] = AGENT
    machine.now = 60.0
    assert set(kin.look()) == {AGENT, 1500}


@pytest.mark.real
def test_real_children_are_found():
    kin = Kin(os.getpid())
    kin.look()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = kin.look()
        assert found[child.pid].parent == os.getpid()
        assert os.getppid() not in found
    finally:
        child.communicate(b"\n")
    assert child.pid not in kin.look()

"""Whose turn it is when the lead is silent, and that two leads never both give orders."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from phalanx.decide.quorum import LEASE, TURN, gives_orders, lease_for, patience, recently, turn

LINE = ("a:1", "b:1", "c:1")


def test_the_lowest_host_but_the_silent_leads_own_has_the_first_turn():
    assert turn(LINE, "b:1", "a:1") == LEASE + TURN
    assert turn(LINE, "c:1", "a:1") == LEASE + 2 * TURN
    assert turn(LINE, "a:1", "b:1") == LEASE + TURN


@pytest.mark.parametrize("hosts", [1, 2_000, 10_000, 1_000_000])
def test_all_turns_come_after_the_lease_which_grows_with_the_hosts(hosts):
    lease = lease_for(hosts)
    assert LEASE <= lease <= 60
    assert turn(LINE, "b:1", "a:1", lease=lease) == lease + TURN
    assert patience(LINE, "b:1", "a:1", lease=lease) > turn(LINE, "c:1", "a:1", lease=lease) > lease


@pytest.mark.parametrize("own", ["a:1", "d:1"])
def test_neither_the_silent_lead_nor_a_host_outside_the_line_has_a_turn(own):
    assert turn(LINE, own, "a:1") is None


@given(st.lists(st.integers(1, 9).map(str), unique=True, min_size=1), st.data())
def test_no_two_hosts_have_the_same_turn_and_each_waits_longer_than_any_turn(line, data):
    lead = data.draw(st.sampled_from(line))
    turns = [turn(line, own, lead) for own in line]
    given_turns = [each for each in turns if each is not None]
    assert len(set(given_turns)) == len(given_turns) == len(line) - 1
    for own in line:
        others = [turn(line, other, lead) or LEASE for other in line if other != own]
        assert patience(line, own, lead) > max(others, default=0)


def test_a_host_alone_that_has_given_up_its_lead_waits_for_the_lease_only():
    assert patience(("a:1",), "a:1", "a:1") == LEASE


@given(st.lists(st.booleans(), min_size=1, max_size=12))
def test_of_two_leads_that_share_the_agents_exactly_one_gives_orders(sides):
    """Whichever way a network falls into two, by host: one side decides."""
    left, right = sides.count(True), sides.count(False)
    answers = [
        gives_orders(heard=left, of=len(sides), lowest=sides[0]),
        gives_orders(heard=right, of=len(sides), lowest=not sides[0]),
    ]
    assert sorted(answers) == [False, True]


@pytest.mark.parametrize("lease", [LEASE, 60.0])
def test_nobody_who_fell_silent_with_the_first_counts_as_heard_when_that_one_is_given_up(lease):
    ask, wait = 0.3 * lease, lease / 2
    assert ask < recently(lease) < lease - ask < lease
    assert wait < recently(lease)

"""Who is measured with whom: a tournament."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.network.measure import ROUNDS, Course, better, doubtful
from phalanx.network.measured import Link
from phalanx.network.schedule import ring, some, tournament


@given(st.integers(0, 70))
def test_every_pair_meets_exactly_once_and_nobody_plays_twice_in_a_round(count):
    rounds = tournament(count)
    met = [pair for one in rounds for pair in one]
    assert sorted(met) == list(itertools.combinations(range(count), 2))
    for one in rounds:
        players = [player for pair in one for player in pair]
        assert len(players) == len(set(players))


@given(st.integers(2, 70))
def test_no_schedule_has_fewer_rounds(count):
    assert len(tournament(count)) == (count - 1 if count % 2 == 0 else count)


@given(st.integers(2, 70), st.integers(1, 20))
def test_some_rounds_stand_for_all_and_none_twice(count, most):
    chosen = some(tournament(count), most)
    assert len(chosen) == min(most, len(tournament(count)))
    assert len(set(chosen)) == len(chosen)


@pytest.mark.parametrize(("count", "way"), [(1, ()), (2, ((0, 1), (1, 0))), (3, ((0, 1), (1, 2), (2, 0)))])
def test_a_ring_closes(count, way):
    assert ring(count) == way


def test_many_hosts_cost_no_more_than_some_rounds_and_that_is_said():
    many = Course.of(200, 0.5)
    assert len(many.rounds) == ROUNDS
    assert many.words() == "1500 of 19900 pairs in 15 rounds, then all hosts at once: about 11 s"
    assert Course.of(3, 1.0).words() == "3 pairs in 3 rounds, then all hosts at once: about 5 s"
    assert not Course.of(3, 1.0).lone
    assert Course.of(1, 1.0).words() == "its memory and cores: one host has no links"


def links(rates):
    return [Link(source=a, target=b, rate=rate, rtt=1e-4) for (a, b), rate in rates.items()]


def test_what_is_far_below_the_others_is_measured_once_more_and_nobody_plays_twice_in_a_round():
    rates = {(a, b): 100.0 for a in range(6) for b in range(6) if a != b}
    assert doubtful(links(rates)) == ()
    assert doubtful(links(rates | {(0, 1): 10.0, (1, 0): 40.0, (2, 1): 20.0, (4, 3): 30.0})) == (
        ((0, 1), (3, 4)),
        ((1, 2),),
    )
    assert doubtful([]) == ()


def test_a_slow_host_costs_three_rounds_more_and_not_one_for_each_other():
    slow = {way: 1.0 for n in range(9) for way in ((n, 9), (9, n))}
    rates = {(a, b): 100.0 for a in range(10) for b in range(10) if a != b} | slow
    assert [len(one) for one in doubtful(links(rates))] == [1, 1, 1]


def test_the_better_of_two_is_kept_for_each_direction():
    once, again = links({(0, 1): 1.0, (1, 0): 9.0, (0, 2): 5.0}), links({(0, 1): 4.0, (1, 0): 8.0})
    assert better(once, again) == links({(0, 1): 4.0, (1, 0): 9.0, (0, 2): 5.0})

"""Who is measured with whom: a tournament."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.network.measure import ROUNDS, Course
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

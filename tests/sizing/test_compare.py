"""What `bench` prints beside its figures."""

from __future__ import annotations

import pytest

from phalanx.sizing.compare import as_json, beside, busy, lines
from sizing.models import HERE, MB, looked_at


def test_the_table_has_what_the_cores_allow_and_says_what_is_not_reckoned():
    row = beside(looked_at(), HERE, 2, None, steps=50.0, memory={"worker": 600 * MB}, work=0.010)
    head, first, *notes = lines([row])
    assert "by core time" in head
    assert " 200 " in first
    assert as_json(row)["steps_per_s_by_core_time"] == pytest.approx(200)
    assert any("Callbacks, validation and saving" in note for note in notes)


def test_a_reckoning_far_off_is_a_factor_and_has_its_reason_where_the_cores_were_idle():
    told = [lines([beside(looked_at(), HERE, 1, None, steps=50.0, memory={}, work=work)]) for work in (0.010, 0.039)]
    assert all("25.5 times" in text[1] for text in told)
    assert told[0][-1].startswith("1: the run used 25% of the cores, so it waited for what is not reckoned")
    assert not told[1][-1].startswith("1: ")


def test_core_time_nobody_knows_allows_nothing():
    row = beside(looked_at(), HERE, 2, None, steps=50.0, memory={}, work=0.0)
    assert as_json(row)["steps_per_s_by_core_time"] is None


@pytest.mark.parametrize(("load", "said"), [(0.3, False), (1.0, False), (1.2, True), (9.0, True)])
def test_a_machine_that_others_use_is_told(load: float, *, said: bool):
    assert bool(busy(load, 2)) is said
    assert not said or f"(load {load:.1f} on 2 cores)" in busy(load, 2)

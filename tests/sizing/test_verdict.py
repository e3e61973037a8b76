"""The recommendation and its reasons, as golden texts, and what must hold of every one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable

import pytest

from phalanx.sizing import words
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place
from phalanx.sizing.verdict import advise
from sizing.models import HERE, MB, GiB, dense, hosts, looked_at, recommender

CASES: dict[str, tuple[Model, Place, int]] = {
    "table": (recommender(), hosts(8), 4),
    "dense": (dense(100 * MB, slots=2, batch=2048).timed(0.8, 4), hosts(4), 4),
    "dense_slow_link": (dense(400 * MB, batch=256).timed(0.05, 4), hosts(4, bandwidth=1.25e7), 4),
    "one": (looked_at(), HERE, 1),
    "too_many_here": (dense(2 * 10**9, slots=2), HERE, 4),
    "nowhere": (recommender(), HERE, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_the_advice_reads(case: str, golden: Callable[[str, str], None]):
    model, place, workers = CASES[case]
    text = "\n".join(words.lines(advise(model, place, workers), model, place))
    golden(f"sizing/{case}.txt", text + "\n")


def test_a_table_of_forty_gigabytes_goes_to_parameter_servers_that_hold_it():
    model, place, workers = CASES["table"]
    found = advise(model, place, workers)
    assert found.strategy == "ps"
    assert "does not fit one worker: 41.0 GB table" in found.reasons[0]
    served = found.options[1]
    assert served.servers is not None
    assert served.servers.count == 2
    assert "MinSizePartitioner" in served.servers.partitioner


def test_a_model_that_no_worker_holds_is_not_compared_with_one_worker():
    model, place, workers = CASES["table"]
    assert not any("the work of one" in reason for reason in advise(model, place, workers).reasons)
    roomy = dataclasses.replace(place, memory=10 * place.memory)
    assert any("the work of one" in reason for reason in advise(model, roomy, workers).reasons)


def test_a_dense_model_with_fast_links_is_mirrored():
    model, place, workers = CASES["dense"]
    found = advise(model, place, workers)
    assert found.strategy == "mwms"
    assert found.reasons[0].startswith("100% dense, fast links")


def test_a_slow_network_is_named_for_what_it_costs():
    """R70."""
    model, place, workers = CASES["dense_slow_link"]
    found = advise(model, place, workers)
    assert found.strategy == "none"
    assert found.reasons[0] == "one worker is faster: 4 do 0.0042 times its work, as the exchange takes 100% of a step"


@pytest.mark.parametrize("case", CASES)
def test_scripts_read_the_same_as_people(case: str):
    model, place, workers = CASES[case]
    found = advise(model, place, workers)
    told = json.loads(json.dumps(words.as_json(found, model, place)))
    assert told["advice"] == found.strategy
    assert [one["fits"] for one in told["options"]] == [one.fits for one in found.options]
    assert all(0 <= one["efficiency"] <= 1.001 for one in told["options"])


def test_a_loop_in_the_step_is_said():
    model = looked_at()
    assert model.step is not None
    model = dataclasses.replace(model, step=dataclasses.replace(model.step, loops=True))
    assert "--step says how long" in advise(model, hosts(2), 2).reasons[-1]


def test_memory_nobody_knows_refuses_nothing():
    assert advise(recommender(), hosts(4, 0), 4).options[0].fits
    assert not advise(recommender(), hosts(4, 8 * GiB), 4).options[0].fits

"""Which `fit` is told to train apart from the other workers, and by whom."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest

from phalanx.runtime.boot.phalanx_apart import Apart
from phalanx.runtime.boot.phalanx_keras3 import Notes

TWO = {"worker": ["a:1", "b:1"]}
LED = {"chief": ["c:1"], "worker": ["a:1"]}
DEFAULT = "_DefaultDistributionStrategy"


def fit(
    monkeypatch: pytest.MonkeyPatch, strategy: str, cluster: dict[str, Any], task: str, *, times: int = 1
) -> list[str]:
    """What is said of so many fits of a model under that strategy."""
    kind, index = task.split(":")
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": kind, "index": int(index)}}))
    monkeypatch.setenv("PHALANX_TASK", task)
    said: list[str] = []
    line = types.SimpleNamespace(say=lambda _kind, message: said.append(message))
    apart = Apart(Notes(line))  # type: ignore[arg-type]  # a line that only says
    model = types.SimpleNamespace(distribute_strategy=type(strategy, (), {})())
    for _ in range(times):
        apart.begins(types.SimpleNamespace(model=model))
    return said


@pytest.fixture(autouse=True)
def _first_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHALANX_GENERATION", raising=False)


def test_the_first_worker_says_once_that_each_trains_a_model_of_its_own(monkeypatch):
    assert fit(monkeypatch, DEFAULT, TWO, "worker:0", times=2) == [
        "worker:0 trains by itself: the model was built outside strategy.scope(), so the 2 workers train 2 models"
    ]
    assert fit(monkeypatch, DEFAULT, LED, "chief:0") == [
        "chief:0 trains by itself: the model was built outside strategy.scope(), so the 2 workers train 2 models"
    ]


def test_a_strategy_of_one_process_joins_no_workers_either(monkeypatch):
    [said] = fit(monkeypatch, "MirroredStrategy", TWO, "worker:0")
    assert "MirroredStrategy is of one process" in said


@pytest.mark.parametrize(
    ("strategy", "cluster", "task"),
    [
        ("CollectiveAllReduceStrategy", TWO, "worker:0"),
        ("MultiWorkerMirroredStrategy", TWO, "worker:0"),
        ("ParameterServerStrategyV2", {**LED, "ps": ["p:1"]}, "chief:0"),
        (DEFAULT, {**LED, "ps": ["p:1"]}, "chief:0"),
        (DEFAULT, {"worker": ["a:1"]}, "worker:0"),
        (DEFAULT, TWO, "worker:1"),
        (DEFAULT, LED, "worker:0"),
        (DEFAULT, {**TWO, "evaluator": ["e:1"]}, "evaluator:0"),
        (DEFAULT, {}, "worker:0"),
    ],
)
def test_who_trains_with_the_others_or_alone_by_right_says_nothing(monkeypatch, strategy, cluster, task):
    assert fit(monkeypatch, strategy, cluster, task) == []


def test_what_it_cannot_read_is_no_trouble_of_the_programs(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "no json")
    apart = Apart(Notes(None))  # type: ignore[arg-type]  # never asked
    apart.begins(types.SimpleNamespace(model=types.SimpleNamespace(distribute_strategy=object())))
    apart.begins(types.SimpleNamespace(model=types.SimpleNamespace(distribute_strategy=type(DEFAULT, (), {})())))
    apart.begins(None)


def test_another_generation_does_not_say_it_again(monkeypatch):
    monkeypatch.setenv("PHALANX_GENERATION", "2")
    assert fit(monkeypatch, DEFAULT, TWO, "worker:0") == []

"""What is mended in Keras 3, and which of its versions are left alone: on small copies of the two functions."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Self

import pytest

from phalanx.runtime.boot import phalanx_hooks, phalanx_keras3
from phalanx.runtime.boot.phalanx_keras3 import RIGHT, UNKNOWN, WRONG, Mend, Notes, try_build, try_reduce


class DistributedValues:
    def __init__(self, *values: object) -> None:
        self.values = values


class CollectiveAllReduceStrategy:
    def __init__(self, *, workers: int = 2, chief: bool = True) -> None:
        self.extended = types.SimpleNamespace(_in_multi_worker_mode=lambda: workers > 1, _is_chief=chief)
        self.num_replicas_in_sync = workers

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        return value.values if isinstance(value, DistributedValues) else (value,)

    def reduce(self, op: str, value: Any, axis: int | None = 0) -> Any:
        assert axis is None, "Invalid reduction dimension 0 for input with 0 dimensions"
        return Number(value, f"{op} {value}")

    def scope(self) -> Any:
        return phalanx_keras3._Nothing()


class Number(float):
    """A log: a number with a dtype, and a word of what was done to it."""

    dtype = types.SimpleNamespace(is_floating=True, is_integer=False)

    def __new__(cls, value: float, done: str = "") -> Self:
        made = super().__new__(cls, value)
        made.done = done
        return made

    done: str


def flat(change: Callable[[Any], Any], values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(flat(change, value) for value in values)
    if isinstance(values, dict):
        return {name: flat(change, value) for name, value in values.items()}
    return change(values)


def as_shipped(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
    if iterator is not None:
        for _, _, batches in iterator:
            data_batch = next(batches)
            if all(isinstance(value, DistributedValues) for value in data_batch):
                data_batch = self._distribute_strategy.reduce("MEAN", data_batch, axis=None)
            break
    with self._distribute_strategy.scope():
        self._symbolic_build(data_batch=data_batch)


def mended_upstream(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
    for _, _, batches in iterator:
        data_batch = flat(lambda value: self._distribute_strategy.reduce("MEAN", value, axis=None), next(batches))
    self._symbolic_build(data_batch=data_batch)


def of_another_kind(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
    del data_batch
    self.build_from(iterator.element_spec)


def keras(build: Callable[..., Any] = as_shipped, reduce: Callable[..., Any] | None = None) -> Any:
    """A module with all that is asked for of Keras's trainer."""

    def reduce_per_replica(values: Any, strategy: Any, reduction: str) -> Any:
        assert reduction in ("auto", "concat")
        return flat(lambda value: strategy.reduce("MEAN", value, axis=0), values)

    class TensorFlowTrainer:
        _maybe_symbolic_build = build

        def __init__(self, strategy: Any) -> None:
            self._distribute_strategy, self.built = strategy, []

        def _symbolic_build(self, data_batch: Any) -> None:
            self.built.append(data_batch)

    class MultiWorkerMirroredStrategy:
        @property
        def extended(self) -> object:
            raise AssertionError

    distribute = types.SimpleNamespace(
        DistributedValues=DistributedValues, MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy
    )
    return types.SimpleNamespace(
        TensorFlowTrainer=TensorFlowTrainer,
        reduce_per_replica=reduce or reduce_per_replica,
        tf=types.SimpleNamespace(distribute=distribute),
        tree=types.SimpleNamespace(map_structure=flat),
    )


class Line:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, kind: str, *, message: str) -> None:
        assert kind == "note"
        self.said.append(message)


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PHALANX_KERAS", "PHALANX_GENERATION"):
        monkeypatch.delenv(name, raising=False)


def mended(module: Any) -> list[str]:
    line = Line()
    Mend(Notes(line), phalanx_hooks.disguise).take(module)  # type: ignore[arg-type]  # of a life line only `say`
    return line.said


BATCH = (DistributedValues("x0", "x1"), DistributedValues("y0", "y1"))


def batches() -> Any:
    return iter([(0, 1, iter([BATCH])), (1, 2, iter([]))])


@pytest.mark.parametrize(
    ("build", "verdict"), [(as_shipped, WRONG), (mended_upstream, RIGHT), (of_another_kind, UNKNOWN)]
)
def test_a_trial_tells_what_the_first_batch_becomes(build: Callable[..., Any], verdict: str) -> None:
    assert try_build(keras(), build) == verdict


@pytest.mark.parametrize(
    ("reduce", "verdict"),
    [
        (lambda values, strategy, _: flat(lambda one: strategy.reduce("MEAN", one, axis=0), values), WRONG),
        (lambda values, strategy, _: flat(lambda one: strategy.reduce("SUM", one), values), WRONG),
        (lambda values, strategy, _: flat(lambda one: strategy.reduce("MEAN", one, axis=None), values), RIGHT),
        (lambda values, strategy, _: flat(lambda one: strategy.experimental_local_results(one)[0], values), RIGHT),
        (lambda values, strategy, _: strategy.gather(values), UNKNOWN),
    ],
)
def test_a_trial_tells_what_the_logs_become(reduce: Callable[..., Any], verdict: str) -> None:
    assert try_reduce(keras(), reduce) == verdict


def test_the_first_batch_is_this_workers_and_logs_are_the_mean_over_all() -> None:
    module, strategy = keras(), CollectiveAllReduceStrategy()
    said = mended(module)
    trainer = module.TensorFlowTrainer(strategy)
    for _ in range(2):
        trainer._maybe_symbolic_build(iterator=batches())
    assert trainer.built == [("x0", "y0")] * 2
    reduced = module.reduce_per_replica({"loss": Number(0.5), "name": "text"}, strategy, "auto")
    assert (reduced["loss"].done, reduced["name"]) == ("MEAN 0.5", "text")
    assert len(said) == 1
    assert "keras-team/keras#20585" in said[0]


def test_a_keras_that_does_right_is_left_alone_and_nothing_is_said() -> None:
    def reduce(values: Any, strategy: Any, _reduction: str) -> Any:
        return flat(lambda value: strategy.reduce("MEAN", value, axis=None), values)

    module, strategy = keras(mended_upstream, reduce), CollectiveAllReduceStrategy()
    said = mended(module)
    trainer = module.TensorFlowTrainer(strategy)
    trainer._maybe_symbolic_build(iterator=[(0, 1, iter([(Number(1.0), Number(2.0))]))])
    assert trainer.built == [(1.0, 2.0)]
    assert module.reduce_per_replica(Number(1.0), strategy, "auto").done == "MEAN 1.0"
    assert said == []


def test_a_keras_of_another_kind_is_left_alone_with_a_line_that_says_so() -> None:
    module, seen = keras(of_another_kind), []
    said = mended(module)
    trainer = module.TensorFlowTrainer(CollectiveAllReduceStrategy())
    trainer.build_from = seen.append
    trainer._maybe_symbolic_build(iterator=types.SimpleNamespace(element_spec="spec"))
    assert seen == ["spec"]
    assert [message.partition(": ")[2][:51] for message in said] == [
        "fit and evaluate fail with several workers (keras-t",  # its logs are as ever
        "its fit is written in a way that phalanx does not k",
    ]


def test_one_without_the_two_functions_is_not_touched() -> None:
    module = keras()
    del module.reduce_per_replica
    with pytest.raises(AttributeError):  # which the hooks pass over
        mended(module)
    assert module.TensorFlowTrainer._maybe_symbolic_build is as_shipped


@pytest.mark.parametrize(
    ("strategy", "environ"),
    [
        (None, {}),
        (CollectiveAllReduceStrategy(workers=1), {}),
        (types.SimpleNamespace(extended=None), {}),
        (CollectiveAllReduceStrategy(), {"PHALANX_KERAS": "off"}),
    ],
)
def test_one_worker_other_strategies_and_keras_off_see_keras_as_it_is(
    strategy: Any, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    module, asked = keras(lambda _self, iterator, data_batch: asked.append((iterator, data_batch))), []
    said = mended(module)
    trainer, iterator = module.TensorFlowTrainer(strategy), batches()
    trainer._maybe_symbolic_build(iterator=iterator)
    trainer._maybe_symbolic_build(data_batch="batch")
    assert asked == [(iterator, None), (None, "batch")]
    assert said == []


def test_only_the_first_worker_speaks_and_only_in_the_first_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    for chief, generation, lines in ((True, "1", 1), (False, "1", 0), (True, "2", 0)):
        monkeypatch.setenv("PHALANX_GENERATION", generation)
        module = keras()
        said = mended(module)
        module.reduce_per_replica(Number(1.0), CollectiveAllReduceStrategy(chief=chief), "auto")
        assert len(said) == lines

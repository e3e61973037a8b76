"""Rules about the input: files and workers, batches and workers, data that ends too early."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from phalanx.script.module import Module, argument
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity

_READERS = (
    "tensorflow.data.TFRecordDataset",
    "tensorflow.data.TextLineDataset",
    "tensorflow.data.FixedLengthRecordDataset",
)
#: Words of a program that has thought of how its data is divided.
_DIVIDES = frozenset(
    [
        "auto_shard_policy",
        "AutoShardPolicy",
        "shard",
        "distribute_datasets_from_function",
        "input_pipeline_id",
        "experimental_distribute_datasets_from_function",
        "InputContext",
    ]
)
#: Those that leave nothing to fit.
_DIVIDES_BY_HAND = _DIVIDES - {"auto_shard_policy", "AutoShardPolicy"}
#: Methods that leave a pass as long as it is.
_KNOWN = frozenset({"batch", "shuffle", "map", "prefetch", "cache", "with_options"})
#: Longer than any input pipeline.
_DEEP = 30
_SOURCES = ("tensorflow.data.Dataset.from_tensor_slices", *_READERS)


class _Source(NamedTuple):
    """Where a dataset comes from: the call of tf.data, and the methods called on the way."""

    module: Module
    call: ast.Call
    name: str
    methods: frozenset[str]


def _few_files(program: Program) -> Iterator[Hit]:
    """AUTO shards by file where the data comes from files, and a worker without a file stops it."""
    if program.strategy != "mwms" or program.words & _DIVIDES:
        return
    workers = program.roles.training if program.roles is not None else 2
    for source in _distributed(program):
        if source.name not in _READERS or not source.call.args:
            continue
        value = program.value(source.module, source.call.args[0])
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if 0 < len(names) < workers and all(map(_is_file, names)):
            count = f"{len(names)} file{'s' if len(names) > 1 else ''}"
            whom = f"{workers} workers" if program.roles is not None else "more than one worker"
            said = f"{count} for {whom}, and no auto-shard policy is set"
            yield Hit(source.module, source.call, said, severity=program.unless_sure("mwms"))


def _is_file(name: object) -> bool:
    return isinstance(name, str) and not set(name) & set("*?[")


def _distributed(program: Program) -> Iterator[_Source]:
    """The sources of what a strategy divides among workers: of fit, and of experimental_distribute_dataset."""
    given = [(module, argument(call, 0, "x")) for module, call, _ in program.fits]
    given += [
        (module, node.args[0])
        for module in program.modules
        for node in module.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "experimental_distribute_dataset"
        and node.args
    ]
    for module, data in given:
        if (source := _source(program, module, data)) is not None:
            yield source


def _source(program: Program, module: Module, node: ast.expr | None, depth: int = 0) -> _Source | None:
    """None where it is not surely a chain of tf.data."""
    if depth > _DEEP or node is None:
        return None
    match node:
        case ast.Call(func=func) if (name := module.dotted(func)) and name.startswith("tensorflow.data."):
            return _Source(module, node, name, frozenset())
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if module.dotted(node.func) is None:
            source = _source(program, module, inner, depth + 1)
            return None if source is None else source._replace(methods=source.methods | {method})
        case ast.Call(func=func):
            returned = program.returned(module, func)
            return None if returned is None else _source(program, *returned, depth + 1)
        case ast.Name():
            return _source(program, module, program.values(module).assigned(node), depth + 1)
    return None


def _uneven(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.roles is None or program.words & _DIVIDES_BY_HAND:
        return
    if program.alone or "num_replicas_in_sync" in program.words:
        return
    workers = program.roles.training
    for module, fit, _ in program.fits:
        at = argument(fit, 0, "x")
        for _ in range(_DEEP):
            if isinstance(at, ast.Name):
                at = program.values(module).assigned(at)
            elif isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr != "batch":
                at = at.func.value
            else:
                break
        if not (isinstance(at, ast.Call) and at.args and _source(program, module, at) is not None):
            continue
        size = program.value(module, at.args[0])
        if isinstance(size, int) and size % workers:
            yield Hit(module, at, f"a batch of {size} does not divide by {workers} workers")


def _runs_out(program: Program) -> Iterator[Hit]:
    """Steps that are one pass over the data, and several epochs: tf_keras goes on in the same pass."""
    for module, call, generation in program.fits:
        words = {word.arg: word.value for word in call.keywords}
        epochs = program.value(module, words.get("epochs"))
        steps = words.get("steps_per_epoch")
        if isinstance(steps, ast.Name):
            steps = program.values(module).assigned(steps)
        if generation != 2 or not isinstance(epochs, int) or epochs < 2:  # noqa: PLR2004 - Keras 2, several epochs
            continue
        if not (isinstance(steps, ast.BinOp) and isinstance(steps.op, ast.FloorDiv)):
            continue
        source = _source(program, module, argument(call, 0, "x"))
        if source is not None and source.name in _SOURCES and "batch" in source.methods and source.methods <= _KNOWN:
            yield Hit(module, call, f"the data ends after one of {epochs} epochs: no repeat()")


RULES = (
    Rule(
        id="fewer-files-than-workers",
        severity=Severity.ERROR,
        message="The data comes from fewer files than there are workers, and no auto-shard policy is set.",
        find=_few_files,
        consequence="It is divided by file: InvalidArgumentError: Could not apply FILE based sharding, or a "
        "worker without data and a hang after the first epoch.",
        fix="options = tf.data.Options(); options.experimental_distribute.auto_shard_policy = "
        "tf.data.experimental.AutoShardPolicy.DATA; dataset = dataset.with_options(options); or write more files",
        source="R59; measured on TensorFlow 2.21",
    ),
    Rule(
        id="batch-not-divisible",
        severity=Severity.INFO,
        message="The global batch does not divide by the number of workers.",
        find=_uneven,
        consequence="The workers' shares differ, and so do the results from those of another number of workers.",
        fix="make it a multiple: PER_WORKER * strategy.num_replicas_in_sync",
        source="facts §3",
    ),
    Rule(
        id="data-runs-out",
        severity=Severity.WARNING,
        message="steps_per_epoch is one pass over the data, there are several epochs, and no repeat().",
        find=_runs_out,
        consequence='tf_keras goes on in the same pass: "Your input ran out of data" in the second epoch.',
        fix="dataset.repeat(), or leave steps_per_epoch out",
        source="R61",
    ),
)

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
#: Words of a program that divides its data itself.
_DIVIDES_BY_HAND = frozenset(
    [
        "shard",
        "distribute_datasets_from_function",
        "input_pipeline_id",
        "experimental_distribute_datasets_from_function",
        "InputContext",
    ]
)
#: Methods that leave a pass as long as it is.
_KNOWN = frozenset({"batch", "shuffle", "map", "prefetch", "cache", "with_options"})
#: Longer than any input pipeline.
_DEEP = 30
_SOURCES = ("tensorflow.data.Dataset.from_tensor_slices", *_READERS)
#: Datasets of names, of which a method reads each file.
_LISTS = ("tensorflow.data.Dataset.list_files", "tensorflow.data.Dataset.from_tensor_slices")
_READ_EACH = frozenset({"interleave", "flat_map"})
_IN_MEMORY = tuple(f"tensorflow.data.Dataset.{way}" for way in ("from_tensor_slices", "from_tensors", "range"))


class _Source(NamedTuple):
    """Where a dataset comes from: the call of tf.data, and the methods called on the way."""

    module: Module
    call: ast.Call
    name: str
    methods: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()


def _few_files(program: Program) -> Iterator[Hit]:
    """AUTO shards by file where data comes from files, FILE always; a worker without a file stops it."""
    if program.strategy != "mwms" or program.words & _DIVIDES_BY_HAND or program.alone:
        return
    policies = _policies(program)
    if not policies <= {"AUTO", "FILE"} or (not policies and program.words & {"auto_shard_policy", "AutoShardPolicy"}):
        return
    workers = program.roles.training if program.roles is not None else 2
    for source in _distributed(program):
        names = _files(program, source)
        if 0 < len(names) < workers and all(map(_is_file, names)):
            count = f"{len(names)} file{'s' if len(names) > 1 else ''}"
            whom = f"{workers} workers" if program.roles is not None else "more than one worker"
            policy = "the auto-shard policy is FILE" if "FILE" in policies else "no auto-shard policy is set"
            said = f"{count} for {whom}, and {policy}"
            yield Hit(source.module, source.call, said, severity=program.unless_sure("mwms"))
        elif policies == {"FILE"} and "with_options" in source.methods and _of_memory(source):
            yield Hit(
                source.module,
                source.call,
                "the auto-shard policy is FILE, and the data comes from no file",
                severity=program.unless_sure("mwms"),
                consequence="NotFoundError: Found an unshardable source dataset.",
            )


def _policies(program: Program) -> set[str]:
    """The auto-shard policies it sets: `FILE`; one that is not written out is `?`."""
    found: set[str] = set()
    for module in program.modules:
        for node in module.nodes:
            match node:
                case ast.Assign(targets=[ast.Attribute(attr="auto_shard_policy")], value=value):
                    name = module.dotted(value) or ""
                    found.add(name.rpartition(".")[2] if ".AutoShardPolicy." in name else "?")
    return found


def _files(program: Program, source: _Source) -> list[object]:
    """The names of the files it is read from; none where they are not known, or there are none."""
    reads = source.name in _READERS or (source.name in _LISTS and source.methods & _READ_EACH)
    value = program.value(source.module, source.call.args[0]) if reads and source.call.args else None
    return [value] if isinstance(value, str) else value if isinstance(value, list) else []


def _of_memory(source: _Source) -> bool:
    return source.name in _IN_MEMORY and not source.methods & _READ_EACH


def _is_file(name: object) -> bool:
    return isinstance(name, str) and not set(name) & set("*?[")


def _distributed(program: Program) -> Iterator[_Source]:
    """The sources of what a strategy divides among workers: of fit, and of experimental_distribute_dataset."""
    for module, data in _divided(program):
        if (source := _source(program, module, data)) is not None:
            yield source


def _divided(program: Program) -> Iterator[tuple[Module, ast.expr]]:
    for module, call, _ in program.fits:
        validation = next((word.value for word in call.keywords if word.arg == "validation_data"), None)
        yield from ((module, data) for data in (argument(call, 0, "x"), validation) if data is not None)
    for module, node, _, _ in program.methods("experimental_distribute_dataset"):
        if node.args:
            yield module, node.args[0]


def _source(program: Program, module: Module, node: ast.expr | None, depth: int = 0) -> _Source | None:
    """None where it is not surely a chain of tf.data."""
    if depth > _DEEP or node is None:
        return None
    match node:
        case ast.Call(func=func) if (name := module.dotted(func)) and name.startswith("tensorflow.data."):
            return _Source(module, node, name)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if module.dotted(node.func) is None:
            source = _source(program, module, inner, depth + 1)
            given = {word.arg for word in node.keywords if word.arg}
            return source and source._replace(methods=source.methods | {method}, words=source.words | given)
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
    for module, node, given in _batches(program):
        size = program.value(module, given)
        if isinstance(size, int) and size % workers:
            yield Hit(module, node, f"a batch of {size} does not divide by {workers} workers")


def _batches(program: Program) -> Iterator[tuple[Module, ast.AST, ast.expr]]:
    """Where a global batch is made: `.batch(n)` of what is divided, or `fit(…, batch_size=n)`."""
    for module, data in _divided(program):
        at: ast.expr | None = data
        for _ in range(_DEEP):
            if isinstance(at, ast.Name):
                at = program.values(module).assigned(at)
            elif isinstance(at, ast.Call) and isinstance(at.func, ast.Attribute) and at.func.attr != "batch":
                at = at.func.value
            else:
                break
        if isinstance(at, ast.Call) and at.args and _source(program, module, at) is not None:
            yield module, at, at.args[0]
    for module, call, _ in program.fits:
        for word in call.keywords:
            if word.arg == "batch_size":
                yield module, call, word.value


def _runs_out(program: Program) -> Iterator[Hit]:
    """Steps that are one pass over the data, and several epochs: tf_keras goes on in the same pass.

    Unless the steps are all batches there are: then it begins anew each epoch.
    """
    for module, call, generation in program.fits:
        words = {word.arg: word.value for word in call.keywords}
        epochs = program.value(module, words.get("epochs"))
        divided = _division(program, module, words.get("steps_per_epoch"))
        if generation != 2 or not isinstance(epochs, int) or epochs < 2 or divided is None:  # noqa: PLR2004 - Keras 2, several epochs
            continue
        source = _source(program, module, argument(call, 0, "x"))
        if source is None or source.name not in _SOURCES or "batch" not in source.methods:
            continue
        if not source.methods <= _KNOWN or "drop_remainder" in source.words:
            continue
        count, size = (program.value(module, it) for it in divided)
        known = isinstance(count, int) and isinstance(size, int) and size > 0
        if known and count % size == 0:
            continue
        said = f"the data ends after one of {epochs} epochs: no repeat()"
        rest = "" if known else ", unless it divides into whole batches"
        yield Hit(module, call, said + rest, severity=None if known else Severity.INFO)


def _division(program: Program, module: Module, steps: ast.expr | None) -> tuple[ast.expr, ast.expr] | None:
    """`n // b`, `int(n / b)`, `math.floor(n / b)`; what is rounded up is no pass cut short."""
    if isinstance(steps, ast.Name):
        steps = program.values(module).assigned(steps)
    match steps:
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return left, right
        case ast.Call(func=func, args=[ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv(), right=right)]):
            name = module.dotted(func) or (func.id if isinstance(func, ast.Name) else "")
            return (left, right) if name in ("int", "math.floor", "numpy.floor") else None
    return None


RULES = (
    Rule(
        id="fewer-files-than-workers",
        severity=Severity.ERROR,
        message="The data comes from fewer files than there are workers, and is divided by file.",
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
        consequence='tf_keras goes on in the same pass: "Your input ran out of data" in the second epoch, and the end.',
        fix="dataset.repeat(), or leave steps_per_epoch out",
        source="R61",
    ),
)

"""Rules about the beginning: what may not come before MultiWorkerMirroredStrategy, and which strategy there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.script.known import ALONE, STRATEGIES, STRATEGY_WORDS
from phalanx.script.module import Module
from phalanx.script.program import MODELS, Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.walk import Step
from phalanx.tfconfig.finding import Severity

#: Calls that make TensorFlow's context, each measured (facts §1). Nothing that is not in these tables is reported.
CREATES = frozenset(
    f"tensorflow.{name}"
    for name in [
        "Variable",
        "abs",
        "add",
        "argmax",
        "argmin",
        "argsort",
        "boolean_mask",
        "cast",
        "clip_by_value",
        "concat",
        "constant",
        "convert_to_tensor",
        "cumsum",
        "device",
        "divide",
        "equal",
        "exp",
        "expand_dims",
        "eye",
        "fill",
        "gather",
        "gather_nd",
        "identity",
        "linspace",
        "matmul",
        "maximum",
        "minimum",
        "multiply",
        "one_hot",
        "ones",
        "ones_like",
        "pad",
        "print",
        "range",
        "rank",
        "reduce_max",
        "reduce_mean",
        "reduce_min",
        "reduce_sum",
        "repeat",
        "reshape",
        "reverse",
        "round",
        "shape",
        "sign",
        "size",
        "slice",
        "split",
        "sqrt",
        "square",
        "squeeze",
        "stack",
        "stop_gradient",
        "subtract",
        "tensordot",
        "tile",
        "timestamp",
        "transpose",
        "unstack",
        "where",
        "zeros",
        "zeros_like",
        "config.list_logical_devices",
        "config.experimental.list_logical_devices",
        "distribute.MirroredStrategy",
        "distribute.OneDeviceStrategy",
        "summary.create_file_writer",
        "random.Generator.from_seed",
        "random.normal",
        "random.uniform",
        "random.shuffle",
        "random.truncated_normal",
        "io.read_file",
        "io.decode_jpeg",
        "io.decode_png",
        "image.resize",
        "image.decode_jpeg",
        "image.decode_png",
        "lookup.KeyValueTensorInitializer",
        "sparse.from_dense",
        "data.TFRecordDataset",
        "data.TextLineDataset",
        "data.FixedLengthRecordDataset",
        "math.log",
        "math.exp",
        "math.reduce_mean",
        "math.reduce_sum",
        "linalg.inv",
        "strings.join",
        "nn.softmax",
        "nn.relu",
    ]
)
_DATASETS = "tensorflow.data.Dataset."
#: Of Keras: 2 and 3 differ in an empty model.
OF_KERAS = frozenset(
    {
        *("optimizers.Adam", "optimizers.SGD", "optimizers.RMSprop", "optimizers.Adagrad", "optimizers.AdamW"),
        *("optimizers.get", "metrics.Mean", "metrics.Accuracy", "metrics.SparseCategoricalAccuracy", "metrics.AUC"),
        *("metrics.CategoricalAccuracy", "metrics.BinaryAccuracy", "layers.TextVectorization", "layers.StringLookup"),
    }
)
#: Words of a program with any strategy.
_OF_ANY = frozenset({"strategy", "Strategy"})
_INPUTS = ("Input", "layers.Input", "layers.InputLayer")
#: With these in a program, operations may go into a graph that has no context.
_GRAPHS = frozenset({"Graph", "disable_eager_execution", "disable_v2_behavior", "init_scope"})


def _early(program: Program) -> Iterator[Hit]:
    if program.words & _GRAPHS:
        return
    for at, strategy in enumerate(program.steps):
        if STRATEGIES.get(strategy.name or "") != "mwms":
            continue
        for step in program.steps[:at]:
            if creates(program, step) and step.leads_to(strategy):
                what = _written(step)
                where = "" if step.module is strategy.module else f" of {strategy.module.path}"
                line = getattr(strategy.node, "lineno", 0)
                yield Hit(
                    step.module,
                    step.node,
                    f"`{what}` comes before MultiWorkerMirroredStrategy() in line {line}{where}",
                    fix=f"build the strategy first: move line {line} above this one, or this into what comes after it",
                    severity=None if strategy.sure else Severity.WARNING,
                )
                break  # the others follow from it
        return


def creates(program: Program, step: Step) -> bool:
    """Whether it is a call that makes TensorFlow's context."""
    name = step.name or ""
    if name in CREATES or name.startswith(_DATASETS):
        return True
    keras = program.keras_name(name)
    if keras is None or not isinstance(step.node, ast.Call):
        return False
    if keras.name in OF_KERAS:
        return True
    if keras.name.startswith("applications."):
        return keras.name.count(".") == 1
    if keras.name in MODELS:
        return keras.generation < 3 or _has_input(program, step.module, step.node)  # noqa: PLR2004 - Keras 3
    return False


def _has_input(program: Program, module: Module, call: ast.Call) -> bool:
    """A Sequential whose layers are built at once, since the first says its shape."""
    layers = call.args[0].elts if call.args and isinstance(call.args[0], ast.List) else []
    first = layers[0] if layers else None
    if not isinstance(first, ast.Call) or len(layers) < 2:  # noqa: PLR2004 - the input alone builds nothing
        return False
    name = program.keras_name(module.dotted(first.func) or "")
    shaped = {"input_shape", "input_dim"} & {word.arg for word in first.keywords}
    return bool(shaped) or (name is not None and name.name in _INPUTS)


def _written(step: Step) -> str:
    func = step.node.func if isinstance(step.node, ast.Call) else step.node
    return ast.unparse(func)[:60]


def _none(program: Program) -> Iterator[Hit]:
    """Every word that could hint at a strategy, or at another way of training together, takes the rule back."""
    others = {"horovod", "hvd", "estimator", "Estimator", "TPUStrategy", "DTensor", "dtensor", "multi_gpu_model"}
    if program.alone or program.words & others:
        return
    yield from _mirrored(program)
    reads = {"TF_CONFIG", "PHALANX_TASK", "RANK", "WORLD_SIZE"}
    if program.words & STRATEGY_WORDS or any(map(program.says, reads)) or not program.closed:
        return
    for module, call, _ in program.fits:
        if program.happens(call):
            yield Hit(module, call)
            return


def _mirrored(program: Program) -> Iterator[Hit]:
    """In a job of several tasks: a strategy whose replicas are all in one process, and no other."""
    named = [call for call in program.calls if call.name in ALONE]
    words = {word for call in named for word in call.name.split(".")}
    if program.roles is None or not named or program.words & (STRATEGY_WORDS - words - _OF_ANY):
        return
    if not program.closed or any(map(program.says, ("TF_CONFIG", "RANK", "WORLD_SIZE"))):
        return
    call = named[0]
    said = f"{call.name.rpartition('.')[2]} trains in one process, and the script builds no other strategy"
    yield Hit(call.module, call.node, said)


RULES = (
    Rule(
        id="context-before-strategy",
        severity=Severity.ERROR,
        message="A call that makes TensorFlow's context comes before MultiWorkerMirroredStrategy().",
        find=_early,
        consequence="RuntimeError: Collective ops must be configured at program startup.",
        fix="build the strategy before every operation, dataset, variable, model, optimizer and metric",
        source="R24; facts §1",
    ),
    Rule(
        id="no-strategy",
        severity=Severity.WARNING,
        message="The script trains, and builds no strategy of several processes.",
        find=_none,
        consequence="Each task trains its own model on all the data, and all of them succeed.",
        fix="strategy = tf.distribute.MultiWorkerMirroredStrategy() first, the model and compile() under "
        "strategy.scope(); or run it as one task; --strategy none says that it is meant",
        source="facts §9",
    ),
)

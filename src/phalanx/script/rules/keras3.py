"""Rules about what Keras 3 took away, and where it does not go with a strategy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.script.endings import Endings
from phalanx.script.module import Module, argument
from phalanx.script.program import Keras, Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.rules.scope import outside
from phalanx.script.rules.tensorflow1 import names, once
from phalanx.tfconfig.finding import Severity

_THREE = 3
#: Keras whose `fit` was seen to fail under MultiWorkerMirroredStrategy, first and last (facts §1; keras#20585, #20329).
_FIT_FAILS = ((3, 6), (3, 15))
_TWO_WAYS = "pip install tf_keras and TF_USE_LEGACY_KERAS=1 for every task (keras: legacy)"
_FAILS = "ValueError: Attempt to convert a value (PerReplica…) with an unsupported type, at the first step."
_BY_HAND = f"Started by hand: {_FAILS}"
_ELSE = f"elsewhere {_TWO_WAYS}, or a custom loop with strategy.run, in which Keras 3 layers and optimizers work"

#: Names that no Keras 3 has; asked where nobody can look into the installed package.
_GONE = [
    "callbacks.experimental",
    "layers.experimental",
    "mixed_precision.experimental",
    "utils.experimental",
    "experimental",
    "utils.multi_gpu_model",
    "utils.SidecarEvaluator",
    "backend.get_session",
    "backend.set_session",
    "estimator",
]
_METHODS_GONE = ("fit_generator", "evaluate_generator", "predict_generator", "predict_classes", "predict_proba")
_OPTIMIZERS = "optimizers."


def _applies(program: Program) -> bool:
    return program.keras is not None and program.keras >= (_THREE,)


def _name_gone(program: Program) -> Iterator[Hit]:
    if not _applies(program):
        return
    found: list[tuple[Module, ast.AST, str]] = []
    for module, node, dotted in names(program):
        keras = program.keras_name(dotted)
        if keras is None or keras.generation != _THREE or not keras.name:
            continue
        if program.installed is not None and program.installed.has("keras"):
            gone = program.installed.lacks(dotted)
        else:
            gone = next((dotted for name in _GONE if f"{keras.name}.".startswith(f"{name}.")), None)
        legacy = keras.name.startswith("optimizers.legacy.") and isinstance(module.parents.get(node), ast.Call)
        if gone is None and legacy:
            gone = dotted
        if gone is not None:
            found.append((module, node, gone.replace("tensorflow.", "tf.", 1)))
    yield from once(program, f"Keras {'.'.join(map(str, program.keras or ()))}", found)


def _methods(program: Program, *wanted: str) -> Iterator[tuple[Module, ast.Call, Keras]]:
    """Calls of a method of a Keras 3 model, metric or optimizer, with what made the thing it is called on."""
    for module, node, holder, _ in program.methods(*wanted):
        made = program.keras_name(program.maker(module, holder) or "")
        if made is not None and made.generation == _THREE:
            yield module, node, made


def _path(program: Program, module: Module, call: ast.Call) -> str | None:
    """The path a call is given, or its end: `…/model`; None where that is not read."""
    given = argument(call, 0, "filepath")
    end = Endings(program=program).of(module, given)
    return end if end is None or isinstance(program.value(module, given), str) else f"…/{end.rpartition('/')[2]}"


def _save_weights(program: Program) -> Iterator[Hit]:
    for module, call, made in _methods(program, "save_weights"):
        path = _path(program, module, call)
        if made.is_model and path is not None and not path.endswith(".weights.h5"):
            yield Hit(module, call, f'save_weights("{path}") does not end in .weights.h5')
    for module, call, save_weights_only in _checkpoints(program):
        path = _path(program, module, call)
        if save_weights_only is True and path is not None and not path.endswith(".weights.h5"):
            yield Hit(module, call, f'ModelCheckpoint("{path}", save_weights_only=True) does not end in .weights.h5')


def _checkpoints(program: Program) -> Iterator[tuple[Module, ast.Call, object]]:
    for call in program.calls:
        keras = program.keras_name(call.name)
        if keras is not None and keras == (_THREE, "callbacks.ModelCheckpoint"):
            word = next((it.value for it in call.node.keywords if it.arg == "save_weights_only"), None)
            yield call.module, call.node, False if word is None else program.value(call.module, word)


def _save_path(program: Program) -> Iterator[Hit]:
    for module, call, made in _methods(program, "save"):
        path = _path(program, module, call)
        if made.is_model and path is not None and not path.endswith((".keras", ".h5", ".hdf5")):
            yield Hit(module, call, f'save("{path}") says neither .keras nor .h5')
    for module, call, save_weights_only in _checkpoints(program):
        path = _path(program, module, call)
        if save_weights_only is False and path is not None and not path.endswith((".keras", ".h5")):
            yield Hit(module, call, f'ModelCheckpoint("{path}") does not end in .keras')


def _reset_states(program: Program) -> Iterator[Hit]:
    for module, call, made in _methods(program, "reset_states"):
        if made.name.startswith("metrics.") or made.is_model:
            what = "metric" if made.name.startswith("metrics.") else "model"
            yield Hit(module, call, f"a {what} of Keras 3 has no reset_states()")


def _method_gone(program: Program) -> Iterator[Hit]:
    for module, call, made in _methods(program, *_METHODS_GONE):
        if made.is_model:
            yield Hit(module, call, f"a model of Keras 3 has no {ast.unparse(call.func).rpartition('.')[2]}()")


def _learning_rate(program: Program) -> Iterator[Hit]:
    for module in program.modules:
        for node in module.nodes:
            if not (isinstance(node, ast.Attribute) and node.attr == "lr"):
                continue
            holder = node.value
            if isinstance(holder, ast.Attribute) and holder.attr == "optimizer":
                made = program.keras_name(program.maker(module, holder.value) or "")
                fits = made is not None and made.generation == _THREE and made.is_model
            else:
                made = program.keras_name(program.maker(module, holder) or "")
                fits = made is not None and made.generation == _THREE and made.name.startswith(_OPTIMIZERS)
            if fits and not isinstance(node.ctx, ast.Load):
                yield Hit(
                    module,
                    node,
                    "setting `lr` changes nothing: Keras 3 reads `learning_rate`",
                    consequence="The learning rate stays what it was, and nothing says so.",
                )
            elif fits:
                yield Hit(module, node)


def _optimizer_words(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        keras = program.keras_name(call.name)
        if keras is None or keras.generation != _THREE or not keras.name.startswith(_OPTIMIZERS):
            continue
        if any(word.arg == "lr" for word in call.node.keywords) and "schedules" not in keras.name:
            last = keras.name.rpartition(".")[2]
            yield Hit(
                call.module,
                call.node,
                f"{last}(lr=…) is refused by Keras 3",
            )


def _fit_words(program: Program) -> Iterator[Hit]:
    for module, call, generation in program.fits:
        gone = {"workers", "use_multiprocessing", "max_queue_size"} & {word.arg for word in call.keywords}
        if generation == _THREE and gone:
            yield Hit(module, call, f"fit({min(gone)}=…) is refused by Keras 3")


def _ps_fit(program: Program) -> Iterator[Hit]:
    if program.strategy != "ps":
        return
    for module, call, generation in program.fits:
        if generation == _THREE and program.happens(call):
            yield Hit(module, call, severity=program.unless_sure("ps"))


def _mwms_fit(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.keras is None or program.alone or not program.strategies:
        return
    if program.mends:
        return
    if not _FIT_FAILS[0] <= program.keras[:2] <= _FIT_FAILS[1] or program.words & {"_maybe_symbolic_build"}:
        return
    apart = {it.fit for it in outside(program)}
    for module, call, generation in program.fits:
        if generation != _THREE or not program.happens(call) or call in apart:
            continue
        if program.mends is None:
            yield Hit(module, call, severity=Severity.INFO, consequence=_BY_HAND, fix=f"phalanx run mends it; {_ELSE}")
        else:
            yield Hit(module, call, severity=program.unless_sure("mwms"))
        return


def _mwms_compile(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.alone or not program.strategies:
        return
    if not any(generation == _THREE and program.happens(call) for _, call, generation in program.fits):
        return
    for module, node, _, _ in program.methods("compile"):
        for word in node.keywords:
            match word:
                case ast.keyword(arg="jit_compile", value=ast.Constant(value=True)):
                    yield Hit(module, node, "compile(jit_compile=True) before a fit of several workers.")
                case ast.keyword(arg="steps_per_execution", value=ast.Constant(value=int(many))) if many > 1:
                    yield Hit(module, node, f"compile(steps_per_execution={many}) before a fit of several workers.")


RULES = (
    Rule(
        id="keras3-mwms-compile",
        severity=Severity.ERROR,
        message="jit_compile or steps_per_execution of Keras 3 under MultiWorkerMirroredStrategy.",
        find=_mwms_compile,
        consequence="The first step fails: UnimplementedError where XLA compiles it, InvalidArgumentError where "
        "several steps are one.",
        fix="leave it out of compile()",
        source="measured on TensorFlow 2.21, Keras 3.15, 2 workers",
    ),
    Rule(
        id="keras3-ps-fit",
        severity=Severity.ERROR,
        message="model.fit of Keras 3 under ParameterServerStrategy.",
        find=_ps_fit,
        consequence="ValueError: To use this dataset, you need to pass this dataset to "
        "ClusterCoordinator.create_per_worker_dataset. No patch is known.",
        fix=f"{_TWO_WAYS}; or a custom loop with tf.distribute.coordinator.ClusterCoordinator",
        source="R89; facts §2",
    ),
    Rule(
        id="keras3-mwms-fit",
        severity=Severity.ERROR,
        message="model.fit of Keras 3 under MultiWorkerMirroredStrategy with more than one worker.",
        find=_mwms_fit,
        consequence=_FAILS,
        fix=f"keras: auto with the runtime on mends it from inside; {_ELSE}",
        source="R89; facts §1",
    ),
    Rule(
        id="keras3-name-gone",
        severity=Severity.ERROR,
        message="A name that the installed Keras 3 does not have.",
        find=_name_gone,
        consequence="AttributeError or ImportError when the line is reached.",
        fix="use the name that Keras 3 has, or tf_keras with TF_USE_LEGACY_KERAS=1",
        source="the installed Keras's own list of names",
    ),
    Rule(
        id="keras3-method-gone",
        severity=Severity.ERROR,
        message="A method of models that Keras 3 does not have.",
        find=_method_gone,
        consequence="AttributeError when the line is reached.",
        fix="fit, evaluate and predict take generators too",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-weights-path",
        severity=Severity.ERROR,
        message="Weights are saved under a name that does not end in .weights.h5.",
        find=_save_weights,
        consequence="ValueError: The filename must end in `.weights.h5`.",
        fix="end the name in .weights.h5, or use tf.train.Checkpoint",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-model-path",
        severity=Severity.ERROR,
        message="A model is saved under a name without .keras or .h5.",
        find=_save_path,
        consequence="ValueError: Invalid filepath extension for saving.",
        fix="end the name in .keras; model.export(folder) writes a SavedModel",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-reset-states",
        severity=Severity.ERROR,
        message="reset_states() of a metric or model.",
        find=_reset_states,
        consequence="AttributeError: 'Mean' object has no attribute 'reset_states'.",
        fix="metrics have reset_state()",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-lr",
        severity=Severity.ERROR,
        message="`lr` of an optimizer.",
        find=_learning_rate,
        consequence="AttributeError: 'Adam' object has no attribute 'lr'.",
        fix="write learning_rate",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-optimizer-lr",
        severity=Severity.ERROR,
        message="An optimizer is given `lr`.",
        find=_optimizer_words,
        consequence="ValueError: Argument(s) not recognized: {'lr': …}.",
        fix="write learning_rate=…",
        source="measured on Keras 3.15",
    ),
    Rule(
        id="keras3-fit-argument",
        severity=Severity.ERROR,
        message="fit is given workers, use_multiprocessing or max_queue_size.",
        find=_fit_words,
        consequence="TypeError: fit() got an unexpected keyword argument.",
        fix="give them to the PyDataset itself, or leave them out",
        source="measured on Keras 3.15",
    ),
)

"""Rules about what the interpreter has: callbacks of packages that are not installed."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity

#: Callbacks and the package that each wants when it is used.
_OF_KERAS = {"callbacks.TensorBoard": "tensorboard"}
_OTHERS = {
    "wandb.": "wandb",
    "mlflow.": "mlflow",
    "tqdm.keras.": "tqdm",
    "livelossplot.": "livelossplot",
    "neptune.": "neptune",
    "comet_ml.": "comet_ml",
    "tensorflow_addons.callbacks.": "tensorflow_addons",
}


def _missing(program: Program) -> Iterator[Hit]:
    if program.installed is None or not program.installed.has("tensorflow"):
        return
    for call in program.calls:
        keras = program.keras_name(call.name)
        package = _OF_KERAS.get(keras.name) if keras is not None else None
        if package is None and "allback" in call.name:
            package = next((it for prefix, it in _OTHERS.items() if call.name.startswith(prefix)), None)
        if package is not None and program.installed.has(package) is False:
            last = call.name.rpartition(".")[2]
            yield Hit(
                call.module,
                call.node,
                f"{last} needs the package {package}, which is not installed",
                fix=f"pip install {package}, or leave the callback out",
            )


RULES = (
    Rule(
        id="callback-package",
        severity=Severity.WARNING,
        message="A callback's package is not installed.",
        find=_missing,
        consequence="ModuleNotFoundError, or TBNotInstalledError in the first epoch.",
        fix="install the package, or leave the callback out",
        source="facts: TensorFlow 2.21 no longer brings tensorboard",
    ),
)

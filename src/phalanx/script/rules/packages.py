"""Rules about what the interpreter has: modules that are not installed, and callbacks that want another package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from phalanx.script.module import roots
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


#: What lets an import mean anything.
_MOVES = ("sys.path", "sys.meta_path", "sys.path_hooks", "site.addsitedir")


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


def _no_module(program: Program) -> Iterator[Hit]:
    """Not where the search path is changed, or the import is tried or hangs on a condition."""
    if program.installed is None or not program.installed.has("tensorflow"):
        return
    own = {(module.name or module.package).partition(".")[0] for module in program.modules}
    told: set[str] = set()
    for module in program.modules:
        if any(isinstance(it, ast.Attribute) and module.dotted(it) in _MOVES for it in module.nodes):
            continue
        for node in module.nodes:
            for name in roots(node):
                known = name in own or name in sys.stdlib_module_names or name in told
                if known or not program.reached(module, node) or program.installed.has(name) is not False:
                    continue
                told.add(name)
                if name == Path(module.path).absolute().parent.name:
                    at = f"{name}.{Path(module.path).stem}"
                    said = f"{name} is the folder of the script, and no module where it is started by its path"
                    fix = f"from the folder above: python -m {at}"
                    yield Hit(module, node, said, fix=fix, severity=Severity.WARNING)
                else:
                    yield Hit(module, node, f"the module {name} is not installed")


RULES = (
    Rule(
        id="module-missing",
        severity=Severity.ERROR,
        message="The script imports a module that is not installed.",
        find=_no_module,
        consequence="ModuleNotFoundError at the start of every task.",
        fix="install it into the interpreter that runs the script, or name another: --python PATH",
        source="R52",
    ),
    Rule(
        id="callback-package",
        severity=Severity.ERROR,
        message="A callback's package is not installed.",
        find=_missing,
        consequence="ModuleNotFoundError, or TBNotInstalledError in the first epoch.",
        fix="install the package, or leave the callback out",
        source="facts: TensorFlow 2.21 no longer brings tensorboard",
    ),
)

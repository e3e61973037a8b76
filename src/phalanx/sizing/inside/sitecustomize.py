"""Runs before the user's program where `phalanx advise` has put this folder on PYTHONPATH, and hands on as site would.

The program runs until it would train: its first training function is traced and never executed, what the trace holds
is written down, and the process ends there. Until then nothing is saved: checkpoints and callbacks are left out.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The variable that names the file for what was found.
ANSWER = "PHALANX_ADVISE"


def _hooks(answer: str) -> "dict[str, Callable[[Any], None]]":
    import phalanx_look  # type: ignore[import-not-found]  # it lies beside this file, whose folder is on the path

    for name in ("phalanx_look", "phalanx_cost", "phalanx_core"):
        del sys.modules[name]
    hooks: "dict[str, Callable[[Any], None]]" = phalanx_look.Look(answer).hooks()
    return hooks


def _watch_imports(hooks: "dict[str, Callable[[Any], None]]") -> None:
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    usual = finder.__dict__["find_spec"].__func__

    def find_spec(cls: "Any", fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
        spec = usual(cls, fullname, path, target)
        if fullname in hooks and spec is not None and spec.loader is not None:
            _once_loaded(spec.loader, hooks.pop(fullname))
        return spec

    finder.find_spec = classmethod(find_spec)


def _once_loaded(loader: "Any", then: "Callable[[Any], None]") -> None:
    def exec_module(module: "Any") -> None:
        del loader.exec_module
        loader.exec_module(module)
        then(module)

    loader.exec_module = exec_module


def _boot(here: str) -> None:
    import site

    if ANSWER in os.environ:
        _watch_imports(_hooks(os.environ.pop(ANSWER)))
    if here in sys.path:
        sys.path.remove(here)
        sys.path_importer_cache.pop(here, None)
    del sys.modules["sitecustomize"]
    site.execsitecustomize()
    if "sitecustomize" not in sys.modules:
        # What site hears where there is no such module, and passes over.
        raise ImportError("the user has none", name="sitecustomize")


if __name__ == "sitecustomize":  # as PYTHONPATH finds it, and not when it is imported as a part of phalanx
    _boot(os.path.dirname(__file__))

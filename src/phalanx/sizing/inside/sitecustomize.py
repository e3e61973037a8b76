"""Runs before the user's program where `phalanx advise` has put this folder on PYTHONPATH, and hands on as site would.

The program runs until it would train: its first training function is traced and never executed, what the trace holds
is written down, and the process ends there. Until then nothing is saved: checkpoints and callbacks are left out.
"""

import os
import sys

#: The variable that names the file for what was found.
ANSWER = "PHALANX_ADVISE"


def _hooks(answer: str) -> "dict[str, object]":
    import phalanx_look  # type: ignore[import-not-found]  # it lies beside this file, whose folder is on the path

    for name in ("phalanx_look", "phalanx_cost", "phalanx_core"):
        del sys.modules[name]
    return phalanx_look.Look(answer).hooks()  # type: ignore[no-any-return]


def _watch_imports(hooks: "dict[str, object]") -> None:
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    usual = finder.__dict__["find_spec"].__func__

    def find_spec(cls: object, fullname: str, path: object = None, target: object = None) -> object:
        spec = usual(cls, fullname, path, target)
        if fullname in hooks and spec is not None and spec.loader is not None:
            _once_loaded(spec.loader, hooks.pop(fullname))
        return spec

    finder.find_spec = classmethod(find_spec)


def _once_loaded(loader: "object", then: "object") -> None:
    def exec_module(module: "object") -> None:
        del loader.exec_module  # type: ignore[attr-defined]  # ours, on this one loader
        loader.exec_module(module)  # type: ignore[attr-defined]  # its own
        then(module)  # type: ignore[operator]  # a hook

    loader.exec_module = exec_module  # type: ignore[attr-defined]  # as above


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

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


def _listen(answer: str) -> None:
    import phalanx_hooks  # type: ignore[import-not-found]  # it lies beside this file, whose folder is on the path
    import phalanx_look  # type: ignore[import-not-found]  # as above

    for name in ("phalanx_hooks", "phalanx_look", "phalanx_cost", "phalanx_core", "phalanx_ring"):
        del sys.modules[name]
    hooks: "dict[str, Callable[[Any], None]]" = phalanx_look.Look(answer).hooks()

    def take(name: str, module: "Any") -> None:
        hook = hooks.pop(name, None)
        if hook is not None:
            hook(module)  # what goes wrong in it is the program's trouble: it may not train unseen

    phalanx_hooks.watch_imports(hooks, take)


def _boot(here: str) -> None:
    import site

    if ANSWER in os.environ:
        _listen(os.environ.pop(ANSWER))
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

"""A task that lives and does nothing: a signal makes its main thread sleep in Python, its other threads go on.

The signal is answered by what `prepared` put into the task's interpreter. Nothing is traced and no thread is frozen,
so heartbeats of TensorFlow's own threads go on, which is what nobody but a hang detector notices (facts §3).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from phalanx.chaos.fault import Fault
from phalanx.chaos.inside.sitecustomize import FOLDER, STALL
from phalanx.chaos.whereabouts import CannotError, Whereabouts

#: What a command must be.
WANTED = "its command must be `python …` without -E, -I or -S; stop:… needs nothing of it"

#: Python's flags before its program; -W and -X may have their value in the word after.
_FLAG = re.compile(r"-[a-zA-Z]+")


def deaf(command: Sequence[str]) -> bool:
    """Whether this is a Python whose own flags keep PYTHONPATH from it; of other programs nobody can tell."""
    if not Path(command[0]).name.startswith("python"):
        return False
    for word, before in zip(command[1:], command, strict=False):
        if before in ("-W", "-X"):
            continue
        if not _FLAG.match(word) or word[1] in "cm":
            return False
        if word[1] not in "WX" and set(word) & set("EIS"):
            return True
    return False


def stall(fault: Fault, where: Whereabouts) -> Callable[[], None]:
    """It sleeps for as long as a file of its name is there; the lift takes the file away."""
    task = fault.tasks[0]
    folder = where.shared("stall")
    target = where.task(task)
    if target.variable(FOLDER) != str(folder) or not target.catches(STALL):
        raise CannotError(
            f"{task} cannot be made to stall: its process is no Python that reads PYTHONPATH",
            hint=WANTED,
        )
    flag = folder / f"stall-{target.pid}"
    flag.touch()
    if not target.signal(STALL):
        raise CannotError(f"{task} has ended in this moment")
    return lambda: _unlink(flag)


def _unlink(flag: Path) -> None:
    with contextlib.suppress(OSError):  # the folder goes with the run
        flag.unlink()

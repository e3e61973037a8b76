"""The different programs among a host's tasks: tasks that run the same are looked at once."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from phalanx.agent.preflight.start import Start, start_of_module
from phalanx.agent.standby import InterpreterLine, interpreter_line
from phalanx.names import TRAINING_TYPES
from phalanx.protocol.messages import StartTask

#: Variables that differ from task to task and change nothing that is looked at.
_OWN = ("TF_CONFIG", "PHALANX_TASK", "PHALANX_TASK_DIR", "CUDA_VISIBLE_DEVICES")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What some tasks of one host run."""

    argv: tuple[str, ...]
    #: None where it is no Python, or Python in a mode of its own.
    line: InterpreterLine | None
    environ: Mapping[str, str]
    cwd: str
    #: How many of its tasks listen at an address of the cluster.
    serving: int
    #: CUDA_VISIBLE_DEVICES of its training tasks; None: not set.
    visible: tuple[str | None, ...]

    @property
    def module(self) -> Start | None:
        """What `-m` names, where that is the user's own."""
        if self.line is None or self.line.kind != "module":
            return None
        return start_of_module(self.line.target, cwd=Path(self.cwd), environ=self.environ)

    @property
    def script(self) -> Path | None:
        """The script, where it is one."""
        if self.line is None or self.line.kind != "script":
            return None
        path = Path(self.cwd, self.line.target)
        return path / "__main__.py" if path.is_dir() else path


def programs_of(tasks: Sequence[StartTask], environ: Mapping[str, str], cwd: str) -> tuple[Program, ...]:
    """Each program once, in the order of the tasks; what follows the script is its own affair."""
    found: dict[tuple[object, ...], list[StartTask]] = {}
    for task in tasks:
        line = interpreter_line(task.argv)
        run = (task.argv[0], line.kind, line.target) if line else (task.argv[0],)
        shared = tuple(sorted((name, value) for name, value in task.env.items() if name not in _OWN))
        found.setdefault((*run, shared), []).append(task)
    return tuple(
        Program(
            argv=same[0].argv,
            line=interpreter_line(same[0].argv),
            environ={**environ, **same[0].env},
            cwd=cwd,
            serving=sum(task.port is not None and not task.lent for task in same),
            visible=tuple(
                task.env.get("CUDA_VISIBLE_DEVICES", environ.get("CUDA_VISIBLE_DEVICES"))
                for task in same
                if task.id.type in TRAINING_TYPES
            ),
        )
        for same in found.values()
    )


def executable(program: Program) -> str | None:
    """The file that `argv[0]` means, as exec would find it; None where there is none."""
    name = program.argv[0]
    if "/" in name:
        paths = [os.path.join(program.cwd, name)]  # noqa: PTH118 - text for exec
    else:
        paths = [os.path.join(folder, name) for folder in os.get_exec_path(dict(program.environ))]  # noqa: PTH118 - as above
    return next((path for path in paths if os.access(path, os.X_OK) and not os.path.isdir(path)), None)  # noqa: PTH112 - as above

"""Rules about where a program saves: one path for all, and folders that a restart does not find again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from phalanx.script.module import Module, argument
from phalanx.script.program import MODELS, Program
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity

_THREE = 3
_WRITERS = ("callbacks.ModelCheckpoint", "callbacks.BackupAndRestore")
_MANAGER = "tensorflow.train.CheckpointManager"

#: New at each start.
_NEW = (
    "time.time", "time.strftime", "time.ctime", "time.time_ns", "datetime.datetime.now", "datetime.datetime.utcnow",
    "datetime.datetime.today", "datetime.date.today", "tempfile.mkdtemp", "uuid.uuid4", "uuid.uuid1",
    "tensorflow.timestamp",
)  # fmt: skip
#: Another in each process, and in each of its starts.
_OWN = ("os.getpid", "socket.gethostname", "platform.node", "os.uname")


def _shared(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.alone:
        return
    if not any(not step.guards for step in program.strategies):
        return
    for module, call, given, what in _writes(program):
        path = program.value(module, given)
        if isinstance(path, str) and path and program.reached(module, call, everywhere=True):
            yield Hit(module, call, f'every task writes {what} to "{path}"')


def _writes(program: Program) -> Iterator[tuple[Module, ast.Call, ast.expr | None, str]]:
    """What is written by every task: of tf_keras's callbacks only the chief's files are real.

    Where Keras 3 is mended, what it saves is whole or has a path of its own.
    """
    for call in program.calls:
        keras = program.keras_name(call.name)
        if call.name == _MANAGER:
            yield call.module, call.node, argument(call.node, 1, "directory"), "checkpoints"
        elif keras is not None and keras.generation >= _THREE and keras.name in _WRITERS and not program.mends:
            yield call.module, call.node, _first(call.node), "checkpoints"
    for module in program.modules:
        for node in module.nodes:
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("save", "export")
            ):
                made = program.keras_name(program.maker(module, node.func.value) or "")
                mended = program.mends and made is not None and made.generation >= _THREE and node.func.attr == "save"
                if made is not None and made.name in MODELS and not mended:
                    yield module, node, _first(node), "its model"


def _first(call: ast.Call) -> ast.expr | None:
    return argument(call, 0, "filepath", "backup_dir", "directory")


def _lost(program: Program) -> Iterator[Hit]:
    for call in program.calls:
        keras = program.keras_name(call.name)
        if call.name == _MANAGER:
            given = argument(call.node, 1, "directory")
        elif keras is not None and keras.name == "callbacks.BackupAndRestore":
            given = argument(call.node, 0, "backup_dir")
        else:
            continue
        name = _made_of(program, call.module, given)
        if name is None:
            continue
        why = "in each process" if name in _OWN else "at each start"
        yield Hit(call.module, call.node, f"the folder of the checkpoints is another {why}: it is made of {name}()")


def _made_of(program: Program, module: Module, node: ast.expr | None) -> str | None:
    """The call that makes it another each time, if there is one in it."""
    calls = (it for it in program.values(module).parts(node) if isinstance(it, ast.Call))
    return next((name for it in calls if (name := module.dotted(it.func)) in (*_NEW, *_OWN)), None)


RULES = (
    Rule(
        id="shared-save-path",
        severity=Severity.WARNING,
        message="Every task writes to the same path.",
        find=_shared,
        consequence="Files overwrite each other: missing temporary files, BlockingIOError, or half a checkpoint.",
        fix="all save (it is a collective), each to its own folder ($PHALANX_TASK_DIR is one), and the chief's is kept",
        source="R87; facts §1",
    ),
    Rule(
        id="checkpoint-folder-changes",
        severity=Severity.WARNING,
        message="The folder of the checkpoints is another at each start or in each process.",
        find=_lost,
        consequence="After a restart the tasks find no checkpoint and begin anew.",
        fix="name one folder: --checkpoint DIR, and {checkpoint} in the command",
        source="R88; facts §3",
    ),
)

"""Rules about where a program saves: one path for all, and folders that a restart does not find again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from phalanx.script.module import Module, argument
from phalanx.script.program import MODELS, Program
from phalanx.script.rule import Hit, Rule
from phalanx.tfconfig.finding import Severity

_THREE = 3
_WRITERS = ("callbacks.ModelCheckpoint", "callbacks.BackupAndRestore")
_MANAGER = "tensorflow.train.CheckpointManager"
_CHECKPOINT = "tensorflow.train.Checkpoint"
#: Functions that save their first argument to their second.
_SAVERS = ("models.save_model", "saving.save_model")

#: Those that a mended Keras 3 has put in place at once.
_WHOLE = ("save", "save_weights")
_METHODS = ("save", "export", "save_weights", "write")

_OVERWRITE = "files overwrite each other: missing temporary files, BlockingIOError, or half a checkpoint."
_BY_HAND = f"Started by hand, {_OVERWRITE}"
_EACH = "all save (it is a collective), each to its own folder ($PHALANX_TASK_DIR is one), and the chief's is kept"
_RUN_MENDS = f"phalanx run mends it; elsewhere {_EACH}"

#: New at each start.
_NEW = (
    "time.time", "time.strftime", "time.ctime", "time.time_ns", "time.localtime", "time.gmtime",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
    "tempfile.mkdtemp", "tempfile.mktemp", "tempfile.mkstemp", "tempfile.TemporaryDirectory",
    "tempfile.NamedTemporaryFile", "uuid.uuid4", "uuid.uuid1", "secrets.token_hex", "secrets.token_urlsafe",
    "tensorflow.timestamp",
)  # fmt: skip
#: Another in each process, and in each of its starts.
_OWN = ("os.getpid", "socket.gethostname", "platform.node", "os.uname")
#: Functions within functions that are followed.
_DEEP = 8


class _Write(NamedTuple):
    """A call that writes: what, and to which path. `mended`: by the runtime, unless that or its mending is off."""

    module: Module
    call: ast.Call
    given: ast.expr | None
    what: str
    mended: bool = False


def _shared(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms" or program.alone:
        return
    if not any(not step.guards for step in program.strategies):
        return
    for module, call, given, what, mended in _writes(program):
        path = program.value(module, given)
        if (mended and program.mends) or not (isinstance(path, str) and path and _everywhere(program, call)):
            continue
        said = f'every task writes {what} to "{path}"'
        if mended and program.mends is None:
            yield Hit(
                module,
                call,
                said,
                severity=Severity.INFO,
                consequence=_BY_HAND,
                fix=f"phalanx run mends it; elsewhere {_EACH}",
            )
        else:
            yield Hit(module, call, said, severity=Severity.WARNING)


def _everywhere(program: Program, call: ast.Call) -> bool:
    """Whether every task does it; once an epoch, it may be."""
    return any(step.node is call and all(guard.arm == "loop" for guard in step.guards) for step in program.steps)


def _writes(program: Program) -> Iterator[_Write]:
    """What is written by every task: of tf_keras's callbacks only the chief's files are real.

    What Keras 3 saves is mended (runtime/boot/phalanx_files): whole, or under a path of its own.
    """
    for module, call, name in program.calls:
        keras = program.keras_name(name)
        three = keras is not None and keras.generation >= _THREE
        if name == _MANAGER:
            yield _Write(module, call, argument(call, 1, "directory"), "checkpoints")
        elif name == "tensorflow.saved_model.save":
            yield _Write(module, call, argument(call, 1, "export_dir"), "its model")
        elif keras is not None and keras.name in _SAVERS:
            yield _Write(module, call, argument(call, 1, "filepath"), "its model", three)
        elif keras is not None and three and keras.name in _WRITERS:
            yield _Write(module, call, _first(call), "checkpoints", three)
    yield from _saved(program)


def _saved(program: Program) -> Iterator[_Write]:
    """By a method of the model or of tf.train.Checkpoint."""
    for module, node, holder, attr in program.methods(*_METHODS):
        made = program.maker(module, holder) or ""
        if made == _CHECKPOINT and attr in ("save", "write"):
            yield _Write(module, node, argument(node, 0, "file_prefix"), "checkpoints")
        keras = program.keras_name(made)
        if keras is not None and keras.name in MODELS:
            mended = attr in _WHOLE and keras.generation >= _THREE
            yield _Write(module, node, _first(node), "its model", mended)


def _first(call: ast.Call) -> ast.expr | None:
    return argument(call, 0, "filepath", "backup_dir", "directory")


def _lost(program: Program) -> Iterator[Hit]:
    for module, call, given in _looked_for(program):
        name = _made_of(program, module, given)
        if name is not None:
            why = "in each process" if name in _OWN else "at each start"
            yield Hit(module, call, f"the folder of the checkpoints is another {why}: it is made of {name}()")


def _looked_for(program: Program) -> Iterator[tuple[Module, ast.Call, ast.expr | None]]:
    """Where a program goes on from what an earlier start has written."""
    restores = {"load_weights", "load_model", "latest_checkpoint", "restore"} & program.words
    for call in program.calls:
        keras = program.keras_name(call.name)
        if call.name == _MANAGER:
            yield call.module, call.node, argument(call.node, 1, "directory")
        elif call.name == "tensorflow.train.latest_checkpoint":
            yield call.module, call.node, argument(call.node, 0, "checkpoint_dir")
        elif keras is not None and keras.name == "callbacks.BackupAndRestore":
            yield call.module, call.node, argument(call.node, 0, "backup_dir")
        elif keras is not None and keras.name == "callbacks.ModelCheckpoint" and restores:
            yield call.module, call.node, argument(call.node, 0, "filepath")


def _made_of(program: Program, module: Module, node: ast.expr | None, depth: int = 0) -> str | None:
    """The call that makes it another each time, if there is one in it."""
    for it in program.values(module).parts(node):
        if not isinstance(it, ast.Call):
            continue
        if (name := module.dotted(it.func)) in (*_NEW, *_OWN):
            return name
        returned = program.returned(module, it.func) if depth < _DEEP else None
        found = _made_of(program, *returned, depth + 1) if returned is not None else None
        if found is not None:
            return found
    return None


RULES = (
    Rule(
        id="shared-save-path",
        severity=Severity.WARNING,
        message="Every task writes to the same path.",
        find=_shared,
        consequence=f"{_OVERWRITE[0].upper()}{_OVERWRITE[1:]}",
        fix=_EACH,
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

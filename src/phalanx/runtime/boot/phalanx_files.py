"""Files that every worker of a Keras 3 `fit` writes under one path: whole ones, and a path of its own where one breaks.

tf_keras lets only the chief write where the user said. Keras 3 has every worker open the same file (facts §1, R87:
HDF5 refuses the second with BlockingIOError), and remove the same folder of backups at the end.

* A model or weights are written in a hidden folder beside their place and renamed. All workers hold equal values, so
  whoever comes last changes nothing; nobody reads half a file, and a kill in the midst of saving leaves the one before,
  and the folder, which the task's next save there removes. What has several names (hard links) is written over.
* The backups of BackupAndRestore and the lines of CSVLogger: who leads (the chief, else worker 0) keeps the user's path
  and tells it; another worker whose path is the same one writes into its task's folder. All restore what the leader
  restores, so that a kill between two saves leaves nobody an epoch ahead.
"""

import os
import sys

TYPE_CHECKING = False  # as in phalanx_standby
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ENDS = (".weights.h5", ".keras", ".h5", ".hdf5")
#: What hidden folders begin with, how much of the run's name they bear, and seconds after which another run's is left.
_HIDDEN, _RUN, _OLD = ".phalanx-", 100, 86_400.0

_BACKUP, _LINES = "BackupAndRestore", "CSVLogger"

#: Where a backup keeps its parts: the attributes of the callback that hold paths below its folder.
_PARTS = ("_weights_path", "_training_metadata_path", "_prev_weights_path", "_prev_training_metadata_path")


class ApartError(RuntimeError):
    """The first worker goes on from a backup that this one cannot see: they would train two models."""


class Files:
    """What one process does about them, in each `fit` of several workers."""

    def __init__(self, notes: "Any", keras3: "Any", disguise: "Callable[[Any, Any], None]") -> None:
        """`notes` and the module `keras3`: of phalanx_keras3; `disguise`: as there."""
        self._notes, self._keras3, self._disguise = notes, keras3, disguise
        #: How many fits of several workers have begun: the same number means the same fit everywhere.
        self._fits = 0
        #: A callback's id → itself, and the path the user gave it.
        self._given: "dict[int, tuple[Any, str]]" = {}
        #: The hidden folders that are being saved into, and the folders that were looked through for old ones.
        self._busy: "set[str]" = set()
        self._swept: "set[str]" = set()

    # Whole files ---------------------------------------------------------------------------------------------------

    def saving(self, module: "Any") -> None:
        """Keras's `saving_api`, which all ways to save a model or its weights lead through."""
        for name in ("save_model", "save_weights"):
            self._whole(module, name)

    def _whole(self, module: "Any", name: str) -> None:
        original, files = getattr(module, name), self

        def save(model: "Any", filepath: "Any", overwrite: bool = True, *args: "Any", **kwargs: "Any") -> "Any":  # noqa: FBT001, FBT002 - as Keras's
            place = files._place(model, filepath, overwrite, args, kwargs)
            if place is None:
                return original(model, filepath, overwrite, *args, **kwargs)
            path, beside = place
            try:
                result = original(model, beside, overwrite, *args, **kwargs)
                _put(beside, path)
            finally:
                files._busy.discard(os.path.dirname(beside))
                _remove(os.path.dirname(beside))
            return result

        self._disguise(save, original)
        setattr(module, name, save)

    def _place(
        self,
        model: "Any",
        filepath: "Any",
        overwrite: bool,  # noqa: FBT001 - as Keras's
        args: "tuple[Any, ...]",
        kwargs: "dict[str, Any]",
    ) -> "tuple[str, str] | None":
        """The file meant, and the one to write first; None where it is not ours to do."""
        try:
            path = os.path.realpath(os.fspath(filepath))
            end = next((end for end in _ENDS if path.endswith(end)), None)
            parts = args or kwargs.get("max_shard_size") is not None or kwargs.get("zipped") is False
            if "://" in os.fspath(filepath) or end is None or parts:
                return None
            folder = os.path.dirname(path)
            there = os.path.lexists(path)
            if there and not (overwrite and os.path.isfile(path) and os.access(path, os.W_OK)):
                return None
            if not self._keras3.concerns(getattr(model, "_distribute_strategy", None)):
                return None
            return path, os.path.join(self._beside(folder), f"whole{end}")
        except Exception:  # noqa: BLE001 - as Keras would, and never the program's trouble
            return None

    def _beside(self, folder: str) -> str:
        """A new hidden folder in it, which no pattern for models finds. What a kill has left of this task goes."""
        task = os.environ.get("PHALANX_TASK", "").replace(":", "_")
        mine = f"{_HIDDEN}{os.environ.get('PHALANX_RUN', '')[-_RUN:]}.{task}."
        if folder not in self._swept:
            self._swept.add(folder)
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                old = name.startswith(_HIDDEN) and name.split(".")[-2] == task and _age(path) > _OLD
                if path not in self._busy and (name.startswith(mine) or old):
                    _remove(path)
        number = 0
        while True:
            beside = os.path.join(folder, f"{mine}{number}")
            try:
                os.mkdir(beside)
            except FileExistsError:  # of another thread
                number += 1
                continue
            self._busy.add(beside)
            return beside

    # A path of its own ---------------------------------------------------------------------------------------------

    def callbacks(self, module: "Any") -> None:
        """Keras's `callback_list`: what happens around the beginning of a fit."""
        original, files = module.CallbackList.on_train_begin, self

        def on_train_begin(self: "Any", logs: "Any" = None) -> "Any":
            try:
                moved = files._share(self)
            except ApartError:
                raise
            except Exception:  # noqa: BLE001 - another version: left alone, and never the program's trouble
                moved = []
            result = original(self, logs)
            for callback, folder in moved:
                _move(callback, folder)
            return result

        self._disguise(on_train_begin, original)
        module.CallbackList.on_train_begin = on_train_begin

    def _share(self, callbacks: "Any") -> "list[tuple[Any, str]]":
        """Before the callbacks begin. The backups that are to be moved once they have restored, with their folders.

        Raises ApartError where this worker cannot go on from what the leader goes on from.
        """
        strategy = getattr(getattr(callbacks, "model", None), "_distribute_strategy", None)
        if not self._keras3.concerns(strategy):
            return []
        self._fits += 1
        mine = [(kind, one) for one in getattr(callbacks, "callbacks", ()) for kind in _ATTRIBUTE if _is(one, kind)]
        for kind, one in mine:
            self._as_given(kind, one)
        said = self._agree(strategy, mine)
        if self._keras3.leads(strategy) or not mine or not said:
            return []
        moved = []
        for number, (kind, one) in enumerate(mine):
            path = _path(kind, one)
            if path not in said or not os.environ.get("PHALANX_TASK_DIR"):
                continue
            self._given[id(one)] = (one, getattr(one, _ATTRIBUTE[kind]))
            own = os.path.join(os.environ["PHALANX_TASK_DIR"], "keras", f"{number}-{os.path.basename(path)}")
            if kind == _BACKUP:
                _restore_as(one, said[path], own)
                moved.append((one, own))
            else:
                os.makedirs(os.path.dirname(own), exist_ok=True)
                one.filename = own
        return moved

    def _as_given(self, kind: str, one: "Any") -> None:
        """A callback that serves a second fit has the user's path again."""
        _, path = self._given.pop(id(one), (None, None))
        if path is not None and kind == _BACKUP:
            _move(one, path)
        elif path is not None:
            one.filename = path

    def _agree(self, strategy: "Any", mine: "list[tuple[str, Any]]") -> "dict[str, str]":
        """Path → what a backup there holds, as the leader sees it. All come here, since a fit is everybody's."""
        import json  # Keras has loaded it

        context, key = sys.modules["tensorflow.python.eager.context"].context(), f"phalanx/files/{self._fits}"
        try:
            if not self._keras3.leads(strategy):
                return dict(json.loads(context.get_config_key_value(key)))
            said = {_path(kind, one): _held(one) if kind == _BACKUP else "" for kind, one in mine}
            context.set_config_key_value(key, json.dumps(said))
        except Exception:  # noqa: BLE001 - nobody is left to agree with: TensorFlow says so itself
            return {}
        if said:
            first = os.environ.get("PHALANX_TASK", "the first worker")
            names = " and ".join(sorted({kind for kind, _ in mine}))
            message = f"{names}: {first} keeps the path of the script, others that name the same one write below their"
            restored = f"; all restore the backup of {first}" if _BACKUP in names else ""
            self._notes.say(strategy, f"{message} own task's folder{restored}")
        return said


def _put(beside: str, path: str) -> None:
    """Let what lies at `beside` be what lies at `path`, with the mode and the other names that this has."""
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        os.replace(beside, path)
        return
    if facts.st_nlink == 1:
        try:  # noqa: SIM105 - contextlib may not be loaded
            os.chmod(beside, facts.st_mode & 0o7777)
        except OSError:  # a disk without modes
            pass
        os.replace(beside, path)
        return
    with open(beside, "rb") as source, open(path, "r+b") as target:
        try:  # noqa: SIM105 - as above
            os.lockf(target.fileno(), os.F_LOCK, 0)  # one worker after the other
        except OSError:  # a disk without locks
            pass
        while block := source.read(1 << 20):
            target.write(block)
        target.truncate()


def _remove(folder: str) -> None:
    """A hidden folder with what is in it, as far as that can be."""
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        return


def _age(path: str) -> float:
    """Seconds since it was written to; none where it is gone."""
    try:
        return sys.modules["time"].time() - os.lstat(path).st_mtime  # type: ignore[no-any-return]  # of time, which is loaded by now
    except OSError:
        return 0.0


_ATTRIBUTE = {_BACKUP: "backup_dir", _LINES: "filename"}


def _is(callback: "Any", kind: str) -> bool:
    return any(
        base.__name__ == kind and base.__module__.startswith("keras.src.callbacks.") for base in type(callback).__mro__
    )


def _path(kind: str, callback: "Any") -> str:
    path: str = os.fspath(getattr(callback, _ATTRIBUTE[kind]))
    return path if "://" in path else os.path.realpath(path)


def _move(backup: "Any", folder: str) -> None:
    """Let it save into another folder, and restore from there."""
    before = os.fspath(backup.backup_dir)
    for name in _PARTS:
        path = getattr(backup, name, None)
        if path is not None:
            setattr(backup, name, os.path.join(folder, os.path.relpath(path, before)))
    backup.backup_dir = folder


def _held(backup: "Any") -> str:
    """Tells one backup from another: the epoch and batch it was made at; empty where there is none."""
    weights, about = getattr(backup, _PARTS[0]), getattr(backup, _PARTS[1])
    if "://" in os.fspath(weights):
        return "elsewhere"  # in an object store, the same one for all
    if not os.path.exists(weights):
        return ""
    try:
        with open(about, encoding="utf-8") as file:
            return file.read() or "no epoch"
    except OSError:
        return "no epoch"


def _restore_as(backup: "Any", held: str, own: str) -> None:
    """See to it that it restores what the leader does: from the leader's folder, else from this worker's own copy."""
    here = _held(backup)
    if here == held:
        return
    given = backup.backup_dir
    _move(backup, own)
    found = _held(backup)
    if found == held:
        return
    if not held:
        for path in (getattr(backup, name, None) for name in _PARTS):
            if path is not None and os.path.exists(path):
                os.unlink(path)
        return
    about = f"{os.environ.get('PHALANX_TASK', 'this worker')} has {here or found or 'no backup'} there"
    message = f"the first worker goes on from the backup in {given} ({held}), and {about}"
    raise ApartError(f"phalanx: {message}: put it on a disk that all workers share, or remove it everywhere")

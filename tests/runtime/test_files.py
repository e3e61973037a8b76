"""Files that all workers write under one path: whole ones, and one path each, decided on small copies of Keras."""

from __future__ import annotations

import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from phalanx.runtime.boot import phalanx_hooks, phalanx_keras3
from phalanx.runtime.boot.phalanx_files import Files


class CollectiveAllReduceStrategy:
    def __init__(self, *, leads: bool) -> None:
        self.extended = types.SimpleNamespace(_in_multi_worker_mode=lambda: True, _is_chief=leads)


def _backup(folder: str, epoch: int | None = None) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    if epoch is not None:
        Path(folder, "latest.weights.h5").write_text(f"of epoch {epoch}")
        Path(folder, "training_metadata.json").write_text(json.dumps({"epoch": epoch}))


class BackupAndRestore:
    __module__ = "keras.src.callbacks.backup_and_restore"

    def __init__(self, folder: str) -> None:
        self.backup_dir = folder
        self._weights_path = f"{folder}/latest.weights.h5"
        self._training_metadata_path = f"{folder}/training_metadata.json"
        self._prev_weights_path = f"{self._weights_path}.bkp"
        self._prev_training_metadata_path = f"{self._training_metadata_path}.bkp"
        self.restored: str | None = None

    def on_train_begin(self) -> None:
        path = Path(self._weights_path)
        self.restored = f"{path.read_text()} from {self.backup_dir}" if path.exists() else None


class Mine(BackupAndRestore):
    """A subclass of the user's."""

    __module__ = "__main__"


class CSVLogger:
    __module__ = "keras.src.callbacks.csv_logger"

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self.opened = ""

    def on_train_begin(self) -> None:
        self.opened = self.filename


class Other:
    backup_dir = "untouched"

    def on_train_begin(self) -> None:
        """Nothing."""


class Store:
    """The coordination service's words."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def set_config_key_value(self, key: str, value: str) -> None:
        self.words[key] = value

    def get_config_key_value(self, key: str) -> str:
        if key not in self.words:
            raise RuntimeError("the first worker is gone")
        return self.words[key]


class Worker:
    """One process: begins fits with the callbacks it is given."""

    def __init__(self, *, leads: bool, task: str = "worker:0", home: Path | None = None) -> None:
        self.said: list[str] = []
        line = types.SimpleNamespace(say=lambda _kind, message: self.said.append(message))
        self._files = Files(phalanx_keras3.Notes(line), phalanx_keras3, phalanx_hooks.disguise)  # type: ignore[arg-type]  # a line that only says
        self._environ = {"PHALANX_TASK": task, "PHALANX_TASK_DIR": str(home)}
        self._model = types.SimpleNamespace(_distribute_strategy=CollectiveAllReduceStrategy(leads=leads))

        class CallbackList:
            def __init__(self, model: Any, callbacks: list[Any]) -> None:
                self.model, self.callbacks = model, callbacks

            def on_train_begin(self, logs: object = None) -> None:
                del logs
                for callback in self.callbacks:
                    callback.on_train_begin()

        self._list = CallbackList
        self._files.callbacks(types.SimpleNamespace(CallbackList=CallbackList))

    def fit(self, *callbacks: Any) -> None:
        os.environ.update(self._environ)
        self._list(self._model, list(callbacks)).on_train_begin()


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    store = Store()
    context = types.SimpleNamespace(context=lambda: store)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", context)  # type: ignore[arg-type]  # all that is asked of it
    for name in ("PHALANX_TASK", "PHALANX_TASK_DIR"):
        monkeypatch.setenv(name, "")
    monkeypatch.delenv("PHALANX_GENERATION", raising=False)
    monkeypatch.delenv("PHALANX_KERAS", raising=False)
    return store


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Worker, Worker]:
    monkeypatch.chdir(tmp_path)
    return Worker(leads=True), Worker(leads=False, task="worker:1", home=tmp_path / "mine")


def test_one_path_for_all_is_the_first_workers_and_another_gets_its_own(two, tmp_path):
    first, other = two
    for worker, own in ((first, ""), (other, f"{tmp_path}/mine/keras/")):
        backup, lines, nothing = Mine("backup"), CSVLogger("log.csv"), Other()
        worker.fit(nothing, backup, lines)
        assert backup.backup_dir == (own and f"{own}0-") + "backup"
        assert backup._prev_training_metadata_path == f"{backup.backup_dir}/training_metadata.json.bkp"
        assert lines.opened == (own and f"{own}1-") + "log.csv"
        assert nothing.backup_dir == "untouched"
    assert other.said == []
    [said] = first.said
    assert said.startswith("BackupAndRestore and CSVLogger: worker:0 keeps the path of the script, others that name")
    assert said.endswith("below their own task's folder; all restore the backup of worker:0")


def test_paths_that_a_script_has_made_different_are_left_alone(two):
    first, other = two
    first.fit(BackupAndRestore("backup/0"))
    mine = BackupAndRestore("backup/1")
    other.fit(mine)
    assert mine.backup_dir == "backup/1"


def test_a_first_worker_without_such_callbacks_has_no_path_to_share(two):
    first, other = two
    first.fit()
    mine = BackupAndRestore("backup")
    other.fit(mine)
    assert mine.backup_dir == "backup"
    assert first.said == []


def test_all_restore_the_backup_of_the_first_worker(two, tmp_path):
    first, other = two
    _backup("backup", 2)
    _backup(f"{tmp_path}/mine/keras/0-backup", 3)  # killed before the first worker had saved that epoch
    for worker in (first, other):
        callback = BackupAndRestore("backup")
        worker.fit(callback)
        assert callback.restored == "of epoch 2 from backup"


def test_a_copy_of_its_own_is_not_restored_where_the_first_worker_has_none(two, tmp_path):
    first, other = two
    _backup(f"{tmp_path}/mine/keras/0-backup", 1)
    for worker in (first, other):
        callback = BackupAndRestore("backup")
        worker.fit(callback)
        assert callback.restored is None


@pytest.mark.parametrize("own", [None, 1, 2])
def test_where_the_disk_is_not_shared_an_equal_copy_of_its_own_is_restored_and_no_other(two, tmp_path, own):
    first, other = two
    _backup("backup", 2)
    first.fit(BackupAndRestore("backup"))
    Path("backup").rename("on another disk")
    _backup(f"{tmp_path}/mine/keras/0-backup", own)
    callback = BackupAndRestore("backup")
    if own == 2:
        other.fit(callback)
        assert callback.restored == f"of epoch 2 from {tmp_path}/mine/keras/0-backup"
    else:
        with pytest.raises(RuntimeError, match="put it on a disk that all workers share"):
            other.fit(callback)


def test_callbacks_that_serve_a_second_fit_share_the_path_again(two, tmp_path):
    first, other = two
    his, hers = BackupAndRestore("backup"), BackupAndRestore("backup")
    lines = CSVLogger("log.csv")
    first.fit(his, CSVLogger("log.csv"))
    other.fit(hers, lines)
    _backup("backup", 4)
    first.fit(his, CSVLogger("log.csv"))
    other.fit(hers, lines)
    assert hers.restored == "of epoch 4 from backup"
    assert hers.backup_dir == f"{tmp_path}/mine/keras/0-backup"
    assert lines.opened == f"{tmp_path}/mine/keras/1-log.csv"


def test_when_the_first_worker_is_gone_everything_stays_as_the_script_has_it(two):
    _, other = two
    mine = BackupAndRestore("backup")
    other.fit(mine)
    assert (mine.backup_dir, mine.restored) == ("backup", None)


# Whole files ----------------------------------------------------------------------------------------------------------


class Saving:
    """Keras's saving_api, as far as it is wrapped; notes the paths it writes."""

    def __init__(self, *, fails: bool = False) -> None:
        self.written: list[str] = []
        saving = self

        def save_model(model: Any, filepath: Any, overwrite: bool = True, zipped: Any = None, **kwargs: Any) -> None:  # noqa: FBT002 - as Keras's
            del model, overwrite, zipped, kwargs
            saving.written.append(str(filepath))
            Path(filepath).write_text("new")
            if fails:
                raise OSError("the disk is full")

        self.save_model = self.save_weights = save_model


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PHALANX_TASK", "worker:1")
    monkeypatch.setenv("PHALANX_RUN", "of-a-run")
    return Files(None, phalanx_keras3, phalanx_hooks.disguise)


def beside(folder: str = ".") -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


MODEL = types.SimpleNamespace(_distribute_strategy=CollectiveAllReduceStrategy(leads=False))


@pytest.mark.parametrize(
    ("name", "words"),
    [("model.keras", {"zipped": None}), ("a.weights.h5", {"max_shard_size": None}), ("old.h5", {"zipped": True})],
)
def test_a_file_is_written_beside_its_place_and_renamed(files, name, words):
    files_folder = Path.cwd()
    saving = Saving()
    files.saving(saving)
    Path(name).write_text("old")
    saving.save_model(MODEL, Path(name), overwrite=True, **words)
    assert saving.written == [f"{files_folder}/.phalanx-of-a-run.worker_1.0/whole.{name.partition('.')[2]}"]
    assert (beside(), Path(name).read_text()) == ([name], "new")


def test_a_save_that_fails_leaves_what_was_there_and_nothing_else(files):
    saving = Saving(fails=True)
    files.saving(saving)
    Path("model.keras").write_text("old")
    with pytest.raises(OSError, match="the disk is full"):
        saving.save_model(MODEL, "model.keras")
    assert (beside(), Path("model.keras").read_text()) == (["model.keras"], "old")


def test_a_link_still_leads_to_what_is_saved(files):
    saving = Saving()
    files.saving(saving)
    Path("disk").mkdir()
    Path("model.keras").symlink_to("disk/model.keras")
    saving.save_model(MODEL, "model.keras")
    assert Path("model.keras").is_symlink()
    assert beside("disk") == ["model.keras"]


def test_what_a_kill_has_left_is_found_by_no_pattern_for_models_and_goes_with_the_tasks_next_save(files):
    left = {name: Path(name) for name in (".phalanx-of-a-run.worker_1.0", ".phalanx-before.worker_1.0")}
    others = [".phalanx-of-a-run.worker_11.0", ".phalanx-now.worker_1.0", ".phalanx-before.worker_0.0", ".phalanx-x"]
    for name in (*left, *others):
        Path(name).mkdir()
        Path(name, "whole.keras").write_text("half")
        if "now" not in name:
            os.utime(name, (1, 1))
    assert not [*Path().glob("*.keras"), *Path().glob(".*.keras")]
    saving = Saving()
    files.saving(saving)
    saving.save_model(MODEL, "model.keras")
    assert sorted(beside()) == sorted([*others, "model.keras"])


def test_a_long_name_is_saved_under_it(files):
    saving = Saving()
    files.saving(saving)
    name = "n" * 244 + ".weights.h5"
    saving.save_weights(MODEL, name)
    assert beside() == [name]


def test_a_file_that_is_there_keeps_its_mode(files):
    saving = Saving()
    files.saving(saving)
    Path("model.keras").write_text("old")
    Path("model.keras").chmod(0o640)
    saving.save_model(MODEL, "model.keras")
    assert (Path("model.keras").stat().st_mode & 0o7777, Path("model.keras").read_text()) == (0o640, "new")


def test_all_names_of_a_file_lead_to_what_is_saved(files):
    saving = Saving()
    files.saving(saving)
    Path("first.keras").write_text("an old and long one")
    Path("second.keras").hardlink_to("first.keras")
    saving.save_model(MODEL, "second.keras")
    assert Path("first.keras").read_text() == "new"
    assert Path("first.keras").samefile("second.keras")
    assert sorted(beside()) == ["first.keras", "second.keras"]


def test_two_threads_that_save_do_not_meet(files):
    saving = Saving()
    usual = saving.save_model

    def save_model(model: Any, filepath: Any, overwrite: bool = True, **kwargs: Any) -> None:  # noqa: FBT002 - as Keras's
        if "0/whole" in str(filepath):
            saving.save_model(model, "other.keras")
        usual(model, filepath, overwrite, **kwargs)

    saving.save_model = save_model
    files.saving(saving)
    saving.save_model(MODEL, "model.keras")
    assert [Path(path).parent.name[-2:] for path in saving.written] == [".1", ".0"]
    assert sorted(beside()) == ["model.keras", "other.keras"]


@pytest.mark.parametrize(
    ("model", "path", "words"),
    [
        (types.SimpleNamespace(_distribute_strategy=None), "model.keras", {}),
        (MODEL, "model.keras", {"overwrite": False}),
        (MODEL, "model.weights.h5", {"max_shard_size": 1}),
        (MODEL, "model.tf", {}),
        (MODEL, "model.keras", {"zipped": False}),
        (object(), "model.keras", {}),
    ],
)
def test_what_is_not_ours_to_do_goes_to_keras_as_it_is(files, model, path, words):
    saving = Saving()
    files.saving(saving)
    Path(path).write_text("old")
    saving.save_model(model, path, **words)
    assert saving.written == [path]

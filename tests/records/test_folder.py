"""The folder of a run: its name, its making, its logs."""

from __future__ import annotations

import errno
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.errors import InputError, PlaceError
from phalanx.names import TaskId
from phalanx.records.folder import RunFolder, slug

NOW = time.mktime((2026, 11, 30, 7, 33, 11, 0, 0, -1))


def test_a_run_is_called_by_its_name_and_the_local_time(tmp_path: Path):
    folder = RunFolder.create(tmp_path / "deep" / "runs", "digits", NOW)
    assert folder.run == "digits-1130-073311"
    assert folder.path.is_absolute()
    assert {path.name for path in folder.path.iterdir()} == {"logs", "tasks", "agents"}


def test_runs_of_one_second_get_numbers(tmp_path: Path):
    names = [RunFolder.create(tmp_path, "digits", NOW).run for _ in range(3)]
    assert names == ["digits-1130-073311", "digits-1130-073311-2", "digits-1130-073311-3"]


def test_launchers_racing_for_a_name_never_share_a_folder(tmp_path: Path):
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: RunFolder.create(tmp_path, "digits", NOW).run, range(32)))
    assert len(set(names)) == 32


@given(st.text())
def test_any_name_becomes_a_label(name: str):
    made = slug(name)
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", made)
    assert len(made) <= 40
    assert slug(made) == made


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("My Train.py", "my-train-py"),
        ("2nd", "r2nd"),
        ("…", "run"),
        ("", "run"),
        ("a" * 60, "a" * 40),
        ("a/../b", "a-b"),
    ],
)
def test_slugs(name: str, wanted: str):
    assert slug(name) == wanted


def test_a_file_in_the_place_of_the_folder_is_the_users_to_solve(tmp_path: Path):
    (tmp_path / "runs").write_text("")
    with pytest.raises(InputError, match="runs cannot be used") as wrong:
        RunFolder.create(tmp_path / "runs", "digits", NOW)
    assert "--runs" in (wrong.value.hint or "")


def test_a_full_disk_is_the_place_s_fault_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PlaceError, match="No space left on device"):
        RunFolder.create(tmp_path, "digits", NOW)
    assert list(tmp_path.iterdir()) == []


def test_logs_are_listed_in_training_order_then_by_generation(tmp_path: Path):
    folder = RunFolder(tmp_path)
    for task, name in [
        ("ps_0", "g1.a1.out"),
        ("worker_10", "g1.a1.out"),
        ("worker_2", "g10.a1.out"),
        ("worker_2", "g2.a1.err"),
        ("worker_2", "g2.a1.out"),
        ("worker_2", "g2.a1.out.idx"),
        ("chief_0", "g1.a2.out"),
        ("elsewhere", "g1.a1.out"),
    ]:
        (folder.logs / task).mkdir(parents=True, exist_ok=True)
        (folder.logs / task / name).touch()
    found = [f"{log.task} {log.path.name}" for log in folder.log_files()]
    assert found == [
        "chief:0 g1.a2.out",
        "worker:2 g2.a1.out",
        "worker:2 g2.a1.err",
        "worker:2 g10.a1.out",
        "worker:10 g1.a1.out",
        "ps:0 g1.a1.out",
    ]
    assert folder.log_files(TaskId("worker", 7)) == ()
    assert folder.log(TaskId("worker", 2), generation=2, attempt=1, stream="err") == folder.log_files()[2].path
    assert folder.log_files()[0].index.name == "g1.a2.out.idx"

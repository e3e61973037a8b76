"""Folders that are thrown away, and those that a killed process has left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from phalanx.scratch import scratch

HOLDER = """
import os, signal, sys, tempfile
tempfile.tempdir = sys.argv[1]
from phalanx.scratch import scratch
with scratch("phalanx-x-") as folder:
    (folder / "deep").mkdir()
    os.utime(folder, (1, 1))
    print(folder, flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_in_the_end(place):
    with scratch("phalanx-x-") as folder:
        (folder / "one").touch()
        assert folder.parent == place
    assert list(place.iterdir()) == []


def test_a_folder_of_a_living_process_stays_and_that_of_a_killed_one_is_removed_by_the_next(place):
    command = [sys.executable, "-c", HOLDER, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        folder = Path(holder.stdout.readline().strip())
        with scratch("phalanx-x-"):
            assert folder.is_dir()
        holder.send_signal(signal.SIGKILL)
    with scratch("phalanx-x-") as mine:
        assert list(place.iterdir()) == [mine]


def test_what_is_of_another_kind_just_made_or_a_link_stays(place):
    for name in ("phalanx-y-old", "phalanx-x-young", "elsewhere"):
        (place / name).mkdir()
    os.utime(place / "phalanx-y-old", (1, 1))
    (place / "phalanx-x-link").symlink_to(place / "elsewhere")
    os.utime(place / "phalanx-x-link", (1, 1), follow_symlinks=False)
    with scratch("phalanx-x-"):
        pass
    assert {path.name for path in place.iterdir()} == {
        "phalanx-y-old",
        "phalanx-x-young",
        "phalanx-x-link",
        "elsewhere",
    }

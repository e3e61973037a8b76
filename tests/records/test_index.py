"""The index of runs: found by name, prefix, `last` or folder; private; never in the way."""

from __future__ import annotations

import dataclasses
import shutil
import stat
from pathlib import Path

import pytest

from builders import running
from phalanx.errors import InputError, RunNotFoundError
from phalanx.records.index import Entry, Index, state_root


def entry(run: str, folder: Path | str = "/runs", *, created: float = 1.0) -> Entry:
    return Entry(
        run=run,
        folder=str(Path(folder) / run),
        engine="local",
        lead="127.0.0.1:4711",
        token="t0ken",
        created=created,
        launcher=42,
    )


@pytest.fixture
def index(home: Path) -> Index:
    index = Index()
    for number, run in enumerate(["digits-1130-070000", "digits-1130-080000", "ctr-1129-090000"]):
        index.add(entry(run, created=float(number)))
    return index


def test_a_run_is_found_by_name_prefix_and_last(index: Index):
    assert index.find("digits-1130-070000").run == "digits-1130-070000"
    assert index.find("ctr").run == "ctr-1129-090000"
    assert index.find("last").run == "ctr-1129-090000"
    assert [found.run for found in index.all()] == ["digits-1130-070000", "digits-1130-080000", "ctr-1129-090000"]


def test_an_exact_name_wins_over_a_prefix(index: Index):
    index.add(entry("digits-1130-070000-2"))
    assert index.find("digits-1130-070000").run == "digits-1130-070000"


def test_an_ambiguous_prefix_names_the_runs(index: Index):
    with pytest.raises(RunNotFoundError, match="'digits' begins the name of 2 runs") as wrong:
        index.find("digits")
    assert wrong.value.hint == "one of digits-1130-070000, digits-1130-080000"


def test_a_wrong_name_gets_what_comes_near(index: Index):
    with pytest.raises(RunNotFoundError, match="no run is called 'digist-1130-070000'") as wrong:
        index.find("digist-1130-070000")
    assert "digits-1130-070000" in (wrong.value.hint or "")
    with pytest.raises(RunNotFoundError, match="no run is called 'zzz'") as wrong:
        index.find("zzz")
    assert "phalanx ps --all" in (wrong.value.hint or "")


def test_before_the_first_run_last_says_so(home: Path):
    with pytest.raises(RunNotFoundError, match="no run has been started yet"):
        Index().find("last")
    assert Index().all() == ()


def test_the_files_are_for_this_user_alone(index: Index, home: Path):
    root = state_root()
    assert root == home / ".local/state/phalanx"
    assert stat.S_IMODE((root / "runs").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (root / "runs").iterdir()} == {0o600}


def test_a_token_that_others_can_read_is_refused(index: Index):
    (state_root() / "runs" / "ctr-1129-090000.json").chmod(0o640)
    with pytest.raises(InputError, match=r"ctr-1129-090000\.json holds the token .* read by others") as wrong:
        index.find("ctr")
    assert "chmod 600" in (wrong.value.hint or "")
    assert [found.run for found in index.all()] == ["digits-1130-070000", "digits-1130-080000"]
    assert len(index.refused) == 1


def test_a_link_or_a_broken_file_is_no_entry(index: Index, tmp_path: Path):
    runs = state_root() / "runs"
    shutil.copy(runs / "ctr-1129-090000.json", tmp_path / "elsewhere.json")
    (runs / "linked.json").symlink_to(tmp_path / "elsewhere.json")
    (runs / "broken.json").write_text("{")
    (runs / "broken.json").chmod(0o600)
    assert len(index.all()) == 3


def test_adding_again_replaces_and_forgetting_is_idempotent(index: Index):
    moved = dataclasses.replace(entry("ctr-1129-090000"), lead="127.0.0.1:4712")
    index.add(moved)
    assert index.find("ctr") == moved
    index.forget("ctr-1129-090000")
    index.forget("ctr-1129-090000")
    assert len(index.all()) == 2


def test_two_runs_of_one_name_in_two_folders_keep_both(index: Index):
    index.add(entry("ctr-1129-090000", "/elsewhere"))
    assert len(index.all()) == 4
    with pytest.raises(RunNotFoundError, match="there are 2 runs called ctr-1129-090000") as wrong:
        index.find("ctr-1129-090000")
    assert "/elsewhere/ctr-1129-090000" in (wrong.value.hint or "")


def test_a_folder_names_its_run_whether_indexed_or_not(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = running().write(tmp_path / "runs")
    index = Index()
    alone = index.find(str(folder.path))
    assert (alone.run, alone.folder, alone.token) == (folder.run, str(folder.path), "")
    index.add(entry(folder.run, folder.path.parent))
    monkeypatch.chdir(folder.path)
    assert index.find(".").token == "t0ken"


def test_a_deleted_folder_leaves_the_entry(home: Path, tmp_path: Path):
    folder = running().write(tmp_path / "runs")
    Index().add(entry(folder.run, folder.path.parent))
    shutil.rmtree(folder.path)
    assert Index().find(folder.run).files.path == folder.path


def test_a_relative_state_home_is_ignored():
    assert state_root({"HOME": "/h", "XDG_STATE_HOME": "rel"}) == Path("/h/.local/state/phalanx")
    assert state_root({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == Path("/s/phalanx")

"""What a job should leave behind, looked for on a real file system."""

from __future__ import annotations

import asyncio
import glob
import os
import time

import pytest

from phalanx.agent import outputs
from phalanx.agent.outputs import find, look
from phalanx.plan.outputs import Output


@pytest.fixture
def job(tmp_path):
    (tmp_path / "model.keras").write_bytes(b"x" * 100)
    (tmp_path / "ckpt" / "deep").mkdir(parents=True)
    (tmp_path / "ckpt" / "one.index").write_bytes(b"x" * 10)
    (tmp_path / "ckpt" / "deep" / "two.index").write_bytes(b"x" * 5)
    (tmp_path / "empty").mkdir()
    (tmp_path / "a[1].txt").write_bytes(b"x")
    for path in tmp_path.rglob("*"):
        os.utime(path, (1000, 1000))
    os.utime(tmp_path / "ckpt" / "deep" / "two.index", (2000, 2000))
    return tmp_path


def seen(job, pattern: str) -> tuple[int, int, float | None]:
    output = look(pattern, str(job))
    assert output.path == pattern
    return output.count, output.bytes, output.newest


def test_a_file_is_found_below_the_jobs_folder_and_anywhere_by_its_whole_path(job):
    assert seen(job, "model.keras") == seen(job, str(job / "model.keras")) == (1, 100, 1000)


def test_a_folder_counts_with_all_that_is_in_it_and_its_newest_file_tells_its_age(job):
    assert seen(job, "ckpt") == (1, 15, 2000)
    assert seen(job, "empty")[0] == 1


def test_a_pattern_counts_what_fits_it(job):
    assert seen(job, "ckpt/*.index") == (1, 10, 1000)
    assert seen(job, "ckpt/**/*.index") == (2, 15, 2000)


def test_a_name_that_looks_like_a_pattern_is_a_name_where_a_file_has_it(job):
    assert seen(job, "a[1].txt") == (1, 1, 1000)


def test_nothing_is_nothing(job):
    assert seen(job, "saved_model") == (0, 0, None)
    assert seen(job, "*.h5") == (0, 0, None)


def test_what_lies_in_a_store_is_not_looked_for(job):
    output = look("gs://bucket/model", str(job))
    assert output == Output(path="gs://bucket/model", wrong=output.wrong)
    assert "files only" in output.wrong


def test_a_file_that_fits_and_lies_in_a_folder_that_fits_is_counted_once(job):
    assert seen(job, "ckpt/**")[1:] == (15, 2000)


@pytest.mark.parametrize("pattern", ["**", "**/*.keras", "**/none/**/at all", "ckpt"])
def test_a_pattern_that_takes_too_long_says_so_instead_of_half_of_what_fits(job, pattern):
    output = look(pattern, str(job), longest=-1)
    assert (output.count, output.newest) == (0, None)
    assert "name its folder more exactly" in output.wrong


@pytest.mark.parametrize("pattern", ["*/*/*.h5", "*/?/none", "[0-9]*/*/", "/*/*/*/*/*/*/*/*/*/at all"])
def test_a_wide_pattern_that_nothing_fits_is_bounded_too(tmp_path, monkeypatch, pattern):
    for number in range(40):
        (tmp_path / str(number) / "a").mkdir(parents=True)
        (tmp_path / str(number) / "a" / "model.keras").touch()
    listed, usual = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or usual(path))
    output = look(pattern, str(tmp_path), longest=-1)
    assert "name its folder more exactly" in output.wrong
    assert len(listed) <= 10, "it stops at once, and not when all has been looked through"


def test_a_pattern_of_several_levels_finds_what_glob_finds(job):
    for pattern in ("*/*/*.index", "*/*", "ckpt/*/", "*/", "c*t/**/two*", "**/deep/*", "./ckpt/../*.keras", "**/"):
        fits = set(filter(None, outputs._fitting(str(job), pattern.split("/"))))
        there = {os.path.realpath(one) for one in glob.glob(f"{job}/{pattern}", recursive=True)}  # noqa: PTH207 - as users write it
        assert {os.path.realpath(one) for one in fits} == there, pattern


def test_a_disk_that_hangs_takes_no_answer_from_the_other_patterns(job, monkeypatch):
    usual = outputs.look
    monkeypatch.setattr(outputs, "_HANGS", 0.3)
    monkeypatch.setattr(outputs, "look", lambda one, cwd: time.sleep(2) if one == "dead" else usual(one, cwd))
    dead, model = asyncio.run(find(["dead", "model.keras"], str(job)))
    assert "did not answer" in dead.wrong
    assert (model.path, model.count) == ("model.keras", 1)

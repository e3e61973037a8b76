"""`phalanx logs`: which run, which tasks, which streams; exact bytes where they are asked for."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from builders import DAWN, killed, running
from phalanx.cli.main import app
from phalanx.errors import InputError, RunNotFoundError
from phalanx.names import TaskId
from phalanx.records.folder import RunFolder, index_of
from phalanx.records.index import Entry, Index
from phalanx.records.timeindex import record

pytestmark = pytest.mark.usefixtures("home")
JUNK = b"10%\r100%\nbin \xff\x00\x1b[31mred\x1b[0m\nno end"


def phalanx(*words: str) -> int:
    return app()(list(words), exit_on_error=False, print_error=False)


def wrote(
    folder: RunFolder, task: str, seconds: float, data: bytes, *, stream: str = "out", generation: int = 1
) -> None:
    path = folder.log(TaskId.parse(task), generation=generation, attempt=1, stream=stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    offset = path.stat().st_size if path.exists() else 0
    with index_of(path).open("ab") as index:
        index.write(record(offset, int((DAWN + seconds) * 1e9)))
    with path.open("ab") as log:
        log.write(data)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """The last run: worker 1 was killed; another one, of one worker, is older."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    for number, told in enumerate([running(workers=1, run="ctr-1130-060000"), killed()]):
        made = told.write(tmp_path / "runs")
        Index().add(
            Entry(
                run=made.run,
                folder=str(made.path),
                engine="local",
                lead="127.0.0.1:9",
                token="t",
                created=float(number),
                launcher=1,
            )
        )
    wrote(RunFolder(tmp_path / "runs" / "ctr-1130-060000"), "worker:0", 3, b"of ctr\n")
    wrote(made, "worker:0", 2, b"zero out\n")
    wrote(made, "worker:1", 3, b"one out\n")
    wrote(made, "worker:1", 4, b"one err\n", stream="err")
    wrote(made, "worker:1", 5, b"one out again\n")
    wrote(made, "worker:0", 6, b"zero err\n", stream="err")
    return made


ONE = "one out\none err\none out again\n"


def test_without_words_all_tasks_of_the_last_run_the_first_failure_on_top(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
):
    assert phalanx("logs") == 0
    assert capsys.readouterr().out == (
        f"==> worker:1 on n0 failed, first <==\n{ONE}\n==> worker:0 on n0 victim <==\nzero out\nzero err\n"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["worker:1"], ONE),
        (["last", "worker:1"], ONE),
        (["digits", "worker:1"], ONE),
        (["worker:1", "digits-1130-070000"], ONE),
        (["worker:1", "worker:1"], ONE),
        (["ctr"], "of ctr\n"),
        (["worker:1", "--err"], "one err\n"),
        (["worker:1", "--out"], "one out\none out again\n"),
        (["worker:1", "-f"], ONE),
        (["worker:1", "--since", "2026-11-30T07:00:04"], "one err\none out again\n"),
        (
            ["-f"],
            "worker:0 | zero out\n" + "".join(f"worker:1 | {x}\n" for x in ONE.splitlines()) + "worker:0 | zero err\n",
        ),
        (
            ["--merged", "--out"],
            (
                "2026-11-30T07:00:02.000+00:00 worker:0 | zero out\n"
                "2026-11-30T07:00:03.000+00:00 worker:1 | one out\n"
                "2026-11-30T07:00:05.000+00:00 worker:1 | one out again\n"
            ),
        ),
    ],
)
def test_which_lines(folder: RunFolder, capsys: pytest.CaptureFixture[str], words: list[str], text: str):
    assert phalanx("logs", *words) == 0
    assert capsys.readouterr().out == text


def test_json_says_all_about_each_line(folder: RunFolder, capsys: pytest.CaptureFixture[str]):
    assert phalanx("logs", "worker:1", "--json", "--err") == 0
    assert json.loads(capsys.readouterr().out) == {
        "time": "2026-11-30T07:00:04.000+00:00",
        "task": "worker:1",
        "generation": 1,
        "attempt": 1,
        "stream": "err",
        "line": "one err",
    }


@pytest.mark.parametrize("how", [[], ["-f"]])
def test_raw_is_exact_to_the_byte(folder: RunFolder, capfdbinary: pytest.CaptureFixture[bytes], how: list[str]):
    wrote(folder, "worker:0", 7, JUNK)
    assert phalanx("logs", "worker:0", "--raw", *how) == 0
    assert capfdbinary.readouterr().out == b"zero out\n" + JUNK


def test_views_are_plain_and_without_credentials(folder: RunFolder, capsys: pytest.CaptureFixture[str]):
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    wrote(folder, "worker:0", 7, JUNK + f"\nkey {key}\n".encode())
    assert phalanx("logs", "worker:0") == 0
    text = capsys.readouterr().out
    assert "100%\nbin \ufffdred\nno end\n" in text
    assert key not in text


def test_the_newest_generation_unless_another_is_asked_for(
    folder: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    again = running(run=folder.run).at(8).bound(port=30000).started()
    again.write(tmp_path / "runs")
    wrote(folder, "worker:0", 9, b"second\n", generation=2)
    assert phalanx("logs", "worker:0") == 0
    assert capsys.readouterr().out == "second\n"
    assert phalanx("logs", "worker:0", "--generation", "1") == 0
    assert capsys.readouterr().out == "zero out\nzero err\n"


def test_a_task_that_the_run_does_not_have(folder: RunFolder):
    with pytest.raises(InputError, match="digits-1130-070000 has no ps:0") as wrong:
        phalanx("logs", "ps:0")
    assert wrong.value.hint == "it has worker:0, worker:1"


@pytest.mark.parametrize("number", ["7", "0", "-1"])
def test_a_generation_that_the_run_has_not_had(folder: RunFolder, tmp_path: Path, number: str):
    with pytest.raises(InputError, match="digits-1130-070000 has generation 1 only"):
        phalanx("logs", "--generation", number)
    running(run=folder.run).at(8).bound(port=30000).started().write(tmp_path / "runs")
    with pytest.raises(InputError, match="digits-1130-070000 has generations 1 to 2"):
        phalanx("logs", "--generation", number)


def test_a_word_with_a_colon_that_is_no_task(folder: RunFolder):
    with pytest.raises(InputError, match="'worker:x' is no task") as wrong:
        phalanx("logs", "last", "worker:x")
    assert "TYPE:INDEX" in (wrong.value.hint or "")


def test_two_runs_and_unknown_runs(folder: RunFolder):
    with pytest.raises(InputError, match="'digits' and 'ctr' both look like a run"):
        phalanx("logs", "digits", "ctr")
    with pytest.raises(RunNotFoundError, match="no run is called 'digitz'") as wrong:
        phalanx("logs", "digitz")
    assert "did you mean" in (wrong.value.hint or "")


@pytest.mark.parametrize(
    "words", [["--err", "--out"], ["--raw", "--json"], ["--raw", "--merged"], ["--raw", "--since", "5m"]]
)
def test_flags_that_contradict_each_other(folder: RunFolder, words: list[str]):
    with pytest.raises(InputError, match=f"{words[0]} and {words[1]} exclude each other"):
        phalanx("logs", *words)

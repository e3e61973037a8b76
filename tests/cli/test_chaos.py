"""`phalanx chaos`: what it refuses, before anything is started or hurt."""

from __future__ import annotations

import os
import time

import pytest

from builders import killed, running
from phalanx.cli import jobflags, main
from phalanx.errors import PhalanxError
from phalanx.records.index import Entry, Index

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Runs the verb in a folder with a script and three runs: one goes on, one does and is detached, one has ended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)\n")
    names = ("going-1130-070000", "detached-1130-070000")
    for age, told in enumerate((*(running(run=name) for name in names), killed(run="over-1130-070000"))):
        folder = told.write(tmp_path / "runs")
        Index().add(
            Entry(
                run=folder.run,
                folder=str(folder.path),
                engine="local",
                lead="127.0.0.1:9",
                token="t",
                created=time.time() - age,
                launcher=os.getpid(),
                detached=folder.run.startswith("detached"),
            )
        )

    def call(*words: str) -> int:
        app = main.app()
        return app(jobflags.delimit(app, ["chaos", *words]), exit_on_error=False, print_error=False)

    return call


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "whom to hurt"),
        (["going", "--fault", "kil:worker:0"], "no fault 'kil'"),
        (["going", "--fault", "kill:worker:9"], "no task worker:9"),
        (["going", "--fault", "stall:worker:1"], "only in a run that `phalanx chaos` has started"),
        (["going", "--count", "2", "--kinds", "clock"], "only in a run that `phalanx chaos` has started"),
        (["going", "--kinds", "flood"], "no fault 'flood'"),
        (["going", "--count", "-1"], "no fault"),
        (["going", "--fault", "kill:worker:0", "--every", "soon"], "--every"),
        (["going", "--fault", "kill:worker:0", "--compare", "("], "no regular expression"),
        (["going", "--fault", "kill:worker:0", "--patience", "0"], "would count as hung at once"),
        (["going", "--fault", "kill:worker:0", "--tolerance", "nan"], "is no difference"),
        (["going", "--fault", "scale=9"], "scale=9: only workers of MultiWorkerMirroredStrategy"),
        (["--workers", "2", "--fault", "scale=9", "train.py"], "scale=9: 9 workers: this job takes 2 to 2"),
        (["--workers", "2", "--ps", "1", "--fault", "scale=3", "train.py"], "scale=3: only workers of"),
        (["--workers", "2", "--max-workers", "4", "--fault", "scale=9", "train.py"], "this job takes 2 to 4"),
        (["--workers", "2", "--max-workers", "4", "--fault", "scale=2", "train.py"], "the run has that size"),
        (
            ["--workers", "2", "--fault", "stall:worker:1", "python", "-uS", "train.py"],
            "stall: a worker cannot be made",
        ),
        (["detached", "--fault", "launcher"], "has no launcher any more"),
        (["over", "--fault", "kill:worker:0"], "has ended already"),
        (["nobody", "--fault", "kill:worker:0"], "no run is called 'nobody'"),
        (["--workers", "2", "--fault", "kill:worker:2", "train.py"], "no task worker:2"),
        (["--workers", "1", "--fault", "slow", "train.py"], "wants two tasks"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_error(ask, tmp_path, words, message):
    with pytest.raises(PhalanxError) as wrong:
        ask(*words)
    assert message in str(wrong.value)
    assert wrong.value.exit_code == 2
    names = {path.name.partition("-")[0] for path in (tmp_path / "runs").iterdir()}
    assert names == {"going", "detached", "over"}


def test_a_task_that_is_not_there_any_more_is_a_fault_that_was_not_possible(ask, capsys):
    """The records say pid 1001; no process of phalanx has it, and none is hurt."""
    assert ask("going", "--fault", "agent", "--patience", "1s") == 1
    assert "not possible" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["train.py", "--count", "3"], ["train.py", "--count", "3"]),
        (["--count", "3", "train.py", "--seed", "1"], ["train.py", "--seed", "1"]),
        (["last", "--count", "3"], None),
        (["going-1130", "--fault", "kill:worker:0"], None),
        (["python", "train.py"], ["python", "train.py"]),
    ],
)
def test_what_follows_a_script_is_the_scripts_and_what_follows_a_run_is_ours(ask, monkeypatch, words, script):
    monkeypatch.setattr("shutil.which", lambda name: name if name == "python" else None)
    app = main.app()
    found = jobflags.delimit(app, ["chaos", *words])
    assert (found[found.index("--") + 1 :] if "--" in found else None) == script


def test_last_is_a_run_though_a_program_has_that_name(ask, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "last"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(PhalanxError, match=r"task worker:7|worker:7"):
        ask("last", "--fault", "kill:worker:7")

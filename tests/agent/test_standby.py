"""A standby waits, takes its identity once, and never runs a program that has none."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.agent.prestart import ride_along, stand_by
from phalanx.agent.standby import ABANDONED, InterpreterLine, Standby, boot_env, can_stand_by, interpreter_line
from runtime.starts import BOOT, PATIENCE, await_ready, waiting

ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": "lib"}
SCRIPT = "import os\nimport fakeflow\nprint(os.environ.get('TF_CONFIG', 'nobody'))"
#: An import that anybody can see: it leaves a file.
VISIBLE = "import os\nopen('imported', 'a').write(str(os.getpid()) + ' ')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "lib" / "fakeflow.py").write_text(VISIBLE)
    return tmp_path


@pytest.fixture
def in_a_loop():
    loop = asyncio.new_event_loop()
    yield loop.run_until_complete
    loop.close()


def imported_by(folder: Path) -> list[int]:
    marks = folder / "imported"
    return [int(pid) for pid in marks.read_text().split()] if marks.exists() else []


# Which commands can stand by --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ("python train.py --epochs 3", ("script", "train.py", ("--epochs", "3"))),
        ("/opt/v/bin/python3.12 -u -B -OO train.py -m x", ("script", "train.py", ("-m", "x"))),
        ("python3 -uW error -Xdev -X utf8 -Wd t.py", ("script", "t.py", ())),
        ("python -m pkg.mod -c", ("module", "pkg.mod", ("-c",))),
        ("python -uBmpkg a", ("module", "pkg", ("a",))),
        ("python -c pass -u", ("command", "pass", ("-u",))),
        ("python -ucpass -u", ("command", "pass", ("-u",))),
        ("python3.13t -- train.py", ("script", "train.py", ())),
        ("python -P -- -x", ("script", "-x", ())),
    ],
)
def test_a_command_line_is_read_as_python_reads_it(argv: str, line: tuple[str, str, tuple[str, ...]]) -> None:
    kind, target, args = line
    assert interpreter_line(argv.split()) == InterpreterLine(kind=kind, target=target, args=args)


@pytest.mark.parametrize(
    "argv",
    [
        "",
        "./train.sh",
        "torchrun train.py",
        "python2 train.py",
        "python",
        "python -",
        "python -u -",
        "python -c",
        "python -W",
        "python -S train.py",
        "python -I train.py",
        "python -uE train.py",
        "python -v train.py",
        "python -X importtime train.py",
        "python -Ximporttime train.py",
        "python --version",
        "python -V",
        "python -Z train.py",
        "python --check-hash-based-pycs always train.py",
    ],
)
def test_what_cannot_stand_by_is_executed_as_written(argv: str) -> None:
    assert interpreter_line(argv.split()) is None


@pytest.mark.real
@pytest.mark.parametrize("words", ["-u -B t.py -m x", "-uW error -Xdev -- t.py", "-mt a -c", "-uBmt", "-OOct=1 x -m"])
def test_python_itself_reads_command_lines_the_same_way(words: str, tmp_path: Path) -> None:
    tell = "import sys; print([*sys.argv[1:]])"
    (tmp_path / "t.py").write_text(tell)
    argv = [sys.executable, *words.replace("t=1", tell.replace(" ", "\t")).split(" ")]
    line = interpreter_line(argv)
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert line is not None
    assert said.strip() == str(list(line.args))


def test_a_wrapper_cannot_stand_by_since_other_interpreters_may_come_first(tmp_path: Path) -> None:
    shim = tmp_path / "python"
    shim.write_text("#!/bin/sh\npython3 -c pass; exec python3 $@")
    shim.chmod(0o755)
    real = {"PATH": str(Path(sys.executable).parent)}
    assert can_stand_by(["python", "train.py"], real)
    assert can_stand_by([sys.executable, "train.py"], {})
    assert can_stand_by(["bin/python", "train.py"], {}, sys.prefix)
    assert not can_stand_by(["python", "train.py"], {"PATH": f"{tmp_path}:{real['PATH']}"})
    assert not can_stand_by([str(shim), "train.py"], real)
    assert not can_stand_by(["python", "train.py"], {"PATH": "/nowhere"})


@pytest.mark.parametrize("name", ["PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"])
def test_an_interpreter_that_prints_its_imports_is_started_as_written(name: str) -> None:
    assert not can_stand_by([sys.executable, "train.py"], {name: "1"})
    assert can_stand_by([sys.executable, "train.py"], {name: ""})


@pytest.mark.parametrize("boot", ["", "runtime/boot", "/a:b"])
def test_a_boot_folder_that_pythonpath_cannot_name_is_refused(boot: str) -> None:
    with pytest.raises(ValueError, match="cannot be put on PYTHONPATH"):
        boot_env({}, boot)


# Waiting ----------------------------------------------------------------------------------------------------------


@pytest.mark.real
def test_the_head_of_the_script_is_run_before_the_identity_is_known(folder: Path) -> None:
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        assert standby.ready
        assert imported_by(folder) == [process.pid]
        standby.go({"TF_CONFIG": "me"})
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"me\n", b"", 0)
    assert imported_by(folder) == [process.pid]


@pytest.mark.real
def test_an_identity_may_be_given_before_anybody_waits_for_it(folder: Path) -> None:
    with waiting([sys.executable, "train.py"], env={**ENV, "TF_CONFIG": "old"}, cwd=folder) as (process, standby):
        standby.go({}, unset=["TF_CONFIG"])
        standby.go({"TF_CONFIG": "a second word is not heard"})
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"nobody\n"


@pytest.mark.real
def test_an_identity_larger_than_any_pipe_arrives_and_nobody_waits_for_that(folder: Path) -> None:
    (folder / "train.py").write_text("import os\nprint(len(os.environ['TF_CONFIG']))")
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        standby.go({"TF_CONFIG": "x" * 3_000_000})  # exec takes 131,072 bytes
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"3000000\n"


@pytest.mark.real
@pytest.mark.parametrize("ready", [True, False])
def test_a_discarded_standby_ends_in_silence_and_runs_nothing(folder: Path, ready: bool) -> None:
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        if ready:
            assert await_ready(standby)
        standby.discard()
        standby.discard()
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"", b"", ABANDONED)


@pytest.mark.real
def test_half_an_identity_is_none(folder: Path) -> None:
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        os.write(standby._identity, (100).to_bytes(8, "big") + b"TF_CONFIG=x")
        standby.discard()
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"", b"", ABANDONED)


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_waiting_standby_by_its_default_action(folder: Path, number: signal.Signals) -> None:
    handlers = "\nimport signal\nsignal.signal(signal.SIGINT, print)\nsignal.signal(signal.SIGTERM, print)"
    (folder / "lib" / "fakeflow.py").write_text(VISIBLE + handlers)
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"", b"", -number)


@pytest.mark.real
def test_an_interrupt_during_the_imports_ends_a_standby_without_a_traceback(folder: Path) -> None:
    (folder / "lib" / "fakeflow.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()"
    )
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert not await_ready(standby)
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"", b"", -signal.SIGINT)


@pytest.mark.real
def test_a_standby_that_has_lost_its_pipes_says_so_and_runs_nothing(folder: Path) -> None:
    standby = Standby(boot=BOOT)
    done = subprocess.run(
        [sys.executable, "train.py"], env={**ENV, **standby.env(ENV)}, cwd=folder, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (ABANDONED, b"")
    assert b"its pipes were closed on the way" in done.stderr


# Never wrong: starting afresh -------------------------------------------------------------------------------------


@pytest.mark.real
def test_a_head_that_has_changed_on_the_disk_is_not_run(folder: Path) -> None:
    argv = [sys.executable, "train.py"]
    with waiting(argv, env=ENV, cwd=folder, imports=("import os\n", "import fakeflow\n", "import json")) as (
        _,
        standby,
    ):
        assert await_ready(standby)
        assert imported_by(folder) == []


@pytest.mark.real
@pytest.mark.parametrize(
    "trouble", ["raise TypeError('no')", "import own", "raise SystemExit(1)", "import sys; sys.path.insert(0, 'x')"]
)
def test_a_head_that_cannot_be_run_early_is_left_to_the_script(folder: Path, trouble: str) -> None:
    (folder / "own.py").write_text("raise SystemExit('own')")
    package = folder / "lib" / "fakeflow.py"
    package.write_text(f"{VISIBLE}\n{trouble}")
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        assert imported_by(folder) == [
            process.pid
        ]  # once: the fresh interpreter has the same pid and has not tried again
        package.write_text("")
        standby.go({"TF_CONFIG": "me"})
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"me\n", b"", 0)


@pytest.mark.real
def test_no_module_of_the_scripts_own_folder_is_run_early_not_even_for_a_package(folder: Path) -> None:
    (folder / "random.py").write_text(VISIBLE)
    (folder / "lib" / "fakeflow.py").write_text("import random")
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        assert imported_by(folder) == []
        standby.go({"TF_CONFIG": "me"})
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"me\n"
    assert imported_by(folder) == [process.pid]


@pytest.mark.real
def test_a_script_that_is_rewritten_while_its_standby_waits_finds_nothing_of_the_old_head(folder: Path) -> None:
    script = folder / "train.py"
    script.write_text('"""Old."""\nimport os\nimport json as __package__\n')
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        script.write_text("print(__doc__, __package__, sorted(vars()))")
        standby.go({})
        out, _ = process.communicate(timeout=PATIENCE)
    assert (
        out == subprocess.run([sys.executable, "train.py"], cwd=folder, env=ENV, capture_output=True, check=True).stdout
    )
    assert b"None" in out


@pytest.mark.real
def test_a_module_that_appears_beside_the_script_while_its_standby_waits_is_found(folder: Path) -> None:
    (folder / "train.py").write_text("import os\nimport fakeflow\nx = 1\nimport late\nprint(late.__name__)")
    before = folder.stat().st_mtime_ns
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        (folder / "late.py").touch()
        (folder / "imported").touch()
        os.utime(folder, ns=(before, before))  # as where the file system's clock is coarse
        standby.go({})
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err) == (b"late\n", b"")


@pytest.mark.real
def test_a_variable_that_an_import_has_read_and_that_changes_then_starts_it_afresh(folder: Path) -> None:
    (folder / "lib" / "fakeflow.py").write_text(f"{VISIBLE}\nprint(os.environ.get('TF_NUM_INTRAOP_THREADS'))")
    with waiting([sys.executable, "-u", "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        standby.go({"TF_CONFIG": "me", "TF_NUM_INTRAOP_THREADS": "2"})
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"None\n2\nme\n"
    assert imported_by(folder) == [process.pid] * 2


@pytest.mark.real
def test_a_variable_of_tensorflow_that_no_import_has_read_costs_no_fresh_start(folder: Path) -> None:
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        standby.go({"TF_CONFIG": "me", "TF_NUM_INTRAOP_THREADS": "2", "TF_GRPC_REUSE_PORT": "1"})
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"me\n"
    assert imported_by(folder) == [process.pid]


@pytest.mark.real
def test_an_import_that_asks_who_it_is_waits_for_the_answer(folder: Path) -> None:
    (folder / "lib" / "fakeflow.py").write_text(f"import os\nos.environ.get('TF_CONFIG')\n{VISIBLE}")
    with waiting([sys.executable, "train.py"], env=ENV, cwd=folder) as (process, standby):
        assert await_ready(standby)
        assert imported_by(folder) == []
        standby.go({"TF_CONFIG": "me"})
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"me\n"
    assert imported_by(folder) == [process.pid]


# The agent's side -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", [{"A=B": "x"}, {"": "x"}, {"A": "x\0y"}, {"A\0": ""}])
def test_a_variable_that_no_environment_can_hold_is_refused(env: dict[str, str]) -> None:
    standby = Standby(boot=BOOT)
    with pytest.raises(ValueError, match="name"):
        standby.go(env)
    standby.go({"A": "x"})  # nothing was sent: it can still be told
    assert os.read(standby.fds[198], 100) == (4).to_bytes(8, "big") + b"A=x\0"


@pytest.mark.parametrize(("word", "ready"), [(b"R", True), (b"", False)])
def test_any_number_may_wait_until_a_standby_is_ready(word: bytes, ready: bool, in_a_loop) -> None:
    standby = Standby(boot=BOOT)

    async def scene() -> list[bool]:
        several = [asyncio.ensure_future(standby.wait_ready()) for _ in range(3)]
        await asyncio.sleep(0)
        assert not standby.ready
        os.write(standby.fds[199], word)
        standby.started()
        return [*await asyncio.gather(*several), await standby.wait_ready(), standby.ready]

    assert in_a_loop(scene()) == [ready] * 5


def test_whoever_waits_for_a_standby_hears_that_it_was_discarded(in_a_loop) -> None:
    standby = Standby(boot=BOOT)

    async def scene() -> bool:
        waits = asyncio.ensure_future(standby.wait_ready())
        await asyncio.sleep(0)
        standby.discard()
        return await waits

    assert in_a_loop(scene()) is False


def open_files() -> set[str]:
    return {str(file) for file in Path("/proc/self/fd").iterdir()}


def test_a_standby_that_nobody_holds_leaves_no_file_open() -> None:
    before = open_files()
    standby = Standby(boot=BOOT)
    assert len(open_files()) == len(before) + 4
    del standby
    assert open_files() == before


def test_nothing_stands_by_where_the_runtime_has_gone(tmp_path):
    """It would not wait for its identity, and train alone."""
    program = tmp_path / "train.py"
    program.write_text("")
    config = {"boot": str(tmp_path / "gone"), "environ": dict(os.environ), "cwd": str(tmp_path)}
    argv = (sys.executable, str(program))
    assert stand_by(None, config, name="standby/1", argv=argv, env={}, imports=()) is None
    assert ride_along(argv, os.environ, str(tmp_path), config["boot"]) == (None, {})

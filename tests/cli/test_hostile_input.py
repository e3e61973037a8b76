"""Files, names and streams that nobody sends on purpose: one clear error, nothing half done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOUND = '{"cluster": {"worker": ["n1:2222", "n2:2222"]}, "task": {"type": "worker", "index": 1}}\n'
FAULTY = SOUND.replace('"', "'")


@pytest.fixture
def shell(tmp_path: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """A line for bash in an empty folder, where `$phalanx` is our command."""
    environ = {k: v for k, v in os.environ.items() if k != "TF_CONFIG" and not k.lower().endswith("_proxy")}
    environ["phalanx"] = f"{sys.executable} -m phalanx"
    (tmp_path / "sound.json").write_text(SOUND)

    def run(words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", words], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Exit code 2 or 3, nothing on standard output, one complaint; its first line."""
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("phalanx: ") == 1
    return done.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('$phalanx check ""', "an INPUT is empty"),
        ("$phalanx check $(printf '{%0600d}' 1)", "to hand over the text itself, pipe it into `-`"),
        ("$phalanx check $(printf 'a%0600d' 1)", "File name too long"),
        ("$phalanx check sound.json --hosts 0", "must be at least 1, not 0"),
        ("$phalanx plan $(printf 'a%0600d' 1).py", "file name too long"),
        ("$phalanx plan $(printf 'a%0600d' 1)/x", "file name too long"),
        ("$phalanx generate --workers 2 --hosts '' --all", "no host is given"),
        ("$phalanx generate --workers 2 --hosts bob:pw1@h1,h2 --all", '"***@h1" is no host'),
        ('TF_CONFIG=\'{"password": "hunter2"}\' $phalanx plan --workers 2 sound.py', "TF_CONFIG is set"),
    ],
)
def test_one_clear_error(shell, tmp_path, line: str, says: str):
    (tmp_path / "sound.py").write_text("")
    told = complaint(shell(line))
    assert says in told
    assert "hunter2" not in told
    assert "pw1" not in told


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (SOUND.encode("utf-16"), "UTF-16"),
        (SOUND.encode("utf-32"), "UTF-32"),
        (SOUND.encode().replace(b"n1", b"n\0"), "is zero"),
        (SOUND.encode().replace(b"n1", b"n\xff"), "no UTF-8"),
    ],
)
def test_what_is_no_text_is_called_by_its_name(shell, tmp_path, data: bytes, says: str):
    (tmp_path / "x.json").write_bytes(data)
    assert says in complaint(shell("$phalanx check x.json"))


@pytest.mark.parametrize(
    "verb", ["check sound.json", "explain sound.json", "fix sound.json", "generate --workers 2 --all"]
)
@pytest.mark.parametrize(("where", "code"), [(">&-", 0), (">/dev/full", 3)])
def test_a_closed_or_full_standard_output_is_no_traceback(shell, verb: str, where: str, code: int):
    done = shell(f"$phalanx {verb} {where}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_file_name_cannot_write_to_the_terminal(shell, tmp_path):
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "a\x1b[31m\n.json").write_text(SOUND)
    (tmp_path / "nodes" / "b\x1b[31m\n.json").write_text(FAULTY)
    for words in ("check nodes", "explain nodes", "fix nodes/a* --in-place", "check nodes --format github"):
        done = shell(f"$phalanx {words}")
        assert "\x1b" not in done.stdout + done.stderr, words


def test_fix_in_place_leaves_all_files_alone_when_one_of_them_is_given_twice(shell, tmp_path):
    (tmp_path / "a.json").write_text(FAULTY)
    (tmp_path / "link.json").symlink_to("a.json")
    assert "is given twice" in complaint(shell("$phalanx fix a.json link.json --in-place"))
    assert (tmp_path / "a.json").read_text() == FAULTY
    assert not (tmp_path / "a.json.bak").exists()


def test_fix_in_place_leaves_a_pipe_a_pipe(shell, tmp_path):
    os.mkfifo(tmp_path / "p.json")
    (tmp_path / "faulty.txt").write_text(FAULTY)
    assert "is no file that could be rewritten" in complaint(
        shell("cat faulty.txt >p.json & $phalanx fix p.json --in-place")
    )
    assert (tmp_path / "p.json").is_fifo()


def test_fix_in_place_does_not_write_through_a_backup_that_points_nowhere(shell, tmp_path):
    (tmp_path / "a.json").write_text(FAULTY)
    (tmp_path / "b.json").write_text(FAULTY)
    (tmp_path / "b.json.bak").symlink_to("nowhere")
    assert "b.json.bak exists already" in complaint(shell("$phalanx fix a.json b.json --in-place"))
    assert (tmp_path / "a.json").read_text() == FAULTY


def test_fix_keeps_the_last_newline(shell, tmp_path):
    (tmp_path / "a.json").write_text(FAULTY)
    assert shell("$phalanx fix a.json --in-place").returncode == 0
    assert (tmp_path / "a.json").read_text() == SOUND


def test_generate_keeps_the_keys_beside_the_cluster(shell, tmp_path):
    (tmp_path / "a.json").write_text(SOUND.replace('"task"', '"rpc_layer": "grpc", "task"'))
    (line, _) = shell("$phalanx generate a.json --all").stdout.splitlines()
    assert json.loads(line.partition("\t")[2])["rpc_layer"] == "grpc"


def test_an_error_never_sends_an_escape_to_the_terminal_and_a_long_name_is_no_traceback(tmp_path):
    (tmp_path / "train.py").write_text("")
    for python in ("\x1b[31mred\x07", "x" * 600):
        done = subprocess.run(
            [sys.executable, "-m", "phalanx", "plan", "--python", f"./{python}", "train.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert all(c.isprintable() or c == "\n" for c in done.stderr)

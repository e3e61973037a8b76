"""The Makefile as a person on a fresh machine meets it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: What `make` and .ci/venv themselves call.
TOOLS = ("bash", "sh", "make", "env", "sed", "expand", "touch")

pytestmark = pytest.mark.real


def make(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHON", "MAKEFLAGS", "MAKELEVEL"}}
    return subprocess.run(
        ["make", *words],
        cwd=ROOT,
        env=env | ({"PATH": path} if path else {}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with make and its tools, and no Python."""
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(shutil.which(tool))
    return tmp_path


def ask_for_environment(tmp_path: Path, bare_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / ".ci/venv", tmp_path / "environment"],
        env={"PATH": str(bare_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write_python(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def test_make_alone_lists_every_target():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    shown = make().stdout
    assert {target for target in targets if f"  make {target} " not in shown} == set()


def test_without_python_it_says_what_it_tried_and_what_to_do(tmp_path, bare_path):
    done = ask_for_environment(tmp_path, bare_path)
    assert done.returncode == 1
    assert "TensorFlow 2.21 needs Python 3.11, 3.12 or 3.13" in done.stderr
    assert "python3.12: not found" in done.stderr
    assert "make PYTHON=/path/to/python3.12" in done.stderr
    assert not (tmp_path / "environment").exists()


def test_each_python_that_will_not_do_is_named_with_its_reason(tmp_path, bare_path):
    write_python(bare_path, "python3.12", "exit 127  # a shim whose version is not installed")
    write_python(bare_path, "python3.11", '[ -z "$2" ] || { echo "it cannot make environments"; exit 1; }')
    write_python(bare_path, "python3", '[ -z "$2" ] || { echo "it is Python 3.9"; exit 1; }')
    done = ask_for_environment(tmp_path, bare_path)
    assert done.returncode == 1
    assert "python3.13: not found" in done.stderr
    assert "python3.12: does not start" in done.stderr
    assert "python3.11: it cannot make environments" in done.stderr
    assert "python3: it is Python 3.9" in done.stderr

"""A module is found where `python -m` finds it, and read with the packages around it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.agent.preflight.imports import read
from phalanx.agent.preflight.start import start_of_module, start_of_script

#: Each layout: files, and the module to start.
LAYOUTS = {
    "a module of its own": (("train.py",), "train"),
    "a module of a package": (("pkg/__init__.py", "pkg/train.py"), "pkg.train"),
    "a package": (("pkg/__init__.py", "pkg/__main__.py"), "pkg"),
    "a package in a package": (("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/__main__.py"), "pkg.sub"),
    "a folder without __init__": (("pkg/train.py",), "pkg.train"),
    "a folder that is no package": (("pkg/__main__.py",), "pkg"),
    "a module beside a folder of its name": (("pkg.py", "pkg/__main__.py"), "pkg"),
    "a package beside a module of its name": (("pkg.py", "pkg/__init__.py", "pkg/__main__.py"), "pkg"),
    "in PYTHONPATH": (("lib/pkg/__init__.py", "lib/pkg/train.py"), "pkg.train"),
    "here first": (("train.py", "lib/train.py"), "train"),
    "a whole package goes before a folder": (("pkg/train.py", "lib/pkg/__init__.py", "lib/pkg/train.py"), "pkg.train"),
    "no main": (("pkg/__init__.py",), "pkg"),
    "nowhere": (("train.py",), "train.py"),
    "of Python itself": (("train.py",), "nothing_of_that_name"),
}


@pytest.mark.real
@pytest.mark.parametrize("safe", ["", "1"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_module_is_found_where_python_finds_it(tmp_path, name, safe):
    files, module = LAYOUTS[name]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("print(__file__, __package__, sep='|')\n" if "__init__" not in file else "")
    environ = {"PYTHONPATH": "lib", "PYTHONSAFEPATH": safe, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-m", module], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    start = start_of_module(module, cwd=tmp_path, environ=environ)
    if done.returncode:
        assert start is None, done.stderr
        return
    assert start is not None
    file, package = done.stdout.strip().split("|")
    assert (start.file, start.package) == (tmp_path / file, package)


def program(folder: Path) -> Path:
    for file, text in {
        "pkg/__init__.py": "import early",
        "pkg/train.py": "from . import data\nfrom .deep.model import make\nfrom ..outside import no\nimport numpy\n",
        "pkg/data.py": "from .common import path",
        "pkg/common.py": "import json\nif path:\n    from . import late\n",
        "pkg/late.py": "",
        "pkg/deep/__init__.py": "from .. import common",
        "pkg/deep/model.py": "import keras\nfrom .absent import thing\n",
        "early.py": "",
        "lone.py": "",
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder


def test_its_packages_and_their_relative_imports_are_read_with_it(tmp_path):
    start = start_of_module("pkg.train", cwd=program(tmp_path), environ={})
    assert start is not None
    reading = read(start)
    names = {file.name: file.package for file in reading.files}
    assert names == {
        "": "pkg",
        "pkg": "pkg",
        "early": "",
        "pkg.data": "pkg",
        "pkg.common": "pkg",
        "pkg.deep": "pkg.deep",
        "pkg.deep.model": "pkg.deep",
    }
    assert [file.name for file in reading.perhaps] == ["pkg.late"]
    assert set(reading.sure) == {"numpy", "json", "keras"}, "what is the package's own is asked of nobody"


def test_the_digest_does_not_tell_where_the_folder_lies(tmp_path):
    digests = set()
    for place in ("a", "b/c"):
        start = start_of_module("pkg.train", cwd=program(tmp_path / place), environ={})
        assert start is not None
        digests.add(read(start).digest)
    assert len(digests) == 1


def test_relative_imports_of_a_package_beside_a_script_are_followed_too(tmp_path):
    program(tmp_path)
    (tmp_path / "train.py").write_text("import pkg.data\nfrom . import nothing\n")
    names = [file.name for file in read(start_of_script(tmp_path / "train.py")).files]
    assert names == ["", "pkg", "pkg.data", "early", "pkg.common"]

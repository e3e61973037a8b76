"""A program that is started by `python -m` is judged as a script is."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.agent.preflight.start import start_of_module
from phalanx.script.check import Around, check
from phalanx.script.strategy import strategy_of
from script.scripts import KERAS_3

FILES = {
    "pkg/__init__.py": "",
    "pkg/sub/__init__.py": "",
    "pkg/sub/train.py": "from ..common import make\nfrom . import data\nstrategy = make()\ndata.load()\n",
    "pkg/sub/data.py": "def load(): pass\n",
    "pkg/common.py": "import tensorflow as tf\n\ndef make():\n    return tf.distribute.MultiWorkerMirroredStrategy()\n",
}


def found(folder: Path, module: str = "pkg.sub.train", **changed: str) -> list[tuple[str, str, int]]:
    for name, text in {**FILES, **changed}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    start = start_of_module(module, cwd=folder, environ={})
    assert start is not None
    told = check(start, Around(interpreter=KERAS_3), shown=str(start.file.relative_to(folder)))
    return [(one.id, one.path, one.place.line) for one in told]


def test_a_module_that_works_is_fine(tmp_path):
    assert found(tmp_path) == []


@pytest.mark.parametrize("place", ["pkg/common.py", "pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/data.py"])
def test_what_its_packages_do_first_comes_before_the_strategy(tmp_path, place):
    text = "import tensorflow as tf\ntf.constant(1)\n" + FILES[place]
    assert found(tmp_path, **{place: text}) == [("context-before-strategy", place, 2)]


def test_a_package_is_read_by_its_main(tmp_path):
    main = "import tensorflow as tf\ntf.constant(1)\nfrom .common import make\nmake()\n"
    assert found(tmp_path, "pkg", **{"pkg/__main__.py": main}) == [("context-before-strategy", "pkg/__main__.py", 2)]


def test_a_program_whose_relative_imports_are_all_read_is_known_to_build_no_strategy(tmp_path):
    plain = {"pkg/common.py": "def make(): return None\n"}
    fit = "from ..common import make\nfrom . import data\nimport keras\nm = keras.Sequential()\nm.compile()\nm.fit(0)\n"
    seen = [rule for rule, *_ in found(tmp_path, **plain, **{"pkg/sub/train.py": fit})]
    unseen = [rule for rule, *_ in found(tmp_path, **plain, **{"pkg/sub/train.py": fit + "from .built import fast\n"})]
    assert ("no-strategy" in seen, "no-strategy" in unseen) == (True, False)


def test_the_strategy_is_named_by_a_module_of_its_package(tmp_path):
    found(tmp_path)
    start = start_of_module("pkg.sub.train", cwd=tmp_path, environ={})
    assert start is not None
    assert strategy_of(start) == ("mwms", "MultiWorkerMirroredStrategy")
    assert strategy_of(tmp_path / "pkg/sub/train.py") is None, "as a script it has no package"

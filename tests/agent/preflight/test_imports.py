"""What a script is sure to import, and what it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from phalanx.agent.preflight.imports import read_script, read_text


def reading(folder: Path, source: str, **beside: str):
    for name, text in beside.items():
        (folder / f"{name}.py").write_text(text)
    script = folder / "train.py"
    script.write_text(source)
    return read_script(script)


@pytest.mark.parametrize(
    "source",
    [
        "import pandas",
        "from pandas.io import sql",
        "class A:\n    import pandas",
        "with open('x'):\n    import pandas",
        "if __name__ == '__main__':\n    import pandas",
        "try:\n    import pandas\nfinally:\n    pass",
        "try:\n    import pandas\nexcept ValueError:\n    pass",
    ],
)
def test_sure(source):
    assert set(read_text(source).sure) == {"pandas"}


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import pandas",
        "if x:\n    import pandas",
        "for x in y:\n    import pandas",
        "import sys\nsys.path.insert(0, 'lib')\nimport pandas",
    ],
)
def test_maybe(source):
    assert "pandas" in read_text(source).maybe
    assert "pandas" not in read_text(source).sure


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import pandas\nexcept ImportError:\n    pandas = None",
        "try:\n    import pandas\nexcept (ModuleNotFoundError, OSError):\n    pandas = None",
        "try:\n    import pandas\nexcept:\n    pandas = None",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import pandas",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "def broken(:\n    import pandas",
    ],
)
def test_who_does_without_it_is_not_told(source):
    found = read_text(source)
    assert "pandas" not in {**found.sure, **found.maybe}


def test_modules_beside_the_script_are_followed_and_not_asked_for(tmp_path):
    found = reading(tmp_path, "import model", model="import pandas, layers", layers="def f():\n    import h5py")
    assert found.sure == {"pandas": "model.py"}
    assert found.maybe == {"h5py": "layers.py"}


def test_a_main_guard_beside_the_script_is_never_reached(tmp_path):
    found = reading(tmp_path, "import model", model="if __name__ == '__main__':\n    import pandas")
    assert found.sure == {}


def test_the_digest_is_that_of_the_script_and_of_what_lies_beside_it(tmp_path):
    """R63: one of two machines runs an older helper."""
    before = reading(tmp_path, "import model", model="x = 1").digest
    assert reading(tmp_path, "import model", model="x = 1").digest == before
    assert reading(tmp_path, "import model", model="x = 2").digest != before


@pytest.mark.parametrize(
    ("source", "sure"),
    [
        ("import keras\nkeras.callbacks.TensorBoard('logs')", True),
        ("def main():\n    fit(callbacks=[TensorBoard()])\nmain()", True),
        ("if args.tb:\n    cb.append(TensorBoard())", False),
        ("cb = [TensorBoard()] if args.tb else []", False),
        ("import keras\nprint(keras.callbacks.TensorBoard)", None),
    ],
)
def test_a_tensorboard_callback_is_seen(source, sure):
    assert read_text(source).tensorboard is sure

"""What a look puts into the user's interpreter, tried on a Keras that is made up."""

from __future__ import annotations

import subprocess
import sys

from phalanx.sizing.inside.sitecustomize import ANSWER
from phalanx.sizing.look import _environ

MODEL = """
class Model:
    def save(self, path):
        print("saved")
"""
SCRIPT = """
import importlib.util, os, sys
importlib.util.find_spec("keras.src.models.model")
from keras.src.models.model import Model
print(Model().save("somewhere"), [name for name in sys.modules if "phalanx" in name], "PHALANX_ADVISE" in os.environ)
"""


def test_a_module_that_is_asked_for_long_before_it_is_loaded_is_heard_and_nothing_of_ours_is_left(tmp_path):
    package = tmp_path / "keras" / "src" / "models"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").touch()  # else the real Keras goes before it
    (package / "model.py").write_text(MODEL)
    (tmp_path / "sitecustomize.py").write_text("print('their own')")
    env = _environ(tmp_path, {"PYTHONPATH": str(tmp_path)}, tmp_path / "answer.json", "")
    assert env[ANSWER]
    ran = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == ["their own", "somewhere [] False", ""]

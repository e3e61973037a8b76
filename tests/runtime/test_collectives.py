"""Where collectives are not measured, decided without TensorFlow."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from phalanx.runtime.boot import phalanx_collectives


@pytest.mark.parametrize(
    ("texts", "place", "expected"),
    [
        (("import net", "LAYERS = 3"), "net.py", False),
        (("tf.config.experimental.enable_op_determinism()", ""), "net.py", True),
        (("import net", "from x import enable_op_determinism as on"), "net.py", True),
        (("import net", "enable_op_determinism"), "venv/site-packages/net.py", False),
    ],
)
def test_a_program_that_speaks_of_op_determinism_is_known_before_it_enables_it(
    tmp_path, monkeypatch, texts, place, expected
):
    main, other = types.ModuleType("__main__"), types.ModuleType("net")
    main.__file__, other.__file__ = str(tmp_path / "train.py"), str(tmp_path / place)
    Path(other.__file__).parent.mkdir(parents=True, exist_ok=True)
    Path(main.__file__).write_text(texts[0])
    Path(other.__file__).write_text(texts[1])
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setitem(sys.modules, "net", other)
    assert phalanx_collectives._speaks_of_determinism() is expected

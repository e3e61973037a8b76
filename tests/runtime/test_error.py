"""The place of an exception is a line of the program, whoever called what between it and the fault."""

from __future__ import annotations

import pytest

from phalanx.runtime.boot import phalanx_error


def raised(*files: str) -> BaseException:
    """An exception that has come through these files, the newest last."""
    names: dict[str, object] = {}
    text = "def call(*rest):\n    if not rest:\n        raise ValueError('wrong')\n    return rest[0](*rest[1:])\n"
    calls = []
    for file in files:
        exec(compile(text, file, "exec"), names)  # noqa: S102 - a made-up file
        calls.append(names["call"])
    with pytest.raises(ValueError, match="wrong") as found:
        calls[0](*calls[1:])
    found.value.__traceback__ = found.value.__traceback__.tb_next  # without this test's own line
    return found.value


OURS = phalanx_error.__file__.replace("phalanx_error", "phalanx_keras3")
LIBRARY = "/v/lib/python3.11/site-packages/keras/src/trainer.py"


@pytest.mark.parametrize(
    "files",
    [
        ("/srv/train.py",),
        ("/srv/train.py", LIBRARY),
        ("/srv/train.py", LIBRARY, OURS, LIBRARY),
        ("/srv/main.py", "/srv/train.py", OURS),
    ],
)
def test_a_function_of_phalanx_is_no_place_of_the_programs(files):
    assert phalanx_error._where(raised(*files)) == "/srv/train.py:" + ("3" if len(files) == 1 else "4") + " in call"

"""Which commands can be made to stall."""

from __future__ import annotations

import pytest

from phalanx.chaos.stall import deaf


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("python -S train.py", True),
        ("/usr/bin/python3.12 -uI train.py", True),
        ("python -W error -E train.py", True),
        ("python train.py -S", False),
        ("python -u train.py", False),
        ("python -W IES train.py", False),
        ("python -WIES train.py", False),
        ("python -X dev -m train -I", False),
        ("python -c I", False),
        ("python", False),
        ("bash -E train.sh", False),
    ],
)
def test_a_python_whose_flags_keep_pythonpath_away_is_deaf(command, found):
    assert deaf(command.split()) is found

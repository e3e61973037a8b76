"""What somebody probably meant, and what nobody did."""

from __future__ import annotations

import pytest

from phalanx.job.nearest import nearest, nearest_file


@pytest.mark.parametrize(
    ("name", "near"),
    [("trian.py", "train.py"), ("TRAIN.py", "train.py"), ("nope.py", None), ("x.py", None), ("job.yml", "job.yaml")],
)
def test_a_file_is_near_by_its_name_and_not_by_its_ending(name, near):
    assert nearest_file(name, ["ps.py", "train.py", "job.yaml", "open_images.py"]) == near


def test_a_word_is_near_whatever_its_case():
    assert nearest("MWSM", ["ps", "mwms"]) == "mwms"
    assert nearest("mirrored", ["ps", "mwms"]) is None

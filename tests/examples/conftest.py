from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from byhand import MOVIELENS
from launched import Place, place


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    for made in place(tmp_path):
        made.environ["PYTHONPATH"] += f":{MOVIELENS}"
        yield made

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import Place, place


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    yield from place(tmp_path)

"""What the tests of the verbs have in common."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from phalanx.cli import main


@pytest.fixture
def phalanx(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line; returns exit code, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["phalanx", *words])
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call

"""What every test stands on: an environment that is nobody's, golden files, a home of one's own."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ["beds.kubernetes.fixtures"]

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden from what the code now says")


def pytest_configure() -> None:
    """Forget the developer's shell before anything is imported: PYTHONUNBUFFERED alone hides lost output (facts 13)."""
    for name in list(os.environ):
        if name in {"PYTHONUNBUFFERED", "TF_CONFIG"} or (
            name.startswith("PHALANX_") and not name.startswith("PHALANX_BED_")
        ):
            del os.environ[name]
    # A shell's background job ignores SIGINT, and so would everything that the tests start.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    # Python 3.11 makes a loop for whoever asks the first time, and pytest-asyncio asks: it would never be closed.
    asyncio.set_event_loop(None)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text is what tests/golden/<name> holds; `--update-golden` makes it so."""
    update: bool = request.config.getoption("--update-golden")

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: read the text, then run pytest with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home: HOME and the XDG folders of state, cache and configuration point into it."""
    folder = tmp_path / "home"
    for name, below in {
        "HOME": "",
        "XDG_STATE_HOME": ".local/state",
        "XDG_CACHE_HOME": ".cache",
        "XDG_CONFIG_HOME": ".config",
    }.items():
        (folder / below).mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv(name, str(folder / below))
    return folder

"""Why an agent has ended is known to its launcher, whatever its disk has taken of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.engine.local import LocalRun


def ended(folder: Path, program: str, log: bytes = b"") -> str:
    """What a launcher says of a host whose agent is this program."""
    (folder / "agents").mkdir()
    (folder / "agents" / "0.log").write_bytes(log)
    read, write = os.pipe()
    agent = subprocess.Popen([sys.executable, "-S", "-c", program], stdout=write)
    os.close(write)
    agent.wait(60)
    run = LocalRun(lead="127.0.0.1:1", folder=folder, agents=[agent], words=[read])
    said = run.broken()
    run.kill()
    run.kill()
    assert (run.broken(), run.words) == (said, [])
    assert said is not None
    return said


@pytest.mark.real
def test_its_last_word_comes_by_a_pipe_where_its_log_took_nothing(tmp_path):
    said = ended(tmp_path, "print('its lead is gone'); raise SystemExit(3)")
    assert said == "host 0: its agent has ended with exit code 3: its lead is gone"


@pytest.mark.real
def test_of_one_that_was_killed_the_log_tells(tmp_path):
    said = ended(tmp_path, "import os; os.kill(os.getpid(), 9)", log=b"first\nthe newest\n\n")
    assert said == "host 0: its agent has ended with signal 9: the newest"


@pytest.mark.real
def test_one_that_said_nothing_has_its_code_alone(tmp_path):
    assert ended(tmp_path, "raise SystemExit(3)") == "host 0: its agent has ended with exit code 3"

"""The parameter-server example with real TensorFlow: what the how-to shows is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "parameter_server" / "train.py"


def test_the_how_to_shows_the_whole_example():
    page = (ROOT / "docs" / "howto" / "parameter-server.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert shown == EXAMPLE.read_text(encoding="utf-8")


@pytest.mark.real
@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_a_chief_a_worker_and_a_ps_fit_a_line_and_are_ended_when_the_chief_is_done(here):
    done = here.call("run", "--workers", 1, "--ps", 1, EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "y = 3.00x + 2.00" in here.said("chief:0")
    report = here.report()
    assert report["result"] == "succeeded"
    assert [task["task"] for task in report["tasks"]] == ["chief:0", "worker:0", "ps:0"]
    assert report["victims"] == []
    here.gone(within=5)

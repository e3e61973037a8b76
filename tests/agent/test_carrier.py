"""What a lead died of, as its carrier finds it in the log that both write into."""

from __future__ import annotations

import os

import pytest

from phalanx.agent.carrier import said_since

OWN = "21:20:51 the lead has ended by SIGKILL; the one of epoch 6 takes over\n"


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("", ""),
        (OWN, ""),
        (f"Fatal Python error: Segmentation fault\n{OWN}\n", "Fatal Python error: Segmentation fault"),
    ],
    ids=["nothing", "only the agent's word", "the lead's, and then the agent's"],
)
def test_a_lead_died_of_its_own_last_line_and_not_of_the_agents(tmp_path, log, found):
    path = tmp_path / "0.log"
    path.write_text("before\n" + log)
    fd = os.open(path, os.O_RDONLY)
    assert said_since(len("before\n"), fd) == found
    os.close(fd)

"""What the tests of a lost lead have in common: a patient script, who leads, and whether the records are whole."""

from __future__ import annotations

import subprocess

from launched import Place, processes_with, wait_for

#: Runs until it finds the file `end`; fails once where there is a file `fail`.
PATIENT = """
import os, sys, time
from pathlib import Path
print("up", os.environ["PHALANX_GENERATION"], flush=True)
while not Path("end").exists():
    if os.environ["PHALANX_TASK"] == "worker:1" and os.environ["PHALANX_GENERATION"] == "1" and Path("fail").exists():
        sys.exit("bad luck")
    time.sleep(0.02)
"""


def lead_of(here: Place) -> int:
    """The pid of the lead that rules now."""

    def found() -> list[int]:
        return [pid for pid, line in processes_with(str(here.folder.parent)).items() if line.endswith(" lead 3 4 ")]

    return wait_for(found, "a lead")[0]


def ends_well(here: Place, launcher: subprocess.Popen[str]) -> tuple[str, str]:
    """Lets the patient end, and its run with it; what the launcher said."""
    (here.folder / "end").touch()
    out, err = launcher.communicate(timeout=60)
    assert launcher.returncode == 0, out + err
    return out, err


def whole(here: Place) -> None:
    seqs = [event["seq"] for event in here.events()]
    assert seqs == list(range(1, len(seqs) + 1))
    starts = [(e["task"], e["generation"]) for e in here.events("task-started")]
    assert len(starts) == len(set(starts))

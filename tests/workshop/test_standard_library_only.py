"""From `decide` down, phalanx needs Python and nothing else: proved by an interpreter that sees nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
#: The layers from `decide` down, and what knows nobody (docs/design/architecture.md, section 5).
PARTS = (
    "decide",
    "states",
    "events",
    "event",
    "hostevents",
    "hoststate",
    "plan",
    "tfconfig",
    "names",
    "hostlist",
    "process",
    "apart",
    "patient",
    "runtime",
    "redact",
    "metrics",
    "fingerprint",
    "errors",
)

#: A task's whole program, which is TensorFlow's: nothing of ours imports it.
PROGRAM = SOURCE / "phalanx" / "runtime" / "server.py"

IMPORT_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    importlib.import_module(name)
print(sum(name.split(".")[0] == "phalanx" for name in sys.modules))
"""


def modules(part: str) -> list[str]:
    """The dotted names of a part: a module, or a package with everything in it. Empty while it is not there."""
    home = SOURCE / "phalanx" / part
    files = [home.with_suffix(".py")] if home.with_suffix(".py").is_file() else sorted(home.rglob("*.py"))
    return [
        ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for file in files
        if file != PROGRAM
    ]


@pytest.mark.parametrize("part", [part for part in PARTS if modules(part)])
def test_it_imports_without_site_packages(part):
    names = modules(part)
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", IMPORT_ALL, str(SOURCE), *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(names)

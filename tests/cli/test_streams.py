"""Standard streams that are closed, full or without a reader: no traceback, and the exit code that is true."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import Place, place

pytestmark = pytest.mark.real

TALKER = """
import sys, time
print("first", flush=True)
time.sleep(1)
for n in range(2000):
    print("line", n, "x" * 100)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    yield from place(tmp_path)


def shell(here: Place, line: str) -> subprocess.CompletedProcess[str]:
    """`line` in a shell, where `$phalanx` is our command."""
    environ = here.environ | {"phalanx": f"{sys.executable} -m phalanx"}
    return subprocess.run(
        ["bash", "-c", line], cwd=here.folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(("how", "code"), [("", 0), ("", 1), ("--json", 0), ("--quiet", 1)])
def test_a_run_goes_on_without_its_reader_and_exits_as_it_ended(here: Place, how: str, code: int):
    here.script(TALKER)
    reader = "true" if how == "--quiet" else "head -n 1 >/dev/null"
    done = shell(here, f"set -o pipefail; $phalanx run --workers 2 {how} train.py {code} | {reader}")
    assert done.returncode == code
    assert here.report()["exit_code"] == code
    said = [line for line in done.stderr.splitlines() if "standard output" in line]
    assert len(said) == 1
    assert "the run goes on; phalanx logs -f " in said[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("redirected", [">&-", ">/dev/full", "2>&-", "2>/dev/full", "<&- >&- 2>&-"])
def test_a_run_is_what_it_is_whatever_takes_its_output(here: Place, redirected: str):
    here.script("raise SystemExit(1)\n")
    done = shell(here, f"$phalanx run --workers 2 train.py {redirected}")
    assert done.returncode == 1, done.stderr
    assert here.report()["culprit"] is not None
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_no_socket_gets_the_number_of_a_stream_that_was_closed(here: Place):
    here.script("import os, sys\nprint(sorted(map(int, os.listdir('/proc/self/fd')))[:3])\n")
    done = shell(here, "$phalanx run --workers 1 train.py <&- >&- 2>&-")
    assert done.returncode == 0
    assert here.said("worker:0") == "[0, 1, 2]\n"
    code = "from phalanx.cli.streams import settle; settle(); import os; os._exit(os.open('/dev/null', 0))"
    assert shell(here, f'{sys.executable} -c "{code}" <&- >&- 2>&-').returncode == 3


def test_verbs_end_quietly_without_a_reader_and_loudly_on_a_full_disk(here: Place):
    here.script(TALKER)
    assert here.call("run", "--workers", 1, "train.py", 0).returncode == 0
    for verb in ("logs", "logs -f", "logs --raw", "logs --merged", "events", "report", "ps", "attach --json", "--help"):
        done = shell(here, f"$phalanx {verb} | true; exit ${{PIPESTATUS[0]}}")
        assert done.stderr == ""
        assert done.returncode in (0, 141), verb
        done = shell(here, f"$phalanx {verb} >/dev/full")
        assert done.returncode == 3, verb
        assert done.stderr == "phalanx: standard output cannot be written: No space left on device\n"
        assert shell(here, f"$phalanx {verb} >&-").stderr == ""
    assert shell(here, "$phalanx logs | head -n 1; exit ${PIPESTATUS[0]}").returncode == 0


def test_a_terminal_that_lacks_a_letter_is_no_reason_to_fail(here: Place):
    here.script("import sys\nsys.stdout.buffer.write('caf\\xe9 \\u2026\\n'.encode())\n")
    done = shell(here, "PYTHONIOENCODING=ascii $phalanx run --workers 1 train.py")
    assert done.returncode == 0, done.stderr
    assert "caf\\xe9 \\u2026" in done.stdout


def test_a_detached_run_says_how_to_go_on(here: Place):
    here.script("import time; time.sleep(2)\n")
    done = here.call("run", "--workers", 1, "--detach", "train.py")
    name = done.stdout.strip()
    assert done.returncode == 0
    assert f"phalanx: {name} goes on; phalanx attach {name} follows it, phalanx stop {name} ends it\n" in done.stderr
    assert here.report()["result"] == "succeeded"


def test_debug_adds_the_traceback_and_keeps_the_exit_code(here: Place):
    done = here.call("--debug", "report", "nowhere")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "phalanx: no run is called 'nowhere'" in done.stderr


def test_a_mistyped_verb_gets_its_neighbour_and_no_silly_hint(here: Place):
    done = here.call("runn")
    assert (done.returncode, done.stderr) == (2, 'phalanx: Unknown command "runn". Did you mean "run"?\n')
    assert here.call("ps", "--al").stderr.splitlines()[-1] == "  phalanx ps --help shows what it takes"

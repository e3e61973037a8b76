"""Words on standard error never fail and never wait for their file; the last one is known without it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SAYS = "import sys; from phalanx.patient import last_word_to, patient_stderr; last_word_to(1); patient_stderr({how}); "


def program(how: str, text: str, **more) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", SAYS.format(how=how) + text],
        check=False,
        stdout=subprocess.PIPE,
        timeout=60,
        **more,
    )


@pytest.mark.parametrize("how", ["", "apart=True"])
@pytest.mark.real
def test_the_last_word_is_known_where_the_disk_takes_none(how):
    with Path("/dev/full").open("wb") as full:
        done = program(how, "print('first', file=sys.stderr); print('the reason', file=sys.stderr)", stderr=full)
    assert (done.returncode, done.stdout) == (0, b"the reason\n")


@pytest.mark.real
def test_the_last_word_of_one_that_breaks_is_its_error():
    with Path("/dev/full").open("wb") as full:
        done = program("apart=True", "raise RuntimeError('out of luck')", stderr=full)
    assert (done.returncode, done.stdout) == (1, b"RuntimeError: out of luck\n")


@pytest.mark.real
def test_a_thread_writes_all_that_is_said_in_order_before_the_process_ends():
    done = program("apart=True", "[print(n, file=sys.stderr) for n in range(1000)]", stderr=subprocess.PIPE)
    assert done.stderr.split() == [b"%d" % number for number in range(1000)]


@pytest.mark.real
def test_nobody_waits_for_a_file_that_hangs():
    read, write = os.pipe()  # of which nobody reads
    begin = time.monotonic()
    try:
        done = program(
            "apart=True", "[print('x' * 1000, file=sys.stderr) for _ in range(5000)]; print('on')", stderr=write
        )
    finally:
        os.close(read)
        os.close(write)
    assert b"on\n" in done.stdout
    assert time.monotonic() - begin < 20


@pytest.mark.real
def test_where_no_pipe_listens_the_last_word_is_said_once(tmp_path):
    path = tmp_path / "log"
    with path.open("wb") as log:
        subprocess.run(
            [sys.executable, "-c", SAYS.format(how="") + "print('bye', file=sys.stderr)"],
            check=True,
            stdout=log,
            stderr=log,
        )
    assert path.read_bytes() == b"bye\n"

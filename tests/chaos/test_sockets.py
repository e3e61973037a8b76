"""Faults of a link, between two real processes that talk over TCP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from launched import wait_for
from phalanx.chaos import sockets
from phalanx.chaos.fault import Fault
from phalanx.chaos.whereabouts import CannotError, Whereabouts
from phalanx.names import TaskId
from phalanx.process import process

pytestmark = pytest.mark.real

#: The one that listens echoes; the other says so many milliseconds an answer took, and what went wrong.
ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    print("up", flush=True)
    peer, _ = listener.accept()
    try:
        while data := peer.recv(1 << 16):
            peer.sendall(data)
    except OSError as wrong:
        print("echo", wrong.strerror, flush=True)
    sys.stdin.read()
"""
ASK = """
import socket, sys, time
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    try:
        while True:
            peer.sendall(b"x" * 4096)
            left = 4096
            while left:
                left -= len(peer.recv(left))
            print("answer", flush=True)
            time.sleep(0.01)
    except OSError as wrong:
        print("ask", wrong.strerror, flush=True)
    sys.stdin.read()
"""


class Pair(Whereabouts):
    """Two processes in the place of two tasks."""

    def __init__(self, pids):
        object.__setattr__(self, "_pids", pids)

    def task(self, task: TaskId):
        return process(self._pids[task.index])


Pair.__slots__ = ("_pids",)


@pytest.fixture
def talk(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    logs, started = [], []
    try:
        for number, text in enumerate((ECHO, ASK)):
            log = tmp_path / str(number)
            with log.open("w") as out:
                started.append(
                    subprocess.Popen([sys.executable, "-c", text, str(port)], stdin=subprocess.PIPE, stdout=out)
                )
            logs.append(log)
            wait_for(log.read_text, "its first line")
        yield Pair([each.pid for each in started]), logs, port
    finally:
        for each in started:
            each.kill()
            each.communicate()


def answers(log: Path) -> int:
    return log.read_text().count("answer")


def fault(kind: str) -> Fault:
    return Fault(kind=kind, target="worker:0-worker:1")


def test_a_half_open_link_carries_nothing_and_goes_on_when_it_is_lifted(talk):
    pair, (_, log), _ = talk
    lift = sockets.half_open(fault("half-open"), pair)
    time.sleep(0.1)
    before = answers(log)
    time.sleep(0.4)
    assert answers(log) <= before + 1
    lift()
    wait_for(lambda: answers(log) > before + 5, "answers after the lift")
    assert "ask" not in log.read_text()


def test_a_slow_link_is_slow_and_fast_again_when_it_is_lifted(talk):
    pair, (_, log), _ = talk
    wait_for(lambda: answers(log) > 20, "more segments than the kernel lets pass at the start of a connection")
    lift = sockets.slow(fault("slow"), pair)
    began, before = time.monotonic(), answers(log)
    time.sleep(1.0)
    rate = (answers(log) - before) * 4096 / (time.monotonic() - began)
    lift()
    assert rate < 1.2 * sockets.SLOW


def test_a_refused_link_is_reset_and_nobody_gets_through_again(talk):
    pair, (echo, log), port = talk
    sockets.refuse(fault("refuse"), pair)
    wait_for(lambda: "ask" in log.read_text(), "the end of the connection")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    assert "up" in echo.read_text()


def test_two_that_are_not_connected_cannot_be_parted(talk):
    pair, _, _ = talk
    object.__setattr__(pair, "_pids", [pair._pids[0], os.getpid()])
    with pytest.raises(CannotError, match="no connection to each other"):
        sockets.half_open(fault("half-open"), pair)

"""Signs of life from outside a process: real processes, real sockets on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from launched import wait_for
from phalanx.agent.getstatus import answers
from phalanx.agent.peers import PeerTable
from phalanx.agent.vitals import of_task, process, sockets, waits_inside

#: Waits as TensorFlow's main thread does, sleeps, reads, or computes.
DOING = {
    "waits": "import threading; threading.Semaphore(0).acquire()",
    "sleeps": "import time; time.sleep(60)",
    "reads": "import os; r, w = os.pipe(); os.read(r, 1)",
    "computes": "while True: pass",
}


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    children: list[subprocess.Popen[bytes]] = []
    yield children
    for child in children:
        child.kill()
        child.communicate()


def python(started: list[subprocess.Popen[bytes]], code: str) -> int:
    child = subprocess.Popen([sys.executable, "-S", "-E", "-c", f"print(flush=True)\n{code}"], stdout=subprocess.PIPE)
    started.append(child)
    assert child.stdout is not None
    child.stdout.readline()
    return child.pid


@pytest.mark.parametrize(("what", "waits"), [("waits", True), ("sleeps", False), ("reads", False), ("computes", False)])
def test_who_waits_for_its_own_threads_is_told_from_who_does_not(started, what, waits):
    pid = python(started, DOING[what])
    if waits_inside(os.getpid()) is None:
        pytest.skip("this kernel does not say where a thread waits")
    wait_for(lambda: waits_inside(pid) is waits, what, within=5)


def test_a_stopped_process_is_in_state_t_and_a_dead_one_is_none(started):
    pid = python(started, DOING["sleeps"])
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: (found := process(pid)) is not None and found.state == "T", "state T", within=5)
    started[0].kill()
    started[0].wait()
    assert process(pid) is None
    assert sockets(pid) == set()


def test_cpu_time_grows_while_it_computes(started):
    pid = python(started, DOING["computes"])
    before = process(pid)
    assert before is not None
    wait_for(
        lambda: (now := process(pid)) is not None and now.cpu > before.cpu and now.ran > before.ran, "CPU", within=5
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_bytes_between_two_ports_are_those_that_were_sent(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    port = server.getsockname()[1]
    table = PeerTable()
    with server, socket.create_connection((host, port)) as client, server.accept()[0] as accepted:
        start = {one.inode: one for one in table.connections([port])}
        client.sendall(b"x" * 5000)
        accepted.recv(5000, socket.MSG_WAITALL)
        accepted.sendall(b"y" * 77)
        client.recv(77, socket.MSG_WAITALL)
        mine = os.fstat(accepted.fileno()).st_ino

        def counted() -> bool:
            now = {one.inode: one for one in table.connections([port])}
            return (now[mine].received - start[mine].received, now[mine].sent - start[mine].sent) == (5000, 77)

        wait_for(counted, "5000 in, 77 out", within=5)
        found = table.connections([port])
        assert {one.inode for one in of_task(found, port=port, inodes=set())} == {mine}
        other = os.fstat(client.fileno()).st_ino
        assert other in sockets(os.getpid())
        assert {one.inode for one in of_task(found, port=1, inodes={other})} == {other}
        assert table.connections([1]) == []
    table.close()


def serve_one(server: socket.socket, *, speaks: bool) -> None:
    """A gRPC server of one answer: or one that accepts and says nothing."""
    sock, _ = server.accept()
    with sock:
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        while data := sock.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived) and speaks:
                    connection.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/grpc")])
            if speaks:
                sock.sendall(connection.data_to_send())


@pytest.mark.parametrize("speaks", [True, False])
def test_a_server_that_answers_lives_and_one_that_only_accepts_does_not(speaks):
    """Facts §13: a stopped task connects, then nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve_one, args=(server,), kwargs={"speaks": speaks}, daemon=True)
        thread.start()
        assert asyncio.run(answers(server.getsockname()[1], within=5.0 if speaks else 0.2)) is speaks


def test_a_port_where_nobody_listens_does_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    began = time.monotonic()
    assert asyncio.run(answers(port)) is False
    assert time.monotonic() - began < 1.0

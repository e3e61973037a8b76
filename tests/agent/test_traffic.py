"""What a task's connections have carried: told of few of them, and of each by the two ends that know it."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time

from launched import wait_for
from phalanx.agent.peers import Connection, PeerTable
from phalanx.agent.traffic import TOLD, Traffic
from phalanx.names import TaskId
from phalanx.protocol.messages import End, Load, Measured, encode

W0, W1 = TaskId("worker", 0), TaskId("worker", 1)
MINE = 4711
SO_MAX_PACING_RATE = 47


def config(*addresses: str) -> str:
    return json.dumps({"cluster": {"worker": addresses}})


def connection(
    inode: int, local: int, remote: int, *, sent: int = 0, received: int = 0, at: str = "10.0.0.2"
) -> Connection:
    return Connection(inode, local, remote, sent, received, at, 0.0001, sent / 1e6)


def test_who_has_called_knows_whom_and_who_was_called_the_port():
    traffic = Traffic(W0, 2000, config("10.0.0.1:2000", "10.0.0.2:2000"))
    traffic.see([connection(1, 2000, 40_001, sent=500_000), connection(MINE, 40_002, 2000, received=600_000)], {MINE})
    called, was = traffic.ends()
    assert called == End(task=W0, peer=W1, port=40_002, sent=0, busy=0.0, rtt=0.0001)
    assert was == End(task=W0, port=40_001, sent=500_000, busy=0.5, rtt=0.0001)


def test_addresses_that_are_names_are_told_apart_by_their_ports():
    traffic = Traffic(W0, 2000, config("n0:2000", "n1:2001"))
    traffic.see([connection(MINE, 40_000, 2001, sent=500_000)], {MINE})
    assert [end.peer for end in traffic.ends()] == [W1]


def test_connections_to_nobody_of_the_cluster_and_to_itself_are_none():
    traffic = Traffic(W0, 2000, config("10.0.0.1:2000", "10.0.0.2:2000"))
    found = [
        connection(MINE, 40_000, 443, sent=500_000),
        connection(MINE + 1, 40_001, 2000, sent=500_000, at="10.0.0.1"),
    ]
    traffic.see(found, {MINE, MINE + 1})
    assert traffic.ends() == ()


def test_of_many_connections_those_are_told_that_have_carried_most_and_none_that_only_beat():
    traffic = Traffic(W0, 2000, config("10.0.0.1:2000", "10.0.0.2:2000"))
    many = [connection(i, 2000, 40_000 + i, sent=i * 100_000) for i in range(1, 50)]
    traffic.see(many, set())
    assert [end.port for end in traffic.ends()] == [40_049, 40_048, 40_047, 40_046][:TOLD]
    beats = [connection(i, 2000, 40_000 + i, sent=i * 100_000 + 250) for i in range(1, 50)]
    traffic.see(beats, set())
    assert traffic.ends() == ()


def test_a_task_of_a_thousand_tells_a_few_hundred_bytes():
    task = TaskId("worker", 500)
    traffic = Traffic(task, 21_500, config(*(f"10.0.{i // 250}.{i % 250}:{21_000 + i}" for i in range(1000))))
    many = [connection(i, 21_500, 40_000 + i, sent=i * 10**9 + 1) for i in range(1, 1000)]
    traffic.see(many, set())
    load = Load(task=task, generation=12, attempt=3, cpu=123456.78, sent=traffic.sent, received=10**12)
    assert len(encode(Measured(at=1764525047.123, loads=(load,), ends=traffic.ends()))) < 600


def test_all_that_was_carried_counts_also_on_connections_that_are_gone():
    traffic = Traffic(W0, 2000, config("10.0.0.1:2000", "10.0.0.2:2000"))
    assert traffic.see([connection(1, 2000, 40_001, sent=100, received=10)], set()) == 0
    assert traffic.see([connection(1, 2000, 40_001, sent=150, received=20)], set()) == 60
    traffic.see([connection(2, 2000, 40_002, sent=7, received=3)], set())
    assert (traffic.sent, traffic.received) == (157, 23)


def test_the_kernel_says_for_how_long_something_was_under_way():
    """A megabyte at a megabyte in a quarter of a second, then nothing: the pause does not count."""
    server = socket.create_server(("127.0.0.1", 0))
    port, table = server.getsockname()[1], PeerTable()
    with server, socket.create_connection(("127.0.0.1", port)) as client, server.accept()[0] as accepted:
        client.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("I", 4_000_000))

        def outgoing() -> Connection:
            return next(one for one in table.connections([port]) if one.remote == port)

        reading = threading.Thread(target=lambda: accepted.recv(1_000_000, socket.MSG_WAITALL))
        reading.start()
        client.sendall(b"x" * 1_000_000)
        reading.join()
        wait_for(lambda: outgoing().sent >= 1_000_000, "all acknowledged", within=5)
        first = outgoing()
        assert first.address == "127.0.0.1"
        assert first.busy is not None
        assert 0.1 < first.busy < 2.0
        time.sleep(0.3)
        after = outgoing().busy
        assert after is not None
        assert after - first.busy < 0.1
    table.close()

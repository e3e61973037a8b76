"""A held port is ours until the task listens on it, whoever else wants it, and nobody ever holds it twice."""

from __future__ import annotations

import errno
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from phalanx.agent.ports import POOL, PortHolder, default_pool, holders
from phalanx.errors import InputError, PlaceError

pytestmark = pytest.mark.real

ALL = "0.0.0.0"  # noqa: S104 - what TensorFlow binds
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def holder():
    holder = PortHolder()
    yield holder
    holder.release_all()


def free_range(size: int) -> tuple[int, int]:
    """A row of ports that are all free now, outside the default pool; where, differs from session to session."""
    for first in random.sample(range(10_000, 20_000 - size), 100):
        probe = PortHolder((first, first + size - 1))
        try:
            probe.hold(size)
        except PlaceError:
            continue
        finally:
            probe.release_all()
        return first, first + size - 1
    pytest.fail("no free row of ports")


def listen(port: int, *options: int, address: str = ALL) -> socket.socket:
    sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        for option in options:
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind((address, port))
        sock.listen()
    except OSError:
        sock.close()
        raise
    return sock


def test_a_lent_port_is_open_to_any_usual_server_and_to_no_other_holder(holder):
    [port] = holder.hold(1)
    holder.lend(port)
    listen(port, socket.SO_REUSEADDR).close()
    listen(port, socket.SO_REUSEPORT).close()
    with pytest.raises(PlaceError):
        PortHolder((port, port)).hold(1)
    listen(port, socket.SO_REUSEADDR).close()  # its next attempt


@pytest.mark.parametrize("options", [(), (socket.SO_REUSEADDR,)], ids=["plain", "reuseaddr"])
@pytest.mark.parametrize("address", [ALL, "127.0.0.1", "::"])
def test_a_thief_gets_address_in_use(holder, options, address):
    (port,) = holder.hold(1)
    with pytest.raises(OSError, match="in use") as refused:
        listen(port, *options, address=address)
    assert refused.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("address", [ALL, "::"])
def test_a_server_that_shares_its_port_listens_on_it_and_gets_every_connection(holder, address):
    (port,) = holder.hold(1)
    with listen(port, socket.SO_REUSEPORT, address=address) as server:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                accepted, _ = server.accept()
                with accepted:
                    client.sendall(b"to the task")
                    assert accepted.recv(100) == b"to the task"
        holder.release(port)  # the task has it: letting go changes nothing
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            server.accept()[0].close()


def test_a_second_holder_does_not_get_a_held_port():
    first, last = free_range(1)
    one, two = PortHolder((first, last)), PortHolder((first, last))
    assert one.hold(1) == (first,)
    with pytest.raises(PlaceError):
        two.hold(1)
    one.release(first)
    assert two.hold(1) == (first,)
    two.release_all()


def test_ports_come_from_outside_the_ephemeral_range(holder):
    assert set(holder.hold(50)) <= set(POOL)
    assert len(set(holder.held)) == 50


def test_all_or_nothing_is_held():
    bounds = free_range(4)
    with socket.socket() as other:
        other.bind(("127.0.0.1", bounds[0]))
        holder = PortHolder(bounds)
        with pytest.raises(
            PlaceError, match=r"4 ports are wanted of .* and 3 are free; taken: 1 by sockets that do not"
        ):
            holder.hold(4)
        assert holder.held == ()
    assert len(holder.hold(4)) == 4
    holder.release_all()
    holder.release_all()
    assert holder.held == ()


def test_an_exhausted_range_names_who_listens_there():
    bounds = free_range(2)
    with listen(bounds[1]):
        name = Path("/proc/self/comm").read_text().strip()
        with pytest.raises(PlaceError, match=rf"taken: {bounds[1]} by {name} \(pid {os.getpid()}\)\Z") as refused:
            PortHolder(bounds).hold(2)
    assert "--ports" in (refused.value.hint or "")
    assert refused.value.exit_code == 3


@pytest.mark.parametrize("bounds", [(0, 5), (9, 8), (65000, 70000)])
def test_a_range_that_is_none_is_the_users_fault(bounds):
    with pytest.raises(InputError, match="is no range of ports"):
        PortHolder(bounds)


def test_a_range_too_small_in_itself_is_the_users_fault():
    with pytest.raises(InputError, match="the ports 20000-20003 are 4, and this host needs 6"):
        PortHolder((20000, 20003)).hold(6)


def test_a_port_that_nobody_may_bind_is_said_so():
    with pytest.raises(PlaceError, match=r"of 203\.0\.113\.1 cannot be bound on this host"):
        PortHolder(address="203.0.113.1").hold(1)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("32768\t60999\n", lambda pool: set(pool) < set(POOL)),
        ("15000\t65535\n", lambda pool: min(pool) == 1024 and max(pool) == 14999),
        ("1024\t65535\n", lambda pool: set(pool) < set(POOL)),  # nothing is outside: better a port than none
    ],
)
def test_the_pool_yields_to_this_machines_ephemeral_range(tmp_path, bounds, expected):
    (tmp_path / "range").write_text(bounds)
    pool = default_pool(tmp_path / "range")
    assert expected(pool)
    assert 27017 not in pool


def test_another_users_listener_is_named_by_its_user(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 00000000:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1042        0 777 1 0 100\n"
    )
    assert holders([20000, 20001], tmp_path) == {20000: "user 1042"}


# Starts so many holders at once, each in a process of its own, and prints what each of them got.
RACE = """
import json, os, signal, sys
sys.path.insert(0, sys.argv[1])
from phalanx.agent.ports import PortHolder
from phalanx.errors import PlaceError
processes, each, first, last, rounds = map(int, sys.argv[2:])
for _ in range(rounds):
    ready, go = os.pipe()
    answers, pids = [], []
    for _ in range(processes):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(ready, 1)  # end of file: all start together
            try:
                holder = PortHolder((first, last) if first else None)
                answer = holder.hold(each)
            except PlaceError:
                answer = []
            os.write(write, json.dumps(answer).encode())
            os.close(write)
            signal.pause()
        os.close(write)
        answers.append(read)
        pids.append(pid)
    os.close(go)
    print(json.dumps([json.loads(os.read(read, 65536)) for read in answers]), flush=True)
    for read in (ready, *answers):
        os.close(read)
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
"""


def race(processes: int, each: int, bounds: tuple[int, int], rounds: int) -> list[list[list[int]]]:
    """What each of `processes` got, in each of `rounds`."""
    numbers = map(str, (processes, each, *bounds, rounds))
    command = [sys.executable, "-S", "-E", "-c", RACE, str(SOURCE), *numbers]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout
    return [json.loads(line) for line in out.splitlines()]


def assert_no_collision(got: list[list[int]], each: int) -> None:
    ports = [port for one in got for port in one]
    assert len(set(ports)) == len(ports)
    assert all(len(one) == each for one in got)


def test_two_agents_racing_over_ten_ports_never_share_one():
    for got in race(2, 5, free_range(10), rounds=20):
        assert_no_collision(got, 5)


def test_of_three_agents_that_want_five_of_ten_ports_no_two_get_the_same():
    for got in race(3, 5, free_range(10), rounds=10):
        ports = [port for one in got for port in one]
        assert len(set(ports)) == len(ports)
        assert [] in got


@pytest.mark.parametrize("rounds", [5, pytest.param(50, marks=pytest.mark.soak)])
@pytest.mark.parametrize("narrow", [True, False])
def test_starts_of_twenty_holders_never_collide(rounds, narrow):
    bounds = free_range(44) if narrow else (0, 0)
    for got in race(20, 2, bounds, rounds):
        assert_no_collision(got, 2)

"""Names and held ports: real sockets, a resolver that is late, strangers and other hosts at the address."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading

import pytest

from phalanx.agent.listening import listening
from phalanx.agent.ports import PortHolder
from phalanx.agent.preflight.names import Unresolved, resolve
from phalanx.agent.preflight.reach import Greeter, Greeting, reach
from phalanx.plan.checklist import Peer
from phalanx.protocol.signing import RunKey

pytestmark = pytest.mark.real

HERE = [(socket.AF_INET, ("127.0.0.1", 0))]


@pytest.fixture
def held():
    holder = PortHolder()
    (port,) = holder.hold(1)
    yield port
    holder.release_all()


def peer(port, host=1):
    return Peer(host=host, name="n1", address="127.0.0.1", ports=(port,))


def greeting(key=None, run="r1", generation=1):
    return Greeting(key or RunKey.new(), run, generation)


async def test_a_held_port_is_reached_and_tensorflow_may_still_bind_it(held):
    words = greeting()
    greeter = Greeter(words, 1)
    greeter.listen([held])
    assert [await reach(words, peer(held), held, HERE) for _ in range(3)] == ["", "", ""]
    greeter.close()
    assert not listening([held])
    with socket.socket() as server:  # as TensorFlow does with TF_GRPC_REUSE_PORT=1
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("0.0.0.0", held))  # noqa: S104 - as it does
        server.listen()
        with socket.create_connection(("127.0.0.1", held)):
            server.accept()[0].close()


async def test_nobody_else_may_take_the_port_meanwhile(held):
    greeter = Greeter(greeting(), 1)
    greeter.listen([held])
    with socket.socket() as thief, pytest.raises(OSError, match="in use"):
        thief.bind(("0.0.0.0", held))  # noqa: S104 - as it would
    greeter.close()


async def test_a_port_where_nobody_listens_is_refused(held):
    assert await reach(greeting(), peer(held), held, HERE, patience=0.2) == "connection refused"


async def test_a_peer_that_is_late_is_waited_for(held):
    words = greeting()
    greeter = Greeter(words, 1)
    waiting = reach(words, peer(held), held, HERE, patience=5)
    task = asyncio.ensure_future(waiting)
    await asyncio.sleep(0.3)
    greeter.listen([held])
    assert await task == ""
    greeter.close()


@pytest.mark.parametrize("other", [{"generation": 2}, {"run": "r2"}, {"key": RunKey.new()}])
async def test_an_agent_of_another_run_is_a_stranger(held, other):
    key = RunKey.new()
    greeter = Greeter(greeting(**({"key": key} | other)), 1)
    greeter.listen([held])
    said = await reach(greeting(key), peer(held), held, HERE, patience=0)
    greeter.close()
    assert said == "something listens there, and it is not that host's agent"


async def test_another_host_behind_the_address_is_a_stranger(held):
    """A name that resolves to the wrong host: the port is open there too."""
    words = greeting()
    greeter = Greeter(words, 2)
    greeter.listen([held])
    said = await reach(words, peer(held, host=1), held, HERE, patience=0)
    greeter.close()
    assert said == "something listens there, and it is not that host's agent"


async def test_a_guest_that_knows_nothing_is_told_nothing(held):
    greeter = Greeter(greeting(), 1)
    greeter.listen([held])

    def talk() -> bytes:
        with socket.create_connection(("127.0.0.1", held), timeout=5) as guest:
            guest.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                return guest.recv(100)
        return b""

    assert await asyncio.to_thread(talk) == b""
    greeter.close()


async def test_a_port_that_swallows_what_is_sent_to_it_times_out(monkeypatch):
    """R43: a firewall that drops. A listener whose queue is full does the same."""
    monkeypatch.setattr("phalanx.agent.preflight.reach.TRY", 0.3)
    with socket.socket() as full, contextlib.ExitStack() as guests:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(4):
            guest = guests.enter_context(socket.socket())
            guest.setblocking(False)  # noqa: FBT003 - its name says what it is
            guest.connect_ex(("127.0.0.1", port))
        assert await reach(greeting(), peer(port), port, HERE, patience=0.2) == "timed out"


# Names ---------------------------------------------------------------------------------------------------------------


def late(times):
    """A resolver that does not know the name for the first `times` questions."""
    asked = itertools.count()

    def ask(name, port, type):  # noqa: A002 - as getaddrinfo has it
        if next(asked) < times:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET6, type, 6, "", ("fd00::1", 0, 0, 0)), (socket.AF_INET, type, 6, "", ("10.0.0.1", 0))]

    return ask


class Now(threading.Event):
    """Waits in no time; its clock moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def wait(self, timeout=None):
        self.time += timeout
        return self.is_set()


def test_a_record_that_appears_after_40_seconds_is_no_failure():
    """R44."""
    now = Now()
    found = resolve("n1", patience=270, over=now, ask=late(25), clock=lambda: now.time)
    assert now.time > 40
    assert [address[0] for _, address in found] == [
        "fd00::1",
        "10.0.0.1",
    ]  # in the resolver's order, as gRPC takes them


def test_a_name_that_never_resolves_is_said_after_the_deadline():
    """R45."""
    now = Now()
    with pytest.raises(Unresolved, match="n1 does not resolve for 30 s: Name or service not known"):
        resolve("n1", patience=30, over=now, ask=late(10**6), clock=lambda: now.time)


def test_an_address_is_its_own_answer():
    assert resolve("127.0.0.1", patience=0, over=threading.Event()) == [(socket.AF_INET, ("127.0.0.1", 0))]

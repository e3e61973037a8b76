"""One host's part of the measuring: it follows the orders that come to its standard input, and serves its peers.

It comes down that pipe into whatever `python3` the host has, writes no file, and ends with the pipe, or once nobody has
said anything for a while.
"""

import glob
import hashlib
import hmac
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NONCE, PROOF, CHUNK = 16, 32, 1 << 18
#: Seconds to connect, and for any word of a peer that is due.
PATIENCE = 3.0
#: The first part of the time does not count: connections open their windows, queues fill.
SKIP = 0.2
#: What a caller wants, and for how many seconds.
HEAD = struct.Struct("!cd")
#: How the receiver says what it got: bytes a second.
RATE = struct.Struct("!d")
PING, POUR, HELLO = b"p", b"d", b"h"


class Probe:
    """Listens for peers, and calls them."""

    def __init__(self, hello: "dict[str, Any]") -> None:
        self.own, self.key = int(hello["host"]), bytes.fromhex(hello["key"])
        self.listener = listener(hello["ports"])
        self.port = self.listener.getsockname()[1]
        self.over = False

    def close(self) -> None:
        """Let nobody in any more."""
        self.over = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def serve(self) -> None:
        """Let peers in, until `close`."""
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                if self.over:
                    return
                time.sleep(0.05)  # it has gone again, or there are too many at the moment
                continue
            threading.Thread(target=self.welcome, args=(sock,), daemon=True).start()

    def welcome(self, sock: socket.socket) -> None:
        """Who does not know the key is owed nothing."""
        with sock:
            try:
                sock.settimeout(PATIENCE)
                nonce = os.urandom(NONCE)
                sock.sendall(nonce)
                asked, proof = take(sock, NONCE), take(sock, PROOF)
                if not hmac.compare_digest(proof, self.proof(b"caller", nonce)):
                    return
                sock.sendall(self.proof(b"host %d" % self.own, asked))
                kind, seconds = HEAD.unpack(take(sock, HEAD.size))
                if kind == PING:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    while word := sock.recv(1):
                        sock.sendall(word)
                elif kind == POUR:
                    swallow(sock, seconds)
            except OSError:
                pass  # the caller knows, and says it

    def call(self, peer: "dict[str, Any]", kind: bytes, seconds: float = 0.0) -> socket.socket:
        """Raises OSError in words for people."""
        sock = socket.create_connection((peer["address"], peer["port"]), PATIENCE)
        try:
            # What is still on its way when the time is over goes nowhere, and no port is left waiting.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            nonce = os.urandom(NONCE)
            sock.sendall(nonce + self.proof(b"caller", take(sock, NONCE)))
            known = hmac.compare_digest(take(sock, PROOF), self.proof(b"host %d" % peer["host"], nonce))
            if known:
                sock.sendall(HEAD.pack(kind, seconds))
                return sock
        except BaseException:
            sock.close()
            raise
        sock.close()
        raise OSError("another host answers there")

    def proof(self, who: bytes, nonce: bytes) -> bytes:
        """What only a probe of this measuring can answer."""
        return hmac.new(self.key, who + b"\0" + nonce, hashlib.sha256).digest()

    def greet(self, peers: "list[dict[str, Any]]") -> "dict[str, Any]":
        """What is wrong with the way to each, at once; empty for those that are reached."""
        said = [""] * len(peers)

        def one(number: int) -> None:
            try:
                self.call(peers[number], HELLO).close()
            except OSError as wrong:
                said[number] = words(wrong)

        together(one, len(peers))
        return {"said": said}

    def ping(self, peer: "dict[str, Any]", times: int) -> "dict[str, Any]":
        """The median of so many times there and back, in seconds."""
        took = []
        with self.call(peer, PING) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(times):
                began = time.perf_counter()
                sock.sendall(b".")
                take(sock, 1)
                took.append(time.perf_counter() - began)
        return {"rtt": sorted(took)[len(took) // 2]}

    def pour(self, peer: "dict[str, Any]", seconds: float, streams: int) -> "dict[str, Any]":
        """Bytes a second that the peer got by all streams together."""
        rates, wrong = [0.0] * streams, []  # type: tuple[list[float], list[OSError]]

        def one(number: int) -> None:
            try:
                with self.call(peer, POUR, seconds) as sock:
                    rates[number] = pour(sock, seconds)
            except OSError as failed:
                wrong.append(failed)

        together(one, streams)
        if wrong:
            raise wrong[0]
        return {"rate": sum(rates)}

    def follow(self, order: "dict[str, Any]") -> "dict[str, Any]":
        """The answer to one order."""
        try:
            if order["do"] == "greet":
                return self.greet(order["peers"])
            if order["do"] == "ping":
                return self.ping(order["peer"], order["times"])
            return self.pour(order["peer"], order["seconds"], order["streams"])
        except OSError as failed:
            return {"wrong": words(failed)}


def pour(sock: socket.socket, seconds: float) -> float:
    """Send until the peer, whose clock it goes by, says how many bytes a second it got."""
    sock.settimeout(0)
    data, at, answer = memoryview(os.urandom(CHUNK)), 0, b""
    until = time.monotonic() + seconds + 2 * PATIENCE
    waiting = select.poll()
    waiting.register(sock, select.POLLIN | select.POLLOUT)
    while len(answer) < RATE.size:
        left = until - time.monotonic()
        events = waiting.poll(max(left, 0) * 1000)
        if not events:
            raise OSError("it stopped taking bytes")
        if events[0][1] & ~select.POLLOUT:
            part = sock.recv(RATE.size - len(answer))
            if not part:
                raise OSError("the connection was closed")
            answer += part
        else:
            at = (at + sock.send(data[at:])) % CHUNK
    return float(RATE.unpack(answer)[0])


def swallow(sock: socket.socket, seconds: float) -> None:
    """Take what comes for so long from its first byte, say how much a second that was, and let the caller go first.

    All streams of a caller count over the same part of that time, so that their rates add up, even where one starves.
    """
    buffer, counted = bytearray(CHUNK), 0
    sock.recv_into(buffer)
    now = time.monotonic()
    first, end = now + SKIP * seconds, now + seconds
    while now < end:
        sock.settimeout(end - now)
        try:
            got = sock.recv_into(buffer)
        except socket.timeout:
            break
        now = time.monotonic()
        if not got:
            break
        counted += got if first <= now < end else 0
    sock.settimeout(PATIENCE)
    sock.sendall(RATE.pack(counted / (end - first)))
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and sock.recv_into(buffer):
        pass


def together(work: "Any", count: int) -> None:
    """`work` of each number below `count`, at once."""
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def take(sock: socket.socket, count: int) -> bytes:
    """As many bytes. Raises OSError."""
    got = b""
    while len(got) < count:
        part = sock.recv(count - len(got))
        if not part:
            raise OSError("something else listens there" if not got else "the connection was closed")
        got += part
    return got


def words(wrong: OSError) -> str:
    """For people."""
    if isinstance(wrong, socket.gaierror):
        return "the name does not resolve there"
    if isinstance(wrong, socket.timeout):
        return "timed out"
    return os.strerror(wrong.errno).lower() if wrong.errno else str(wrong)


def listener(ports: "list[int] | None") -> socket.socket:
    """On every address, of both kinds where the host has both."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    wrong = OSError("no port")
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return socket.create_server(("", port), family=family, dualstack_ipv6=both, backlog=256)
        except OSError as failed:
            wrong = failed
    raise wrong


def facts() -> "dict[str, Any]":
    """Memory within the limits of our cgroup (version 2), cores that we may use, and NUMA nodes."""
    memory = (
        int(next(line.split()[1] for line in read("/proc/meminfo").splitlines() if line.startswith("MemTotal"))) << 10
    )
    own = next((line[3:] for line in read("/proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
    while own:
        limit = read("/sys/fs/cgroup%s/memory.max" % own.rstrip("/")).strip()
        memory = min(memory, int(limit)) if limit.isdigit() else memory
        own = own.rpartition("/")[0]
    nodes = len(glob.glob("/sys/devices/system/node/node[0-9]*"))
    return {"memory": memory, "cores": len(os.sched_getaffinity(0)), "nodes": max(nodes, 1)}


def read(path: str) -> str:
    """Empty where it cannot be."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def main() -> None:
    """Until the pipe ends."""
    mouth = threading.Lock()

    def answer(told: "dict[str, Any]") -> None:
        with mouth:
            os.write(1, b"\n" + json.dumps({"phalanx": told}).encode() + b"\n")

    hello = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(hello["idle"])
    try:
        probe = Probe(hello)
    except OSError as wrong:
        answer({"id": 0, "wrong": "no port can be listened on: " + words(wrong)})
        os._exit(1)
    threading.Thread(target=probe.serve, daemon=True).start()
    answer({"id": 0, "port": probe.port, "facts": facts()})
    for line in sys.stdin:
        order = json.loads(line)
        signal.alarm(hello["idle"])

        def obey(order: "dict[str, Any]" = order) -> None:
            answer({"id": order["id"], **probe.follow(order)})

        threading.Thread(target=obey, daemon=True).start()
    os._exit(0)


if __name__ == "phalanx_probe":
    try:
        main()
    except Exception:  # noqa: BLE001 - `code` would print it and go on asking for lines
        import traceback

        traceback.print_exc()
    os._exit(1)

"""How fast many hosts meet, and meet again after a kill: a real lead, real HTTP on loopback, simulated agents.

    python bench/rendezvous.py [--hosts 1000,10000] [--processes 2] [--profile FILE]

The lead runs in a process of its own, as it does in a run, and keeps its records in a folder. The agents are `Link`s in
other processes: they join, sign, poll and report as an agent does, and their tasks are words only. There is no rival to
set beside it: a TCP store of a launcher that starts PyTorch knows no orders, no signatures and no records. The floor is
what Python itself takes for the same connections: a bare asyncio server that sends the same number of bytes back.
`--profile` writes what the lead spent its time on (cProfile), and slows it down.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from phalanx import events as ev  # noqa: E402 - the path above is what makes it this tree's
from phalanx.agent.link import Link  # noqa: E402 - as above
from phalanx.lead.main import LeadConfig  # noqa: E402 - as above
from phalanx.names import TaskId  # noqa: E402 - as above
from phalanx.plan.host import Host  # noqa: E402 - as above
from phalanx.plan.outline import Outline, Role, Strategy  # noqa: E402 - as above
from phalanx.plan.policies import Policies, Preflight  # noqa: E402 - as above
from phalanx.protocol.client import LeadClient  # noqa: E402 - as above
from phalanx.protocol.messages import VERSION, Join, Order, StartTask, encode  # noqa: E402 - as above
from phalanx.protocol.people import LeadUnreachableError, state, stop  # noqa: E402 - as above
from phalanx.protocol.signing import RunKey  # noqa: E402 - as above
from phalanx.protocol.transport import Answer, HttpTransport  # noqa: E402 - as above

RUN = "bench"
#: Who is killed.
VICTIM = 1
#: Bare connections that each process keeps open at a time: beyond the backlog the kernel makes them wait for seconds.
AT_ONCE = 500
#: Seconds after which a round counts as hung.
LIMIT = 600.0

LEAD = """
import sys
from phalanx.lead.main import main
import cProfile
profile = cProfile.Profile() if sys.argv[3] else None
fds = int(sys.argv[1]), int(sys.argv[2])
code = profile.runcall(main, *fds) if profile else main(*fds)
if profile:
    profile.dump_stats(sys.argv[3])
sys.exit(code)
"""


# The agents' process ------------------------------------------------------------------------------------------------


class Counted(HttpTransport):
    """Counts what it carries: bodies, without headers."""

    requests = 0
    bytes = 0

    async def call(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answer = await super().call(method, path, headers, body)
        self.requests += 1
        self.bytes += len(body) + len(answer.body)
        return answer


class Agent:
    """One host. Its task starts and listens as soon as it may, and ends when it is told to."""

    def __init__(self, number: int, lead: tuple[str, int], key: RunKey, crowd: Crowd) -> None:
        self.number, self.crowd = number, crowd
        self.transport = Counted(*lead)
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        host = Host(id=number, name=f"n{number:05}", address=address, ports=(22100,))
        join = Join(version=VERSION, run=RUN, instance=f"i{number}", host=host, pid=1000)
        self.link = Link(LeadClient(self.transport, key), join, self.obey, patience=LIMIT)
        self.tasks: tuple[StartTask, ...] = ()
        self.generation = 0

    def obey(self, order: Order) -> None:
        if order.kind == "prepare":
            self.tasks, self.generation = order.tasks, order.generation
            self.link.prepared(order.generation, (22100 + order.generation % 2,))
        elif order.kind == "go":
            self.crowd.went(order.generation)
            for task in self.tasks:
                self.say(ev.TaskStarted, task.id, pid=1)
                self.say(ev.TaskListening, task.id, port=task.port)
        elif order.kind == "stop":
            for task in order.ids:
                self.say(ev.TaskExited, task, pid=1, signal=15, stopped=True)

    def say(self, kind: type[ev.TaskEvent], task: TaskId, **more: Any) -> None:
        self.link.say(kind(time=time.time(), task=task, host=self.number, generation=self.generation, **more))

    def kill(self) -> None:
        self.say(ev.TaskExited, self.tasks[0].id, pid=1, signal=9)


class Crowd:
    """The agents of one process, and what they tell the bench: a line of JSON for each thing."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        lead, key = (about["host"], about["port"]), RunKey.from_hex(about["key"])
        self.agents = [Agent(number, lead, key, self) for number in range(*about["numbers"])]
        self.gone: dict[int, int] = {}

    def went(self, generation: int) -> None:
        self.gone[generation] = self.gone.get(generation, 0) + 1
        if self.gone[generation] == len(self.agents):
            self.tell(generation=generation)

    def tell(self, **words: Any) -> None:
        asked = [agent.transport.requests for agent in self.agents]
        sent = [agent.transport.bytes for agent in self.agents]
        told = {"time": time.time(), "requests": sum(asked), "most": max(asked), "bytes": sum(sent)}
        print(json.dumps(told | words), flush=True)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self.listen)
        self.tell(began=True)
        await asyncio.gather(*(agent.link.run() for agent in self.agents))

    def listen(self) -> None:
        word = os.read(0, 100)
        if word == b"kill\n":
            self.tell(killed=True)
            self.agents[VICTIM].kill()
        elif not word:
            os._exit(0)


async def meet(about: Mapping[str, Any]) -> None:
    await Crowd(about).run()


# The floor ----------------------------------------------------------------------------------------------------------


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))
    await writer.drain()
    writer.close()


async def serve_echo(listener: socket.socket) -> None:
    server = await asyncio.start_server(echo, sock=listener)
    await server.serve_forever()


async def ask_echo(about: Mapping[str, Any]) -> None:
    """`rounds` connections for each host, one after the other; as many hosts at once as the kernel lets in."""
    body, gate = b"x" * about["bytes"], asyncio.Semaphore(AT_ONCE)

    async def host() -> None:
        for _ in range(about["rounds"]):
            async with gate:
                reader, writer = await asyncio.open_connection(about["host"], about["port"])
                writer.write(len(body).to_bytes(4) + body)
                await reader.readexactly(len(body))
                writer.close()

    began = time.time()
    await asyncio.gather(*(host() for _ in range(*about["numbers"])))
    print(json.dumps({"began": began, "ended": time.time()}), flush=True)


# The bench ----------------------------------------------------------------------------------------------------------


def listening() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    return listener


def start(role: str, about: Mapping[str, Any], *fds: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--role", role, "--about", json.dumps(about)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=fds)


def start_lead(outline: Outline, key: RunKey, folder: Path, listener: socket.socket, profile: str) -> Any:
    read, write = os.pipe()
    command = [sys.executable, "-c", LEAD, str(read), str(listener.fileno()), profile]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    lead = subprocess.Popen(command, pass_fds=(read, listener.fileno()), env=environ, stderr=subprocess.DEVNULL)
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        pipe.write(encode(LeadConfig(run=RUN, key=key.hex(), outline=outline, folder=str(folder))))
    return lead


def shares(hosts: int, processes: int) -> list[tuple[int, int]]:
    edges = [hosts * number // processes for number in range(processes + 1)]
    return list(itertools.pairwise(edges))


def said(crowds: list[subprocess.Popen[str]], **wanted: Any) -> list[dict[str, Any]]:
    """The line of each crowd that says this."""
    found = []
    for crowd in crowds:
        for line in crowd.stdout:
            told = json.loads(line)
            if wanted.items() <= told.items():
                found.append(told)
                break
        else:
            raise SystemExit(f"a crowd ended before it said {wanted}")
    return found


def peak(pid: int) -> float:
    """The largest resident set so far, in MB."""
    words = Path(f"/proc/{pid}/status").read_text()
    return int(words.partition("VmHWM:")[2].split()[0]) / 1000


def busy(pid: int) -> float:
    """CPU seconds so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def until_running(address: str, key: RunKey) -> None:
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        with contextlib.suppress(LeadUnreachableError):  # it has more to do than to answer us
            if state(address, key.people_token())["phase"] == "running":
                return
        time.sleep(0.1)
    raise SystemExit("the run never got under way")


def measure(hosts: int, processes: int, profile: str) -> tuple[dict[str, float], int, int]:
    """Seconds of both meetings; requests and bytes of one agent until the first `go`."""
    key = RunKey.new()
    outline = Outline(
        name=RUN,
        roles=(Role(type="worker", count=hosts, command=("python", "train.py")),),
        strategy=Strategy.MWMS,
        cwd="/work",
        hosts=hosts,
        policies=Policies(preflight=Preflight(on=False)),  # hosts that are words only have nothing to look at
    )
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listener = stack.enter_context(listening())
        host, port = listener.getsockname()
        lead = start_lead(outline, key, folder, listener, profile)
        stack.callback(lead.wait)
        stack.callback(lead.kill)
        about = {"host": host, "port": port, "key": key.hex()}
        crowds = [start("agents", about | {"numbers": share}) for share in shares(hosts, processes)]
        for crowd in crowds:
            stack.callback(crowd.kill)
        began = min(told["time"] for told in said(crowds, began=True))
        met = said(crowds, generation=1)
        spent = busy(lead.pid)
        until_running(f"{host}:{port}", key)
        late = busy(lead.pid)
        crowds[0].stdin.write("kill\n")
        crowds[0].stdin.flush()
        killed = said(crowds[:1], killed=True)[0]
        again = said(crowds, generation=2)
        later_spent = busy(lead.pid) - late
        figures = {
            "meet": max(told["time"] for told in met) - began,
            "restart": max(told["time"] for told in again) - killed["time"],
            "memory": peak(lead.pid),
        }
        requests, sent = (sum(told[what] for told in met) for what in ("requests", "bytes"))
        more, later = (sum(told[what] for told in again) for what in ("requests", "bytes"))
        records = (folder / "events.jsonl").stat().st_size
        print(
            f"{hosts:,} hosts: all have `go` {figures['meet']:.2f} s after the first join "
            f"(the lead's CPU: {spent:.2f} s), and again {figures['restart']:.2f} s ({later_spent:.2f} s) after a kill "
            f"is told; an agent needs {requests / hosts:.1f} requests ({max(told['most'] for told in met)} at most) "
            f"and {sent / hosts:,.0f} bytes to meet, {more / hosts:.1f} and {later / hosts:,.0f} from its beginning "
            f"to the second `go`; the lead's memory {figures['memory']:.0f} MB at most, "
            f"its records {records / 1e6:.1f} MB",
            flush=True,
        )
        if profile:
            until_running(f"{host}:{port}", key)
            stop(f"{host}:{port}", key.people_token(), hard=True, by="the bench")
            lead.wait(LIMIT)
        return figures, round(requests / hosts), round(sent / requests)


def floor(hosts: int, processes: int, rounds: int, size: int) -> float:
    """Seconds for as many bare connections with as many bytes, there and back."""
    with listening() as listener:
        host, port = listener.getsockname()
        server = start("echo", {"fd": listener.fileno()}, listener.fileno())
        about = {"host": host, "port": port, "rounds": rounds, "bytes": size // 2}
        try:
            askers = [start("ask", about | {"numbers": share}) for share in shares(hosts, processes)]
            told = [json.loads(asker.stdout.readline()) for asker in askers]
        finally:
            server.kill()
        return max(one["ended"] for one in told) - min(one["began"] for one in told)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--hosts", default="1000,10000")
    words.add_argument("--processes", type=int, default=2)
    words.add_argument("--profile", default="")
    words.add_argument("--role", help=argparse.SUPPRESS)
    words.add_argument("--about", type=json.loads, help=argparse.SUPPRESS)
    chosen = words.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    match chosen.role:
        case "agents":
            asyncio.run(meet(chosen.about))
        case "echo":
            asyncio.run(serve_echo(socket.socket(fileno=chosen.about["fd"])))
        case "ask":
            asyncio.run(ask_echo(chosen.about))
        case _:
            for hosts in map(int, chosen.hosts.split(",")):
                figures, rounds, size = measure(hosts, chosen.processes, chosen.profile)
                bare = floor(hosts, chosen.processes, rounds, size)
                print(f"{hosts:,} hosts: bare connections {bare:.2f} s, ratio {figures['meet'] / bare:.1f}", flush=True)


if __name__ == "__main__":
    main()

"""Nothing outlives its host's agent, however it tries."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from phalanx.agent import tree

pytestmark = pytest.mark.real

SOURCE = Path(__file__).parents[2] / "src"

# An agent that starts its one task and then only waits: argv is the task's command.
AGENT = """
import os, sys, time
sys.path.insert(0, sys.argv.pop(1))
from phalanx.agent import vigil
from phalanx.agent.children import ChildSpec, fork_reaper
vigil.FROZEN, vigil.GLANCE = 1.0, 0.1
reaper = fork_reaper()
env = {**os.environ, "PHALANX_RUN": "fake", "PHALANX_TASK": "worker:0"}
reaper.spawn(ChildSpec(id="worker:0", argv=tuple(sys.argv[1:]), env=env, cwd="/", stdout=1, stderr=2))
os.write(1, f"reaper {reaper.pid}\\n".encode())
while True:
    reaper.poll(60)
"""

# A shell's python with every kind of grandchild.
FAMILY = """
import os, signal, subprocess, sys, time
def say(name, pid=None):
    os.write(1, f"{name} {pid or os.getpid()}\\n".encode())
say("python")
say("plain", subprocess.Popen(["sleep", "600"]).pid)
say("session", subprocess.Popen(["setsid", "sleep", "600"]).pid)
stopped = subprocess.Popen(["sleep", "600"])
os.kill(stopped.pid, signal.SIGSTOP)
say("stopped", stopped.pid)
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        say("daemon")
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
time.sleep(600)
"""

# Each watches the other and forks it anew when it is gone.
TWINS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def live(other):
    while True:
        try:
            os.kill(other, 0)
        except ProcessLookupError:
            me = os.getpid()
            pid = os.fork()
            if pid == 0:
                os.setsid()
                other = me
            else:
                other = pid
        time.sleep(0.001)
me = os.getpid()
other = os.fork()
if other == 0:
    os.setsid()
    other = me
os.write(1, f"twin {os.getpid()}\\n".encode())
live(other)
"""

# Forks and leaves, again and again: never the same process for longer than a moment.
RUNNER = """
import os, time
os.write(1, f"runner {os.getpid()}\\n".encode())
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(0.002)
"""

# Doubles up to a bound, so that a test gone wrong does not take the machine with it.
BOMB = """
import os, time
for _ in range(6):
    os.fork()
    os.setsid() if os.getpid() != os.getsid(0) and os.getpgid(0) != os.getpid() else None
os.write(1, f"bomb {os.getpid()}\\n".encode())
while True:
    if os.fork() == 0:
        time.sleep(0.02)
        os._exit(0)
    os.waitpid(-1, os.WNOHANG)
    time.sleep(0.01)
"""


class FakeAgent:
    """A process that owns a reaper; everything below it holds the write end of one pipe."""

    def __init__(self, *argv: str) -> None:
        self.out, write = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", AGENT, str(SOURCE), *argv], stdout=write, start_new_session=True
        )
        os.close(write)
        self._text = b""
        self.pids: dict[str, int] = {}

    def told(self, count: int) -> dict[str, int]:
        """The first `count` names and their pids."""
        deadline = time.monotonic() + 10
        while self._text.count(b"\n") < count:
            left = deadline - time.monotonic()
            assert select.select([self.out], [], [], max(left, 0))[0], self._text
            self._text += os.read(self.out, 65536)
        return {name: int(pid) for name, pid in (line.split() for line in self._text.decode().splitlines()[:count])}

    def all_gone(self, pids: dict[str, int]) -> None:
        """Nobody holds the pipe, and none of `pids` lives, within a second; fails if they do."""
        deadline = time.monotonic() + 1
        open_still = True
        while open_still or not tree.processes().keys().isdisjoint(pids.values()):
            left = deadline - time.monotonic()
            assert left > 0, f"alive after 1 s: {tree.processes().keys() & set(pids.values())}, pipe open: {open_still}"
            if open_still and select.select([self.out], [], [], left)[0]:
                open_still = bool(os.read(self.out, 65536))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.out)


@pytest.fixture
def fake_agent():
    agents = []

    def start(*argv: str) -> FakeAgent:
        agents.append(FakeAgent(*argv))
        return agents[-1]

    yield start
    for agent in agents:
        agent.close()


def python(code: str, tmp_path: Path) -> str:
    script = tmp_path / "task.py"
    script.write_text(code)
    return f"{sys.executable} -I -S {script}"


def test_agent_killed_and_all_its_descendants_are_gone_within_a_second(fake_agent, tmp_path):
    agent = fake_agent("sh", "-c", f"echo shell $$; {python(FAMILY, tmp_path)}; true")
    pids = agent.told(7)
    assert set(pids) == {"reaper", "shell", "python", "plain", "session", "stopped", "daemon"}
    agent.process.kill()
    agent.all_gone(pids)


@pytest.mark.parametrize(("code", "voices"), [(TWINS, 2), (RUNNER, 1), (BOMB, 64)], ids=["twins", "runner", "bomb"])
def test_what_forks_faster_than_it_dies_is_gone_within_a_second(fake_agent, tmp_path, code, voices):
    agent = fake_agent("sh", "-c", f"exec {python(code, tmp_path)}")
    pids = agent.told(1 + voices)
    time.sleep(0.05)  # let them at it
    agent.process.kill()
    agent.all_gone(pids)


def test_a_terminal_cannot_end_the_reaper_before_its_tasks(fake_agent):
    agent = fake_agent("sh", "-c", "echo task $$; sleep 600; true")
    pids = agent.told(2)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(pids["reaper"], number)
    os.killpg(agent.process.pid, signal.SIGKILL)  # the agent's own session: the reaper is not in it
    agent.all_gone(pids)


def test_an_agent_that_stays_frozen_loses_its_tasks_and_its_reaper(fake_agent, tmp_path):
    agent = fake_agent("sh", "-c", f"echo shell $$; {python(FAMILY, tmp_path)}; true")
    pids = agent.told(7)
    agent.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    agent.process.send_signal(signal.SIGCONT)
    time.sleep(0.8)
    assert pids.items() <= agent.told(7).items()
    assert tree.processes().keys() >= set(pids.values())  # it was not frozen for long
    agent.process.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while tree.processes().keys() & set(pids.values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert agent.process.poll() is None


def test_a_task_that_is_just_starting_is_not_forgotten(fake_agent):
    for _ in range(5):
        agent = fake_agent("sleep", "600")
        pids = agent.told(1)  # the request is out, and nothing is known of its start
        agent.process.kill()
        agent.all_gone(pids)


def test_the_agent_is_ready_to_start_tasks_in_tens_of_milliseconds():
    code = f"""
import sys, time
sys.path.insert(0, {str(SOURCE)!r})
begin = time.process_time()
from phalanx.agent.children import fork_reaper
reaper = fork_reaper()
print(time.process_time() - begin, sorted(set(sys.modules) & {{"asyncio", "pathlib", "logging", "subprocess"}}))
reaper.close()
"""
    out = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True).stdout
    seconds, _, heavy = out.strip().partition(" ")
    assert heavy == "[]"
    assert float(seconds) < 0.15  # 0.02 on an idle machine

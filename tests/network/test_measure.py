"""The measuring itself: real processes, real sockets; hosts are namespaces where the network matters, else loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest

from launched import processes_with, wait_for
from namespaces import THROUGH, closed, hosts
from phalanx.errors import InputError, PlaceError
from phalanx.network import measure as measures
from phalanx.network import remote
from phalanx.network.inside import phalanx_probe
from phalanx.network.measure import measure
from phalanx.network.target import targets

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

THREE = "a=127.0.0.1,b=127.0.0.2,c=127.0.0.3"
#: Straight, as `srun` and `kubectl exec` do; and as `ssh` does, whose words a shell reads anew.
STRAIGHT = "env PX_HOST={host}"
BY_A_SHELL = """env PX_HOST={host} sh -c 'echo welcome to this host; eval "$*"' sh"""


@pytest.fixture
def mark(monkeypatch):
    """Whatever has this in its environment is ours; nothing of it may be left in the end."""
    text = f"PX_MARK={uuid.uuid4().hex}"
    monkeypatch.setenv(*text.split("="))
    yield text
    wait_for(lambda: set(processes_with(text)) <= {os.getpid()}, "the end of all that was started", within=5)


@contextlib.contextmanager
def advise(*words):
    argv = [sys.executable, "-m", "phalanx", "advise", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def named(names):
    return ",".join(f"{name}=10.203.0.{number}" for number, name in enumerate(names))


def test_of_three_hosts_the_one_slow_link_is_found_and_the_advice_names_it(mark, tmp_path):
    kept = tmp_path / "hosts.json"
    how = ("--through", THROUGH, "--probe-time", "1s", "--save", str(kept), "--json")
    with hosts(3, rate="200mbit", slow={(0, 2): "10mbit"}) as names, advise("--measure", named(names), *how) as probe:
        out, err = probe.communicate(timeout=60)
    assert probe.returncode == 0, err
    told = json.loads(out)["network"]
    [slow] = told["slow"]
    assert slow["who"] == f"link {names[0]}–{names[2]}"  # noqa: RUF001 - as a link is written
    assert 0.3e6 < slow["rate"] < 2.5e6  # of 1.25
    assert 8e6 < slow["others"] < 50e6  # of 25, on a busy machine
    assert min(told["ring"]) == told["ring"][2] < 3e6
    with advise("--measured", str(kept), "--parameters", "1M", "--batch", "64") as again:
        out, _ = again.communicate(timeout=60)
    assert again.returncode == 0
    assert "mwms, 3 workers" in out
    assert f"  - link {names[0]}–{names[2]} carries" in out  # noqa: RUF001 - as a link is written
    assert ": the ring goes at " in out


def test_a_way_that_is_closed_between_two_hosts_only_is_named_and_ends_it(mark):
    with hosts(3, rate="100mbit", slow={}) as names:
        closed(names, 0, 2)
        with advise("--measure", named(names), "--through", THROUGH) as probe:
            _, err = probe.communicate(timeout=60)
    assert probe.returncode == 3
    assert f"{names[0]} does not reach {names[2]} at 10.203.0.2:" in err
    assert "timed out" in err
    assert names[1] not in err.replace("--through", "")
    assert "open the way (--ports A-B" in err


@pytest.mark.parametrize("through", [STRAIGHT, BY_A_SHELL])
def test_the_same_words_go_through_a_shell_and_without_one(mark, through, phalanx):
    code, out, err = phalanx("advise", "--measure", THREE, "--through", through, "--probe-time", "50ms")
    assert code == 0, err
    assert out.startswith("hosts:  3 hosts of ")
    assert "all at once, each to the next: worst" in out


@pytest.fixture
def phalanx(monkeypatch, capfd):
    from phalanx.cli import main  # noqa: PLC0415 - it imports much

    def call(*words):
        monkeypatch.setattr("sys.argv", ["phalanx", *words])
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return call


def test_one_host_is_measured_for_its_memory_and_cores(mark):
    found = measure(targets("a"), through=STRAIGHT.split(), seconds=0.05)
    assert found.hosts[0].cores == len(os.sched_getaffinity(0))
    assert (found.links, found.ring) == ((), ())


def test_hosts_beyond_three_are_paired_side_by_side_and_one_link_goes_alone(mark):
    four = targets("a=127.0.0.1,b=127.0.0.2,c=127.0.0.3,d=127.0.0.4")
    found = measure(four, through=STRAIGHT.split(), seconds=0.05)
    assert {(link.source, link.target) for link in found.links} == {
        (a, b) for a in range(4) for b in range(4) if a != b
    }
    assert found.alone


@pytest.mark.parametrize(
    ("through", "said"),
    [
        (
            "sh -c 'echo no way >&2; exit 255' {host}",
            "a cannot be reached: no way; b cannot be reached: no way; c cannot",
        ),
        ("sh -c 'exit 7' {host}", "a cannot be reached: its command ended with exit code 7"),
        (
            """sh -c 'test {host} = b && exit 9; exec "$@"' sh""",
            "b cannot be reached: its command ended with exit code 9",
        ),
    ],
)
def test_a_host_out_of_reach_is_told_with_its_reason_and_what_must_work(mark, phalanx, through, said):
    code, out, err = phalanx("advise", "--measure", THREE, "--through", through)
    assert (code, out) == (3, "")
    assert f"phalanx: {said}" in err
    assert "this must work without a question: sh -c" in err


def test_a_python_that_is_too_old_says_so_at_once(mark, monkeypatch):
    monkeypatch.setattr(remote, "OLDEST", (9, 7))
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    way = f"env PX_HOST={{host}} PATH={Path(sys.executable).parent}:/usr/bin:/bin"
    with pytest.raises(PlaceError, match=f"a cannot be reached: its python3 is {mine}, and 9.7 is needed"):
        measure(targets(THREE), through=way.split(), seconds=0.1)


def test_a_command_that_is_not_there_is_the_users_to_mend(mark):
    with pytest.raises(InputError, match="no-such-shell cannot be started: No such file"):
        measure(targets(THREE), through=["no-such-shell", "{host}"], seconds=0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_on_any_host_however_the_measuring_is_ended(mark, number):
    with advise("--measure", THREE, "--through", STRAIGHT, "--probe-time", "30s") as probe:
        wait_for(lambda: len(_pouring(mark)) == 2, "a pair at work")
        probe.send_signal(number)
        out, _ = probe.communicate(timeout=30)
    assert out == ""
    assert probe.returncode == (130 if number == signal.SIGINT else -number)


def test_a_host_that_dies_is_named_and_ends_it(mark):
    with pytest.raises(PlaceError, match="was lost while it was measured: its command was ended by signal 9"):
        _disturbed(mark, lambda pid: os.kill(pid, signal.SIGKILL))


def test_a_host_that_freezes_is_named_and_ended(mark, monkeypatch):
    monkeypatch.setattr(measures, "_ANSWER", 1.0)
    with pytest.raises(PlaceError, match="b was lost while it was measured: no answer within"):
        _disturbed(mark, lambda pid: os.kill(pid, signal.SIGSTOP))


def _disturbed(mark, hurt):
    """A measuring during which host b is hurt."""

    def soon():
        hurt(wait_for(lambda: _pouring(mark).get("b"), "host b at work"))

    other = threading.Thread(target=soon)
    other.start()
    try:
        measure(targets(THREE), through=STRAIGHT.split(), seconds=2.0)
    finally:
        other.join()


def _pouring(mark):
    """The probes by host that call or are called: with more threads than the first and the one that listens."""
    found = {}
    for pid, line in processes_with(mark).items():
        with contextlib.suppress(OSError):  # it may go at any time
            if line.endswith("-m code ") and len(os.listdir(f"/proc/{pid}/task")) > 2:  # noqa: PTH208 - names only
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                host = next(word.partition(b"=")[2] for word in environ if word.startswith(b"PX_HOST="))
                found[host.decode()] = pid
    return found


@pytest.fixture
def probe():
    made = phalanx_probe.Probe({"host": 1, "key": "ab" * 32, "ports": None})
    serving = threading.Thread(target=made.serve)
    serving.start()
    yield made
    made.close()
    serving.join()


class TestWhoMayCall:
    def test_a_stranger_gets_a_nonce_and_no_more(self, probe):
        with socket.create_connection(("127.0.0.1", probe.port)) as sock:
            sock.sendall(bytes(phalanx_probe.NONCE + phalanx_probe.PROOF))
            got = b""
            while part := sock.recv(100):
                got += part
        assert len(got) == phalanx_probe.NONCE

    def test_another_host_behind_the_address_is_told_apart(self, probe):
        peer = {"host": 2, "address": "127.0.0.1", "port": probe.port}
        assert probe.greet([peer]) == {"said": ["another host answers there"]}
        assert probe.greet([peer | {"host": 1}]) == {"said": [""]}

    def test_what_is_no_probe_is_told_apart(self, probe):
        with socket.create_server(("127.0.0.1", 0)) as other:
            peer = {"host": 1, "address": "127.0.0.1", "port": other.getsockname()[1]}
            guest = threading.Thread(target=lambda: other.accept()[0].close())  # noqa: PLW0108 - in the thread
            guest.start()
            [said] = probe.greet([peer])["said"]
            guest.join()
        assert said == "something else listens there"
        assert probe.greet([peer]) == {"said": ["connection refused"]}
        assert probe.greet([peer | {"address": "no.such.host.invalid"}]) == {
            "said": ["the name does not resolve there"]
        }

    def test_ports_are_taken_from_the_range_and_a_full_one_is_told(self):
        with phalanx_probe.listener(None) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match="in use"):
                phalanx_probe.listener([port, port])


def test_a_host_that_nobody_reaches_is_named_alone():
    peers = [{"address": f"10.0.0.{n}", "port": 9} for n in range(3)]
    names = ["n0", "n1", "n2"]
    closed_ways = measures.closed_ways
    assert closed_ways([(0, 2, "timed out"), (1, 2, "timed out")], peers, names) == (
        "no host reaches n2 at 10.0.0.2:9: timed out"
    )
    assert closed_ways([(0, 2, "timed out")], peers, names) == "n0 does not reach n2 at 10.0.0.2:9: timed out"

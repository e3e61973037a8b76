"""Many tasks, started again and again: no two ever share a port (R37)."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.real

#: Listens where TF_CONFIG says, as TensorFlow does with TF_GRPC_REUSE_PORT, and says what it got.
LISTENER = """
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
port = int(config["cluster"]["worker"][config["task"]["index"]].rpartition(":")[2])
with socket.socket() as server:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("0.0.0.0", port))
    server.listen()
    print("listening", port)
"""


def start_twenty(here) -> None:
    done = here.call("run", "--workers", 20, "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    said = [here.said(f"worker:{n}") for n in range(20)]
    ports = [line.split()[1] for text in said for line in text.splitlines() if line.startswith("listening")]
    assert len(set(ports)) == 20


@pytest.mark.parametrize("start", range(2))
def test_twenty_tasks_of_one_host_have_twenty_ports(here, start):
    here.script(LISTENER)
    start_twenty(here)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_fifty_starts_of_twenty_tasks_without_one_collision(here):
    here.script(LISTENER)
    for _ in range(50):
        start_twenty(here)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_two_runs_racing_over_a_narrow_range_never_share_a_port(here):
    here.script(LISTENER)
    for _ in range(20):
        launchers = [here.start("run", "--workers", 2, "--ports", "24100-24109", "train.py") for _ in range(2)]
        assert [launcher.wait(timeout=60) for launcher in launchers] == [0, 0]

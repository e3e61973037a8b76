"""What a pod reads of its mounts and variables, and whom a pod that has come late asks for the lead."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from phalanx.agent import seek as seeking
from phalanx.agent.podfacts import Pod, read_pod
from phalanx.agent.seek import seek
from phalanx.errors import InputError
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.wire import to_wire

ENVIRON = {"PHALANX_POD_ROLE": "worker", "PHALANX_POD_INDEX": "2", "PATH": "/bin", "S3": "geheim"}
OUTLINE = Outline(
    name="ctr",
    roles=(Role(type="chief", count=1, command=("x",)), Role(type="worker", count=3, command=("x",))),
    strategy=Strategy.MWMS,
    cwd="",
)
ABOUT: dict[str, Any] = {
    "run": "ctr",
    "roles": [["chief", 0, 1], ["worker", 1, 8]],
    "lead": "ctr-chief-0.ctr",
    "port": 8476,
    "line": ["ctr-worker-0.ctr", "ctr-worker-1.ctr"],
    "shared": False,
    "secrets": {"S3": None},
    "grace": 30,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("run", "key", "work", "runs"):
        (tmp_path / name).mkdir()
    (tmp_path / "run/outline.json").write_text(json.dumps(to_wire(OUTLINE)))
    (tmp_path / "run/pod.json").write_text(json.dumps(ABOUT))
    (tmp_path / "key/key").write_text("ab" * 32 + "\n")
    return tmp_path


def read(root: Path, **more: str) -> Pod:
    return read_pod(root, {**ENVIRON, **more})


def test_a_pods_index_is_the_number_of_a_host_of_its_role(root: Path):
    pod = read(root, PHALANX_POD_NAME="ctr-worker-2-x7k2p", PHALANX_POD_IP="10.0.0.7")
    assert (pod.host, pod.name, pod.address) == (3, "ctr-worker-2-x7k2p", "ctr-worker-2.ctr")
    assert (pod.reached, pod.folder) == ("10.0.0.7:8476", root / "runs/ctr")  # another pod may have the name one day
    assert not pod.is_first
    assert not pod.may_lead
    assert [role.per_host for role in pod.outline.roles] == [1, 1]
    assert pod.environ == {"PATH": "/bin", "S3": "geheim"}  # the task's, without what is ours
    assert pod.secrets == ("geheim",)
    assert read(root, PHALANX_POD_INDEX="0").may_lead
    assert read(root, PHALANX_POD_INDEX="0", PHALANX_POD_ROLE="chief").is_first


def test_the_controllers_own_variable_says_the_index_as_well(root: Path):
    assert read_pod(root, {"PHALANX_POD_ROLE": "worker", "JOB_COMPLETION_INDEX": "1"}).host == 2


@pytest.mark.parametrize(("failed", "ignored", "before"), [("", "", 0), ("2", "", 2), ("", "1", 1), ("2", "1", 3)])
def test_annotations_tell_whether_it_replaces_another(root: Path, failed, ignored, before):
    pod = read(root, PHALANX_POD_FAILED=failed, PHALANX_POD_IGNORED=ignored)
    assert pod.replaces == before
    assert pod.epoch > 9_000 * before


def test_everything_that_is_missing_is_named_at_once(root: Path):
    (root / "run/pod.json").unlink()
    (root / "run/outline.json").write_text("{")
    (root / "key/key").write_text("\n")
    with pytest.raises(InputError) as told:
        read_pod(root, {})
    for part in ("pod.json: No such file", "outline.json: ", "key/key: ", "PHALANX_POD_ROLE", "PHALANX_POD_INDEX"):
        assert part in str(told.value)
    assert "phalanx render" in (told.value.hint or "")


@pytest.mark.parametrize(
    ("environ", "says"),
    [({"PHALANX_POD_ROLE": "ps"}, "no role 'ps'"), ({"PHALANX_POD_INDEX": "8"}, "no pod 8 of worker, which has 8")],
)
def test_a_pod_that_the_run_does_not_know_says_so(root: Path, environ, says):
    with pytest.raises(InputError, match=says):
        read(root, **environ)


class Answering:
    """Answers /healthz at one loopback address."""

    def __init__(self, address: str) -> None:
        self._socket = socket.create_server((address, 0))
        self.address, self.port = address, self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._answer, daemon=True)
        self._thread.start()

    def _answer(self) -> None:
        while True:
            try:
                made, _ = self._socket.accept()
            except OSError:
                return
            with made:
                made.recv(1000)
                made.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def lead() -> Iterator[Answering]:
    made = Answering("127.0.0.3")
    yield made
    with contextlib.suppress(OSError):
        made.close()


@pytest.mark.real
def test_the_one_that_answers_leads_whoever_is_asked_first(lead: Answering):
    found = seek(["127.0.0.2", "127.0.0.3"], lead.port, patience=5)
    assert found.lead == f"127.0.0.3:{lead.port}"


@pytest.mark.real
def test_where_nobody_answers_it_says_what_came_of_each(lead: Answering, monkeypatch):
    monkeypatch.setattr(seeking, "_AGAIN", 0.01)
    found = seek(["127.0.0.2", "no-such-pod.invalid"], lead.port, patience=0.1)
    assert found.lead is None
    assert found.says == "127.0.0.2: Connection refused; no-such-pod.invalid: its name is not known"


@pytest.mark.real
def test_names_that_are_nobodys_are_not_asked_for_as_long(lead: Answering, monkeypatch):
    monkeypatch.setattr(seeking, "_AGAIN", 0.01)
    begun = time.monotonic()
    found = seek(["no-such-pod.invalid"], lead.port, patience=60, nobody=0.0)
    assert found.lead is None
    assert time.monotonic() - begun < 30


@pytest.mark.real
def test_while_the_pod_before_it_still_leads_a_replacement_waits_and_does_not_lead(lead: Answering, monkeypatch):
    monkeypatch.setattr(seeking, "_AGAIN", 0.01)
    over = threading.Timer(1.0, lead.close)
    over.start()
    begun = time.monotonic()
    found = seek(["127.0.0.2"], lead.port, patience=0.2, former="127.0.0.3")
    assert (found.lead, found.says) == (None, "127.0.0.2: Connection refused")
    assert 1.0 < time.monotonic() - begun < 10
    over.join()

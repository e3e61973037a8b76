"""Pods: what a test does with them wherever they are, and pods that are processes of this machine.

A scenario is written against `Cluster`, so that the same one runs on a real cluster.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from launched import wait_for
from phalanx.engine import bundle
from phalanx.plan.outline import Outline
from phalanx.plan.pods import one_task_a_host, pod_sets
from phalanx.plan.wire import to_wire
from phalanx.protocol.signing import RunKey

RECORD = "phalanx-record: "

#: As a ConfigMap takes them.
PIECE = 180_000


class Cluster(Protocol):
    """The pods of one run. A pod is named by its role and index; one that is replaced keeps that name."""

    #: Whether lost pods come back by themselves.
    replaces: bool

    def start(self) -> None:
        """All pods of the run, at once."""

    def kill(self, role: str, index: int) -> None:
        """All processes of its container are gone at once, as if its machine were."""

    def end(self, role: str, index: int) -> None:
        """It is told to end, and killed after its grace: a drain, an eviction, a deletion."""

    def replace(self, role: str, index: int) -> None:
        """What the Job controller does for a pod that is gone."""

    def log(self, role: str, index: int) -> str:
        """What its containers so far have said, standard output and error."""

    def code(self, role: str, index: int) -> int | None:
        """The exit code of the newest one; None while it runs."""

    def word(self, role: str, index: int) -> str:
        """Its termination message."""

    def succeeded(self) -> bool:
        """Whether every pod has ended, and the cluster takes the run for a success."""


def records(cluster: Cluster, role: str, index: int) -> list[dict[str, Any]]:
    """The records that a pod has told as the lead's."""
    lines = cluster.log(role, index).splitlines()
    return [json.loads(line.removeprefix(RECORD)) for line in lines if line.startswith(RECORD)]


def event(cluster: Cluster, role: str, index: int, kind: str, number: int = 1, **fields: object) -> dict[str, Any]:
    """Wait until the lead in that pod has told as many of the kind with these fields; the last of those."""

    def found() -> list[dict[str, Any]]:
        told = {one["seq"]: one for one in records(cluster, role, index)}.values()
        return [one for one in told if one["event"] == kind and fields.items() <= one.items()][number - 1 :]

    return wait_for(found, f"{number} of {kind} {fields} of {role} {index}")[0]


class LocalPods:
    """Each pod is a process tree in a PID namespace of its own, with its own folder and its own loopback address."""

    replaces = False

    def __init__(
        self, folder: Path, outline: Outline, *, grace: float = 5.0, run: str = "pods", shared: bool = False
    ) -> None:
        self.folder, self.grace, self.run, self.shared = folder, grace, run, shared
        self.outline = one_task_a_host(outline)
        self.key = RunKey.new()
        self.port = 30100 + secrets.randbelow(1900)
        self._net = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}"
        self._numbers = {pods.role: pods for pods in pod_sets(self.outline)}
        self._pods: dict[tuple[str, int], list[subprocess.Popen[bytes]]] = {}
        self._pieces = folder / "agent"
        self._make_agent()

    def _make_agent(self) -> None:
        self._pieces.mkdir(parents=True)
        whole = self.folder / "agent.pyz"
        bundle.write_zip(whole)
        data = whole.read_bytes()
        for number, start in enumerate(range(0, len(data), PIECE)):
            (self._pieces / f"agent.{number:02}").write_bytes(data[start : start + PIECE])

    def start(self) -> None:
        for pods in self._numbers.values():
            for index in range(pods.count):
                self.replace(pods.role, index)

    def address(self, role: str, index: int) -> str:
        return f"{self._net}.{10 + self._numbers[role].first + index}"

    def replace(self, role: str, index: int) -> None:
        before = self._pods.setdefault((role, index), [])
        root = self.root(role, index, len(before))
        self._mount(root)
        address = self.address(role, index)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "work"),
            "PHALANX_POD_ROLE": role,
            "PHALANX_POD_INDEX": str(index),
            "PHALANX_POD_NAME": f"{self.run}-{role}-{index}-{len(before):05}",
            "PHALANX_POD_ADDRESS": address,
            "PHALANX_POD_IP": address,
            "PHALANX_POD_FAILED": str(len(before)) if before else "",
            "PHALANX_POD_IGNORED": "",
        }
        line = f'cat {self._pieces}/agent.* > {root}/work/agent.pyz && exec "$@"'
        argv = [sys.executable, "-S", "-E", f"{root}/work/agent.pyz", "pod", str(root), address]
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with (root / "log").open("wb") as log:
            made = subprocess.Popen(
                [*alone, "sh", "-c", line, "sh", *argv],
                cwd=self.folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        before.append(made)

    def root(self, role: str, index: int, number: int = -1) -> Path:
        """What is mounted into the newest pod of that name, or the one of that number."""
        return self.folder / f"{role}-{index}.{len(self._pods[role, index]) - 1 if number < 0 else number}"

    def _mount(self, root: Path) -> None:
        for name in ("run", "key", "work"):
            (root / name).mkdir(parents=True)
        if self.shared:
            (self.folder / "volume").mkdir(exist_ok=True)
            (root / "runs").symlink_to(self.folder / "volume")
        else:
            (root / "runs").mkdir()
        (root / "termination-log").touch()
        (root / "key" / "key").write_text(self.key.hex())
        (root / "run" / "outline.json").write_text(json.dumps(to_wire(self.outline)))
        names = [(pods.role, index) for pods in self._numbers.values() for index in range(pods.count)]
        about = {
            "run": self.run,
            "roles": [[pods.role, pods.first, pods.most] for pods in self._numbers.values()],
            "lead": self.address(*names[0]),
            "port": self.port,
            "line": [self.address(*name) for name in names[:5]],
            "shared": self.shared,
            "secrets": {},
            "grace": self.grace,
        }
        (root / "run" / "pod.json").write_text(json.dumps(about))

    def kill(self, role: str, index: int) -> None:
        pod = self._pods[role, index][-1]
        pod.kill()
        pod.wait()

    def end(self, role: str, index: int) -> None:
        pod = self._pods[role, index][-1]
        children = Path(f"/proc/{pod.pid}/task/{pod.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGTERM)
        try:
            pod.wait(self.grace)
        except subprocess.TimeoutExpired:
            self.kill(role, index)

    def log(self, role: str, index: int) -> str:
        return "".join(
            (self.root(role, index, number) / "log").read_text(errors="replace")
            for number in range(len(self._pods[role, index]))
        )

    def code(self, role: str, index: int) -> int | None:
        return self._pods[role, index][-1].poll()

    def succeeded(self) -> bool:
        return all(self.code(*name) == 0 for name in self._pods)

    def word(self, role: str, index: int) -> str:
        return (self.root(role, index) / "termination-log").read_text()

    def close(self) -> None:
        """Nothing of it is left."""
        for role, index in self._pods:
            self.kill(role, index)


def can_be_here() -> str:
    """Why pods cannot be processes of this machine; empty where they can."""
    if not shutil.which("unshare"):
        return "unshare (util-linux) is not installed"
    tried = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"], capture_output=True, check=False
    )
    return tried.stderr.decode().strip() if tried.returncode else ""


def local_pods(folder: Path, outline: Outline, **more: Any) -> Iterator[LocalPods]:
    """For a fixture."""
    made = LocalPods(folder, outline, **more)
    try:
        yield made
    finally:
        made.close()

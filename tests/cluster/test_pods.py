"""The stories of pods on a real cluster: its controllers replace what is lost, its kubelets say TERM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from beds.kubernetes.cluster import IMAGE, until
from phalanx.plan.marks import RUN
from pods import event, records
from podstories import TRAIN, is_drained_of_a_pod_and_then_of_its_lead, loses_a_pod_and_then_its_lead

if TYPE_CHECKING:
    from beds.kubernetes.cluster import Cluster as RealCluster

pytestmark = pytest.mark.timeout(400)

JOB = f"""name: pods
image: {IMAGE}
command: [python3, -c, {json.dumps(TRAIN)}]
strategy: none
roles: {{worker: {{count: 3}}}}
restart: {{max: 5}}
placement: {{spread: host}}
on: {{kubernetes: {{pull: Never, grace: 10s}}}}
"""


class RealPods:
    """See pods.Cluster. What a deleted pod has said is kept for as long as somebody has asked for it before."""

    replaces = True

    def __init__(self, cluster: RealCluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        self._logs: dict[str, str] = {}

    def start(self) -> None:
        (self.folder / "job.yaml").write_text(JOB, encoding="utf-8")
        words = [sys.executable, "-m", "phalanx", "render", "job.yaml", "-o", "k8s"]
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True, timeout=60)
        self.cluster.kubectl("apply", "-n", self.namespace, "-f", str(self.folder / "k8s"))

    def _pods(self, role: str, index: int) -> list[dict[str, Any]]:
        """Oldest first."""
        found = self.cluster.list("pods", namespace=self.namespace, labels=f"{RUN}=pods,phalanx/role={role}")
        mine = [pod for pod in found if pod["spec"].get("hostname") == f"pods-{role}-{index}"]
        return sorted(mine, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def _name(self, role: str, index: int) -> str:
        return str(self._pods(role, index)[-1]["metadata"]["name"])

    def kill(self, role: str, index: int) -> None:
        self.log(role, index)
        self.cluster.kill_container(self._name(role, index), namespace=self.namespace)

    def end(self, role: str, index: int) -> None:
        self.log(role, index)
        self.cluster.kubectl("delete", "pod", self._name(role, index), "-n", self.namespace, "--wait=false")

    def replace(self, role: str, index: int) -> None:
        raise AssertionError("the Job does")

    def log(self, role: str, index: int) -> str:
        for pod in self._pods(role, index):
            name = str(pod["metadata"]["name"])
            try:
                said = self.cluster.logs(name, namespace=self.namespace)
            except (AssertionError, subprocess.CalledProcessError, RuntimeError):
                continue  # it has not started, or is gone
            if name not in self._logs or len(said) > len(self._logs[name]):
                self._logs[name] = said
        return "".join(text for name, text in self._logs.items() if name.startswith(f"pods-{role}-{index}-"))

    def _ended(self, role: str, index: int) -> dict[str, Any]:
        [status] = self._pods(role, index)[-1]["status"]["containerStatuses"]
        return dict(status["state"].get("terminated", {}))

    def code(self, role: str, index: int) -> int | None:
        return self._ended(role, index).get("exitCode")

    def word(self, role: str, index: int) -> str:
        return str(self._ended(role, index).get("message", ""))

    def succeeded(self) -> bool:
        told = self.cluster.get("job", "pods-worker", namespace=self.namespace).get("status", {})
        return any(one["type"] == "Complete" for one in told.get("conditions", []))


@pytest.fixture
def pods(cluster: RealCluster, namespace: str, tmp_path: Path) -> RealPods:
    return RealPods(cluster, namespace, tmp_path)


def test_a_run_survives_the_loss_of_a_container_and_of_that_of_its_lead(pods: RealPods):
    loses_a_pod_and_then_its_lead(pods)
    told = records(pods, "worker", 1)
    assert sorted({one["seq"] for one in told}) == list(range(1, max(one["seq"] for one in told) + 1))
    assert until(lambda: pods.word("worker", 1), "the last word").startswith("pods succeeded after ")


def test_deleted_pods_stop_the_group_where_it_can_and_hand_the_lead_over(pods: RealPods):
    is_drained_of_a_pod_and_then_of_its_lead(pods)
    told = {one["seq"]: one for one in records(pods, "worker", 1)}.values()
    assert not [one for one in told if one["event"] in ("host-lost", "culprit-named")]
    assert [one["host"] for one in told if one["event"] == "host-left"] == [1, 0]
    assert event(pods, "worker", 1, "run-ended")["exit_code"] == 0

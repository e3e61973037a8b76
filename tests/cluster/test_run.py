"""`phalanx run --on kubernetes` and its sister verbs, on a real control plane with real kubelets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from beds.kubernetes.cluster import IMAGE, until

pytestmark = pytest.mark.real

#: Says a number each tenth of a second; ends well by itself.
STEPS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
for step in range(int(sys.argv[1])):
    print(f"step {step} of {os.environ['PHALANX_TASK']} in {os.environ['PHALANX_GENERATION']}", flush=True)
    time.sleep(0.1)
"""


class User:
    """Somebody with a kubeconfig, a folder and a state of their own."""

    def __init__(self, folder: Path, kubeconfig: Path, namespace: str) -> None:
        self.folder, self.namespace = folder, namespace
        folder.mkdir(exist_ok=True)
        self.environ = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "XDG_STATE_HOME": str(folder / "state"),
            "PHALANX_RUNS": str(folder / "runs"),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "phalanx", *words],
            env=self.environ,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, code: int = 0, timeout: float = 200) -> str:
        running = self.start(*words)
        out, err = running.communicate(timeout=timeout)
        assert running.returncode == code, (running.returncode, out, err)
        return out + err

    def job(self, command: list[str], roles: str, *, more: str = "", **kubernetes: Any) -> str:
        """Write a job.yaml; returns its name."""
        said = {"namespace": self.namespace, "ttl": "1h", **kubernetes}
        (self.folder / "job.yaml").write_text(
            f"name: t\ncommand: {json.dumps(command)}\nimage: {IMAGE}\nroles: {roles}\n"
            f"placement: {{spread: host}}\n{more}\non: {{kubernetes: {json.dumps(said)}}}\n"
        )
        return "job.yaml"

    def records(self) -> list[dict[str, Any]]:
        """Those of the newest run, as they stand in its folder."""
        return [json.loads(line) for line in self("events", "--json").splitlines() if line.startswith("{")]

    def awaits(self, kind: str, number: int = 1, seconds: float = 90, **fields: Any) -> dict[str, Any]:
        """The event of that kind, once the records of a followed run have it."""

        def look() -> dict[str, Any] | None:
            found = []
            for path in self.folder.glob("runs/*/events.jsonl"):
                found = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
            found = [one for one in found if one["event"] == kind and fields.items() <= one.items()]
            return found[number - 1] if len(found) >= number else None

        found: dict[str, Any] = until(look, f"{number} of {kind} {fields}", seconds=seconds)
        return found


@pytest.fixture
def user(tmp_path, cluster, namespace):
    return User(tmp_path / "jane", cluster.kubeconfig, namespace)


@pytest.fixture
def steps(cluster):
    (cluster.share / "steps.py").write_text(STEPS)
    return "/share/steps.py"


def left(cluster, namespace) -> list[str]:
    """The objects of runs that are there."""
    kinds = "jobs,pods,services,configmaps,secrets,networkpolicies,roles,rolebindings,serviceaccounts"
    names = cluster.kubectl("get", kinds, "-n", namespace, "-l", "phalanx/run", "-o", "name")
    return names.split()


def pods(cluster, namespace) -> list[dict[str, Any]]:
    return cluster.list("pods", namespace=namespace, labels="phalanx/run")


def delete_pod(cluster, namespace, index: int) -> None:
    """That of a worker, and wait for nothing."""
    names = [one["metadata"]["name"] for one in pods(cluster, namespace)]
    victim = next(name for name in names if name.split("-")[-2] == str(index))
    cluster.kubectl("delete", "pod", victim, "-n", namespace, "--wait=false")


@pytest.mark.tensorflow
def test_digits_train_on_two_nodes_in_a_restricted_namespace(cluster, namespace, user):
    user.job(
        ["python3", "/examples/custom_loop/train.py", "--epochs", "3"],
        "{worker: {count: 2, memory: 2Gi}}",
        more="env: {PYTHONPATH: /opt/venv/lib/python3.11/site-packages}\nstrategy: mwms\n",
        ttl="5s",
    )
    said = user("run", "job.yaml", "--on", "kubernetes", timeout=280)
    assert "succeeded" in said
    assert len({pod["spec"]["nodeName"] for pod in pods(cluster, namespace)} or {"a", "b"}) == 2
    assert "accuracy" in user("logs", "last", "worker:0")
    assert any(one["event"] == "noted" and one["message"].startswith("image: ") for one in user.records())
    until(lambda: not left(cluster, namespace), "the TTL", seconds=60)


def test_a_deleted_pod_is_named_and_replaced_and_the_run_goes_on(cluster, namespace, user, steps):
    user.job(["python3", steps, "100"], "{worker: {count: 2}}", more="strategy: mwms\n")
    running = user.start("run", "job.yaml", "--on", "kubernetes")
    user.awaits("task-started", 2)
    delete_pod(cluster, namespace, 1)
    user.awaits("task-started", 4)
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, (out, err)
    assert "is being deleted" in out


def test_a_container_out_of_memory_is_named_with_its_limit(cluster, namespace, user, steps):
    user.job(["python3", steps, "100"], "{worker: {count: 2, memory: 400Mi}}", more="strategy: mwms\n")
    running = user.start("run", "job.yaml", "--on", "kubernetes")
    user.awaits("task-started", 2)
    victim = next(one for one in pods(cluster, namespace) if one["metadata"]["name"].split("-")[-2] == "1")
    cluster.exhaust(victim["metadata"]["name"], namespace=namespace)
    lost = user.awaits("host-lost")
    culprit = user.awaits("culprit-named")
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, (out, err)
    assert "OOMKilled: it used more memory than its limit of 400Mi" in lost["reason"] + culprit["cause"]


def test_stop_ends_a_detached_run_found_elsewhere_and_leaves_nothing(cluster, namespace, user, steps, tmp_path):
    user.job(["python3", steps, "3000"], "{worker: {count: 2}}", more="strategy: mwms\n")
    run = user("run", "--detach", "job.yaml", "--on", "kubernetes").split()[0]
    other = User(tmp_path / "john", cluster.kubeconfig, namespace)
    there = ("--on", "kubernetes", "--namespace", namespace)
    assert run in other("ps", *there)
    assert "step" in other("logs", run, "worker:1")
    assert "running" in other("report", "last")
    assert "nothing of it is left" in other("stop", run)
    until(lambda: not left(cluster, namespace), "everything to go", seconds=60)
    assert "stopped" in other("report", run)
    assert "stopped or deleted from elsewhere" in user("report", run)


def test_a_run_without_room_says_the_schedulers_reason_and_releases_everything(cluster, namespace, user, steps):
    user.job(["python3", steps, "10"], "{worker: {count: 2, cpus: 1000}}", more="health: {start: 8s}\n")
    said = user("run", "job.yaml", "--on", "kubernetes", code=3)
    assert "Insufficient cpu" in said
    until(lambda: not left(cluster, namespace), "everything to go", seconds=60)


def test_what_pods_wait_for_is_said(cluster, namespace, user, steps):
    user.job(
        ["python3", steps, "10"],
        "{worker: {count: 1}}",
        more="health: {start: 15s}\nsecrets: [{name: s3, env: S3, from: {secret: s3, key: token}}]\n",
    )
    said = user("run", "job.yaml", "--on", "kubernetes", code=3)
    assert "the Secret 's3' does not exist" in said


def test_an_api_server_that_is_away_for_20_s_costs_the_run_nothing(cluster, namespace, user, steps):
    user.job(["python3", steps, "300"], "{worker: {count: 2}}", more="strategy: mwms\n")
    running = user.start("run", "job.yaml", "--on", "kubernetes")
    user.awaits("task-started", 2)
    cluster.stop_api()
    time.sleep(20)
    cluster.start_api()
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, (out, err)
    assert [one["event"] for one in user.records()].count("generation-bound") == 1
    assert "step 299 of worker:1" in user("logs", "last", "worker:1")


def test_the_leads_own_pod_may_go(cluster, namespace, user, steps):
    user.job(["python3", steps, "150"], "{worker: {count: 2}}", more="strategy: mwms\n")
    running = user.start("run", "job.yaml", "--on", "kubernetes")
    user.awaits("task-started", 2)
    delete_pod(cluster, namespace, 0)
    user.awaits("task-started", 4)
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, (out, err)


def test_scaling_makes_pods_and_takes_them_away(cluster, namespace, user, steps):
    user.job(["python3", steps, "400"], "{worker: {count: 2, min: 1, max: 3}}", more="strategy: mwms\n")
    running = user.start("run", "job.yaml", "--on", "kubernetes")
    user.awaits("task-started", 2)
    user("scale", "last", "3")
    user.awaits("task-started", 5)
    user("scale", "last", "2")
    user.awaits("task-started", 7)
    until(lambda: sum(one["status"]["phase"] == "Running" for one in pods(cluster, namespace)) == 2, "two pods")
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, (out, err)

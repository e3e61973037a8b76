"""The examples with tasks that do not train, and the one that is asked to leave: by phalanx, and by hand."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from byhand import EXAMPLES, epochs, figures, finish, start, together
from launched import wait_for
from phalanx.agent.ports import PortHolder

pytestmark = [pytest.mark.real, pytest.mark.tensorflow, pytest.mark.timeout(900)]

SIDECAR = EXAMPLES / "sidecar_evaluator" / "train.py"
PREEMPTED = EXAMPLES / "preemption" / "train.py"
SERVICE = EXAMPLES / "tf_data_service"

#: Seconds for one thing to happen on a machine that is busy with other tests.
LONG = 300


def said(here, task: str) -> str:
    """All that its attempts have printed."""
    folder = here.run_folder() / "logs" / task.replace(":", "_")
    return "".join(path.read_text(errors="replace") for path in sorted(folder.glob("*.out")))


def ended(launcher) -> None:
    out, err = launcher.communicate(timeout=LONG)
    assert launcher.returncode == 0, out + err


def test_an_evaluator_scores_what_the_workers_save_and_they_train_as_by_hand(here, tmp_path):
    """R01, R81: it is in nobody's cluster, and has a TF_CONFIG of its own."""
    words = ("--workers", 2, "--evaluator", "--checkpoint", "ckpt", SIDECAR, "--checkpoint", "{checkpoint}")
    ended(here.start("run", *words, "--epochs", 3))
    scores = re.findall(r"^scored: loss \d\.\d+ accuracy (0\.\d+)$", said(here, "evaluator:0"), re.MULTILINE)
    assert float(scores[-1]) > 0.85  # three epochs
    report = here.report()
    assert [(task["task"], task["exit_code"]) for task in report["tasks"]] == [
        ("worker:0", 0),
        ("worker:1", 0),
        ("evaluator:0", 0),
    ]
    byhand = together({"worker": 2}, SIDECAR, "--checkpoint", tmp_path / "ckpt", "--epochs", 3)
    lines = epochs(said(here, "worker:0"))
    assert len(lines) == 3
    assert epochs("\n".join(byhand["worker:0"])) == epochs("\n".join(byhand["worker:1"])) == lines
    alone = {"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}
    [score] = [
        line
        for line in finish(start(SIDECAR, "--checkpoint", tmp_path / "ckpt", "--epochs", 3, tf_config=alone))
        if line.startswith("scored")
    ]
    assert f"accuracy {scores[-1]}" in score


def test_a_chief_and_a_worker_asked_to_leave_save_one_step_and_end_with_the_loss_of_an_undisturbed_run(here, tmp_path):
    """42 is no failure; the chief's checkpoint is gone on from, and its exit is the success."""
    words = (PREEMPTED, "--epochs", 3, "--checkpoint")
    launcher = here.start(
        *("run", "--chief", "--workers", 1, "--max-restarts", 0, "--checkpoint", "ckpt"),
        *words,
        "{checkpoint}",
        "--steps-delay",
        0.05,
    )
    wait_for(lambda: "epoch 1/" in said(here, "worker:0"), "an epoch", within=LONG)
    os.kill(here.event("task-started", task="worker:0")["pid"], signal.SIGTERM)
    ended(launcher)
    [restart] = here.events("restart-ordered")
    assert (restart["why"], restart["counted"]) == ("preempted: restarted for free", False)
    [resumed] = here.events("resumed")
    assert Path(resumed["path"]).parent == here.folder / "ckpt"  # the chief's own
    assert {(e["task"], e.get("code")) for e in here.events("task-exited") if e["generation"] == 1} <= {
        ("chief:0", 42),
        ("worker:0", 42),
        ("worker:0", None),  # the others are told to leave while they do
        ("chief:0", None),
    }
    last = said(here, "chief:0").splitlines()[-2:]
    byhand = together({"worker": 2}, *words, tmp_path / "ckpt")
    assert byhand["worker:0"][-2:] == last
    assert float(last[1].removeprefix("accuracy ")) > 0.9
    assert here.report()["cause"] == "chief:0 exited with code 0"


def test_a_dispatcher_that_is_killed_comes_back_alone_and_the_workers_go_on_with_what_the_readers_have(here):
    """R96."""
    launcher = here.start("run", SERVICE / "job.yaml")
    wait_for(lambda: "epoch 1/" in said(here, "worker:0"), "an epoch", within=LONG)
    os.kill(here.event("task-started", task="dispatcher:0")["pid"], signal.SIGKILL)
    ended(launcher)
    [restart] = here.events("restart-ordered")
    assert restart["tasks"] == ["dispatcher:0"]
    report = here.report()
    assert report["generation"] == 1
    assert {task["task"]: task["state"] for task in report["tasks"]} == {
        "worker:0": "succeeded",
        "worker:1": "succeeded",
        "dispatcher:0": "ended",
        "reader:0": "ended",
        "reader:1": "ended",
    }
    for worker in ("worker:0", "worker:1"):
        found = re.search(r"^accuracy (0\.\d+)$", said(here, worker), re.MULTILINE)
        assert found
        assert float(found[1]) > 0.85
    plan = json.loads((here.run_folder() / "plan.json").read_text())
    assert list(plan["cluster"]) == ["worker"]


def test_the_data_service_by_hand_feeds_a_worker_that_is_alone(tmp_path):
    holder = PortHolder()
    dispatcher, reader = (f"127.0.0.1:{port}" for port in holder.hold(2))
    holder.release_all()
    servers = [
        start(SERVICE / "dispatcher.py", "--port", dispatcher.rpartition(":")[2], "--journal", tmp_path),
        start(SERVICE / "data_worker.py", "--dispatcher", dispatcher, "--address", reader),
    ]
    try:
        lines = finish(start(SERVICE / "train.py", "--service", dispatcher, "--epochs", 3))
    finally:
        for server in servers:
            server.kill()
            server.communicate()
    assert len(figures(lines, "loss")) == 3
    assert float(lines[-1].removeprefix("accuracy ")) > 0.8

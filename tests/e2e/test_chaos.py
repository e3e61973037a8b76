"""`phalanx chaos` on a training loop in small, one fault a kind, and once on real TensorFlow."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from launched import wait_for

DIGITS = Path(__file__).parents[2] / "examples" / "custom_loop" / "train.py"

pytestmark = pytest.mark.real

#: Listens, steps, saves after each epoch, resumes from there; what it comes to depends on every step.
LOOP = """
import json, os, pathlib, socket, sys, time
conf = json.loads(os.environ["TF_CONFIG"])
host, _, port = conf["cluster"][conf["task"]["type"]][conf["task"]["index"]].rpartition(":")
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
listener.bind((host, int(port)))
listener.listen()
path = pathlib.Path(sys.argv[1], os.environ["PHALANX_TASK"])
path.parent.mkdir(parents=True, exist_ok=True)
epoch, loss = json.loads(path.read_text()) if path.exists() else (0, 1.0)
while epoch < int(sys.argv[2]):
    for _ in range(5):
        time.sleep(0.02)
        loss *= 0.987654321
    epoch += 1
    print(f"epoch {epoch} loss {loss:.6f}", flush=True)
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps([epoch, loss]))
    new.replace(path)
print(f"end {loss:.9f}", flush=True)
"""


def chaos(here, *words, epochs=20, code=0, reference=False, budget=3):
    here.script(LOOP, "loop.py")
    first = ("chaos", "--json", "--workers", 2, "--max-restarts", budget, *(() if reference else ("--no-reference",)))
    done = here.call(*first, *words, "loop.py", "{run}/ckpt", epochs)
    assert done.returncode == code, done.stdout + done.stderr
    here.gone(within=3)
    return json.loads(done.stdout)


def only(story):
    [fault] = story["faults"]
    return fault


def test_a_killed_worker_comes_back_and_the_result_is_that_of_the_undisturbed_run(here):
    story = chaos(here, "--fault", "kill:worker:1@/epoch 4/", "--compare", "^epoch", reference=True)
    fault = only(story)
    assert (fault["outcome"], fault["sign"], fault["blamed"]) == ("recovered", "exit", "worker:1")
    assert 0 <= fault["detected"] <= fault["recovered"]
    assert (story["result"], story["comparison"]["equal"], story["comparison"]["lines"]) == ("succeeded", True, 21)
    assert json.loads((Path(story["folder"]) / "chaos.json").read_text()) == story


def test_without_a_budget_a_kill_is_the_one_expected_cause(here):
    story = chaos(here, "--fault", "kill:worker:0@0.3s", budget=0)
    assert (only(story)["outcome"], story["result"], story["good"]) == ("ended", "failed", True)


@pytest.mark.parametrize("fault", ["stall:worker:1=1s", "clock=1h", "clock=-1h", "disk=1s"])
def test_a_fault_that_passes_harms_nothing(here, fault):
    story = chaos(here, "--fault", f"{fault}@/epoch 2/", epochs=60)
    assert (only(story)["outcome"], story["result"]) == ("unharmed", "succeeded")


def test_a_task_that_is_stopped_for_a_moment_is_found_or_goes_on(here):
    fault = only(chaos(here, "--fault", "stop:worker:1=0.5s@/epoch 2/", epochs=60))
    assert fault["outcome"] in ("unharmed", "recovered")
    assert fault["blamed"] in ("", "worker:1")


def test_a_task_that_is_stopped_for_ever_is_found_and_starts_again(here):
    fault = only(chaos(here, "--fault", "stop:worker:1@/epoch 2/", epochs=60))
    assert (fault["outcome"], fault["sign"], fault["blamed"]) == ("recovered", "stopped", "worker:1")


def test_another_lead_takes_over_and_no_task_notices(here):
    story = chaos(here, "--fault", "lead@/epoch 2/", epochs=60)
    assert (only(story)["outcome"], only(story)["sign"], story["restarts"]) == ("recovered", "new lead", 0)
    assert len(here.events("task-started")) == 2


def test_a_host_comes_back_and_the_group_with_it(here):
    words = ("--hosts", 2, "--fault", "agent:1=0.5s@/epoch 2/")
    story = chaos(here, *words, "--compare", "^epoch", reference=True)
    assert (only(story)["outcome"], only(story)["blamed"]) == ("recovered", "host 1")
    assert story["comparison"]["equal"]


def test_a_run_outlives_every_host_that_it_began_on(here):
    """R84: others have joined in their place, and the launcher, which did not start them, follows on."""
    faults = ("--fault", "agent:0=0.5s@/epoch 2/", "--fault", "agent:1=0.5s", "--fault", "agent:1=0.1s")
    story = chaos(here, "--hosts", 2, *faults, epochs=60, budget=9)
    assert [fault["outcome"] for fault in story["faults"]] == ["recovered"] * 3
    assert story["result"] == "succeeded"


def test_an_elastic_run_is_scaled(here):
    words = ("--strategy", "mwms", "--min-workers", 1, "--fault", "scale=1@/epoch 2/")
    story = chaos(here, *words, epochs=40)
    assert (only(story)["outcome"], only(story)["sign"]) == ("recovered", "resize")
    assert len(here.events("generation-bound")[-1]["places"]) == 1


def test_a_stalled_task_lives_and_does_nothing_until_somebody_ends_it(here):
    story = chaos(here, "--fault", "stall:worker:0@/epoch 3/", "--patience", "1s", code=1)
    assert only(story)["outcome"] == "hung"
    log = (Path(story["folder"]) / "logs" / "worker_0" / "g1.a1.out").read_text()
    assert "epoch 5" not in log


def test_the_death_of_the_launcher_stops_an_attached_run(here):
    story = chaos(here, "--fault", "launcher@/epoch 2/", epochs=200)
    assert (only(story)["outcome"], story["result"]) == ("ended", "stopped")


def test_records_do_not_jump_with_the_clock_of_agent_and_lead(here):
    story = chaos(here, "--fault", "clock=2h@/epoch 2/", epochs=40)
    assert only(story)["outcome"] == "unharmed"
    times = [event["time"] for event in here.events()]
    assert times[-1] - times[0] < 600


def test_a_run_that_goes_on_is_hurt_and_left(here):
    here.script(LOOP, "loop.py")
    launcher = here.start("run", "--workers", 2, "--max-restarts", 1, "loop.py", "{run}/ckpt", 40)
    run = here.run_folder().name
    wait_for(lambda: "epoch 2" in here.said("worker:0"), "two epochs")
    done = here.call("chaos", run, "--fault", "kill:worker:1", "--seed", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recovered" in done.stdout
    assert f"{run} running after 1 restart" in done.stdout
    assert launcher.wait(60) == 0


def test_a_user_who_may_not_touch_anothers_sockets_is_told_what_would_help(here, monkeypatch):
    """The kernel's answer to pidfd_getfd without the right to trace is asked of a process of nobody's own."""
    from phalanx.chaos import sockets  # noqa: PLC0415 - for this test alone
    from phalanx.chaos.whereabouts import CannotError  # noqa: PLC0415 - as above
    from phalanx.process import process  # noqa: PLC0415 - as above

    mine = process(os.getpid())
    monkeypatch.setattr(sockets._libc, "syscall", lambda *_: -1)
    monkeypatch.setattr(sockets.ctypes, "get_errno", lambda: 1)
    with pytest.raises(CannotError) as wrong:
        sockets._handle(mine, 0)
    assert "ptrace_scope" in (wrong.value.hint or "")


@pytest.mark.tensorflow
@pytest.mark.timeout(300)
def test_tensorflow_comes_to_the_same_after_a_kill(here):
    words = ("--workers", 2, "--max-restarts", 3, "--compare", "^epoch", "--fault", "kill:worker:1@/epoch 3/")
    done = here.call("chaos", "--json", *words, DIGITS, "--epochs", 6, "--checkpoint", "{run}/ckpt")
    assert done.returncode == 0, done.stdout + done.stderr
    story = json.loads(done.stdout)
    assert only(story)["outcome"] == "recovered"
    assert story["comparison"]["equal"]
    here.gone(within=5)

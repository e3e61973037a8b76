"""The list of faults that a launcher must take, done to real TensorFlow: what other tests have not shown already.

The whole list, with the tests that show each entry, is tests/workshop/test_fault_list.py.
"""

from __future__ import annotations

import json
import os
import signal
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from launched import Place, wait_for

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

#: A chief and a worker that count to 24 together and save every second step; an evaluator that never ends.
#: `killed` maps generation → (task, when): the task kills itself there, as kill -9 would.
MIRRORED = """
import json, os, signal, socket, sys, time
from pathlib import Path
task, generation = os.environ["PHALANX_TASK"], os.environ["PHALANX_GENERATION"]
attempt = os.environ.get("PHALANX_ATTEMPT", "1")
killed = json.loads(sys.argv[1])

def reach(when, name=generation):
    if killed.get(name) == [task, when]:
        print("struck", when, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

def chief_gone():
    return Path("done").exists() and not Path("/proc", Path("done").read_text()).exists()

config = json.loads(os.environ["TF_CONFIG"])
if task != "evaluator:0":
    place = config["cluster"][config["task"]["type"]][config["task"]["index"]]
    with socket.socket() as thief:
        try:
            thief.bind(("0.0.0.0", int(place.rpartition(":")[2])))
        except OSError:
            print("port held", flush=True)
if task == "evaluator:0" and f"evaluator {generation}.1" not in killed and "last" in killed:
    time.sleep(600)  # in this generation nobody strikes it
import tensorflow as tf
if task == "evaluator:0":
    attempt = f"evaluator {generation}.{attempt}"
    reach("before", attempt)
    seen = None
    while True:
        latest = tf.train.latest_checkpoint("ckpt")
        if latest and latest != seen:
            seen = latest
            print("evaluated", tf.train.load_variable(latest, "step/.ATTRIBUTES/VARIABLE_VALUE"), flush=True)
            reach("mid", attempt)
            if attempt == f"evaluator {generation}.3":
                Path("evaluated").touch()
        if chief_gone():
            reach("after", attempt)
        time.sleep(0.1)

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = tf.Variable(tf.zeros([10]))
step = tf.Variable(0, dtype=tf.int64)

class Slow(tf.train.experimental.PythonState):
    def serialize(self):
        if int(step) > 4:
            reach("save")
        return "state"
    def deserialize(self, string_value):
        pass

@tf.function
def train():
    def one():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((weights - 1.0) ** 2)
        gradient = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
        weights.assign_sub(0.01 * gradient)
    strategy.run(one)

checkpoint = tf.train.Checkpoint(weights=weights, step=step, slow=Slow())
mine = "ckpt" if task == "chief:0" else os.path.join("other", task.replace(":", "_"))
manager = tf.train.CheckpointManager(checkpoint, mine, max_to_keep=2)
if latest := tf.train.latest_checkpoint("ckpt"):
    checkpoint.restore(latest)
print("from", int(step), flush=True)
reach("before")
while int(step) < 24:
    train()
    step.assign_add(1)
    time.sleep(0.03)
    while int(step) == 20 and f"evaluator {generation}.1" in killed and not Path("evaluated").exists():
        time.sleep(0.05)
    if int(step) % 2 == 0:
        manager.save()
    elif int(step) > 4:
        reach("mid")
print("sum", float(tf.reduce_sum(weights)), flush=True)
if task == "worker:0" and "last" in killed:
    while not chief_gone():
        time.sleep(0.02)
    reach("after", "last")
if task == "chief:0" and "last" in killed:
    Path("done").write_text(str(os.getpid()))
    sys.stdout.flush()
    os._exit(0)  # else it waits at its end for the worker that waits for it
"""

#: A chief that hands out additions to a worker and a ps, saves, and has them struck one after another, by the list in
#: the file `faults`: `task when` a line. Who is named in the file `strike` kills itself.
SERVED = """
import os, signal, sys, threading, time
from pathlib import Path
task = os.environ["PHALANX_TASK"]
Path(task).touch()

def struck():
    while True:
        if Path("strike").exists() and Path("strike").read_text() == task:
            Path("strike").unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        if task == "ps:0" and Path("feast").exists():
            food = [b"x" * (1 << 20)]
            while True:
                food.append(os.urandom(1 << 16) * (1 << 10))
        if Path("over").exists() and not Path("/proc", Path("over").read_text()).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)

threading.Thread(target=struck, daemon=True).start()

def reach(when):
    lines = Path("faults").read_text().splitlines()
    while lines and lines[0].split()[1] == when:
        victim = lines.pop(0).split()[0]
        Path("faults").write_text("\\n".join(lines))
        if victim == task:
            os.kill(os.getpid(), signal.SIGKILL)
        print("strikes", victim, when, flush=True)
        Path(victim).unlink()
        Path("strike").write_text(victim)
        while Path("strike").exists() or (when == "before" and not Path(victim).exists()):
            time.sleep(0.01)
        if when != "before":
            return

import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total, step = tf.Variable(0.0), tf.Variable(0, dtype=tf.int64)

class Slow(tf.train.experimental.PythonState):
    def serialize(self):
        reach("save")
        return "state"
    def deserialize(self, string_value):
        pass

@tf.function
def add():
    total.assign_add(1.0)
    step.assign_add(1)

checkpoint = tf.train.Checkpoint(total=total, step=step, slow=Slow())
manager = tf.train.CheckpointManager(checkpoint, "ckpt", max_to_keep=2)
if manager.latest_checkpoint:
    checkpoint.restore(manager.latest_checkpoint)
reach("before")
while int(step) < 12 or Path("faults").read_text():
    coordinator.schedule(add)
    coordinator.join()
    reach("mid")
    manager.save()
    time.sleep(0.02)
print("total", float(total) - int(step), flush=True)
Path("over").write_text(str(os.getpid()))
"""


@pytest.mark.tensorflow
def test_killed_before_a_step_in_mid_run_and_in_a_save_chief_worker_and_evaluator_come_back(here):
    """R73, R74, R81, R88; and no thief gets a port that is held for TensorFlow (R37)."""
    killed = {
        "1": ["chief:0", "before"],
        "2": ["worker:0", "before"],
        "3": ["chief:0", "mid"],
        "4": ["worker:0", "mid"],
        "5": ["chief:0", "save"],
        "6": ["worker:0", "save"],
        "evaluator 7.1": ["evaluator:0", "before"],
        "evaluator 7.2": ["evaluator:0", "mid"],
        "evaluator 7.3": ["evaluator:0", "after"],
        "last": ["worker:0", "after"],
    }
    script = here.script(MIRRORED)
    size = ("--chief", "--workers", 1, "--evaluator", "--max-restarts", 20, "--standbys", 0)
    done = here.call("run", *size, script, json.dumps(killed))
    assert done.returncode == 0, done.stdout + done.stderr
    report = here.report()
    struck = [event["task"] for event in here.events("culprit-named") if event["task"] != "evaluator:0"]
    assert struck == ["chief:0", "worker:0"] * 3
    assert (report["result"], report["generation"]) == ("succeeded", 7)
    logs = here.run_folder() / "logs"
    sums = [line for line in (logs / "chief_0" / "g7.a1.out").read_text().splitlines() if line.startswith("sum ")]
    assert float(sums[0].split()[1]) == pytest.approx(10 * (1 - 0.98**24), abs=1e-3)
    assert all("port held" in path.read_text() for path in logs.glob("[cw]*/*.out"))
    assert "evaluated" in "".join(path.read_text() for path in (logs / "evaluator_0").glob("*.out"))
    ends = {(e["task"], e.get("signal")) for e in here.events("task-exited") if e["generation"] == 7}
    assert ends == {("chief:0", None), ("worker:0", signal.SIGKILL), ("evaluator:0", signal.SIGKILL)}
    assert len([e for e in here.events("task-started") if (e["task"], e["generation"]) == ("evaluator:0", 7)]) == 3
    here.gone(within=5)


@pytest.mark.tensorflow
def test_each_role_of_a_parameter_server_job_is_killed_at_each_moment_and_it_ends_well(here):
    """R75, R76: a worker comes back alone, a ps with the chief, the chief alone; after the chief nobody matters."""
    script = here.script(SERVED)
    moments = [f"{role}:0 {when}" for when in ("before", "mid", "save") for role in ("worker", "ps", "chief")]
    (here.folder / "faults").write_text("\n".join(moments))
    done = here.call("run", "--workers", 1, "--ps", 1, "--max-restarts", 20, script)
    assert done.returncode == 0, done.stdout + done.stderr
    report = here.report()
    assert (report["result"], report["generation"]) == ("succeeded", 1)
    assert [event["task"] for event in here.events("culprit-named")] == [moment.split()[0] for moment in moments]
    said = "".join(path.read_text() for path in (here.run_folder() / "logs" / "chief_0").glob("*.out"))
    assert "total 0.0" in said
    here.gone(within=5)


@pytest.fixture
def small(here: Place) -> Iterator[list[object]]:
    """Words that start a command in a control group with little memory; none where this user can make no such group."""
    [path] = [
        line.split(":", 2)[2]
        for line in Path("/proc/self/cgroup").read_text().splitlines()
        if "memory" in line.split(":")[1] or line.startswith("0::")
    ][:1]
    group = Path("/sys/fs/cgroup/memory", path.lstrip("/"), f"phalanx-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(3 << 30))
    except OSError:
        yield []
        return
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        here.clean()
        wait_for(lambda: not (group / "cgroup.procs").read_text(), "an empty group")
        group.rmdir()


@pytest.mark.tensorflow
def test_a_ps_that_the_kernel_kills_for_want_of_memory_is_told_from_any_other_kill(here, small):
    """R68, R82. Without a control group of its own, a kill -9 takes its place: it must not be called out of memory."""
    script = here.script(SERVED)
    (here.folder / "faults").write_text("nobody never")
    words = ("run", "--workers", 1, "--ps", 1, "--max-restarts", 0, script)
    launcher = here.start(*words, before=small)
    here.event("task-stepped", task="chief:0")
    if small:
        (here.folder / "feast").touch()
    else:
        os.kill(here.event("task-started", task="ps:0")["pid"], signal.SIGKILL)
    assert launcher.wait(timeout=90) == 1
    report = here.report()
    assert report["culprit"] == "ps:0"
    assert ("SIGKILL (out of memory: " in report["cause"]) is bool(small)
    here.gone(within=5)


@pytest.mark.tensorflow
def test_a_worker_that_exits_0_early_is_the_cause_and_not_the_one_that_waits_for_it(here):
    """R60."""
    script = here.script(MIRRORED.replace("    time.sleep(0.03)\n", "    time.sleep(0.03)\n    leave()\n", 1))
    leave = "def leave():\n    if task == 'worker:0' and int(step) == 7:\n        sys.exit(0)\n\nstrategy ="
    script.write_text(script.read_text().replace("strategy =", leave, 1))
    done = here.call("run", "--chief", "--workers", 1, "--max-restarts", 0, "--hang", "8s", script, "{}")
    assert done.returncode == 1, done.stdout + done.stderr
    report = here.report()
    assert (report["culprit"], report["victims"]) == ("worker:0", ["chief:0"])
    assert "finished early" in report["cause"]
    here.gone(within=5)


#: What only worker 0 calls, after as many steps as the other has done: the kind of `if chief: print(evaluate())`.
ALONE = """
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    weight = tf.Variable(1.0)


@tf.function
def step():
    def one():
        with tf.GradientTape() as tape:
            loss = weight * weight
        slope = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, weight))
        weight.assign_sub(0.01 * slope)
        return loss

    return strategy.run(one)


for _ in range(12):
    loss = step()
if strategy.cluster_resolver.task_id == 0:
    print(strategy.reduce("MEAN", loss, axis=None))
"""


@pytest.mark.tensorflow
def test_a_collective_that_one_worker_alone_calls_is_named_and_not_tried_again(here):
    """R60."""
    done = here.call("run", "--workers", 2, "--hang", "8s", here.script(ALONE))
    assert done.returncode == 1, done.stdout + done.stderr
    report = here.report()
    line = next(number for number, text in enumerate(ALONE.splitlines(), 1) if "strategy.reduce" in text)
    assert (report["culprit"], report["generation"]) == ("worker:0", 1)
    assert f"train.py:{line}, outside of any training step" in report["cause"]
    assert "worker:1 does not enter: after the same 12 steps" in report["cause"]
    here.gone(within=5)


@pytest.mark.tensorflow
def test_a_proxy_on_one_node_alone_does_not_get_the_traffic_of_the_cluster(here):
    """R46: gRPC heeds http_proxy; TensorFlow alone would wait for a peer that no proxy knows.

    R81: its evaluator would go on for ever; it is ended a while after the training.
    """
    here.script(MIRRORED)
    roles = {
        "chief": {"count": 1},
        "worker": {"count": 1, "env": {"http_proxy": "http://127.0.0.1:9", "grpc_proxy": "http://127.0.0.1:9"}},
        "evaluator": {"count": 1},
    }
    job = {"command": ["train.py", "{}"], "roles": roles, "health": {"evaluator": "2s"}}
    (here.folder / "job.json").write_text(json.dumps(job))
    done = here.call("run", "job.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sum " in here.said("worker:0")
    assert any("proxy" in note for note in here.report()["notes"])
    ended = {event["task"]: event["time"] for event in here.events("task-exited")}
    assert 2.0 <= ended["evaluator:0"] - ended["chief:0"] < 10.0


def test_a_node_without_tf_keras_is_named_before_tensorflow_starts(here):
    """R52, R89."""
    here.script("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\nimport tf_keras\nprint('ran', flush=True)\n")
    venv.create(here.folder / "bare", symlinks=True)
    bare = str(here.folder / "bare" / "bin" / "python")
    roles = {"chief": {"count": 1}, "worker": {"count": 1, "per_host": 1, "command": [bare, "train.py"]}}
    (here.folder / "job.json").write_text(json.dumps({"command": ["train.py"], "roles": roles}))
    done = here.call("run", "job.json")
    assert done.returncode == 2, done.stdout
    assert "tf_keras" in here.report()["cause"]
    assert here.events("task-started") == []


@pytest.mark.tensorflow
def test_of_two_jobs_at_once_one_is_terminated_and_the_other_does_not_notice(here):
    """R37; SIGTERM to the launcher: its MWMS workers, which are deaf to it, are gone within the grace (facts §5)."""
    script = here.script(
        MIRRORED.replace('"ckpt"', 'os.environ["OWN"]')
        .replace('"other"', 'os.environ["OWN"] + "s"')
        .replace("< 24", '< int(os.environ["STEPS"])')
    )
    words = ("run", "--chief", "--workers", 1, "--standbys", 0, script, "{}")
    one = here.start(*words, OWN="one", STEPS="100000")
    here.event("task-stepped", task="chief:0")
    first = here.run_folder()
    other = here.start(*words, OWN="two", STEPS="40")
    wait_for(lambda: len(list(here.runs.glob("*/events.jsonl"))) == 2, "the other run")
    one.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert one.wait(timeout=30) == 4
    assert time.monotonic() - began < 12
    wait_for(lambda: first.name not in str(here.processes()), "no process of the first run")
    out, err = other.communicate(timeout=90)
    assert other.returncode == 0, out + err
    here.gone(within=5)


@pytest.mark.tensorflow
def test_when_the_budget_is_spent_the_run_fails_with_one_root_cause(here):
    """R82."""
    killed = {str(generation): ["worker:0", "before"] for generation in range(1, 5)}
    script = here.script(MIRRORED)
    done = here.call("run", "--chief", "--workers", 1, "--max-restarts", 1, script, json.dumps(killed))
    assert done.returncode == 1, done.stdout + done.stderr
    report = here.report()
    assert (report["culprit"], report["victims"], report["generation"]) == ("worker:0", ["chief:0"], 2)
    assert "SIGKILL" in report["cause"]
    assert "budget is spent" in report["cause"] + str(report["notes"])
    here.gone(within=5)


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (1, "user", "exited with code 1"),
        (2, "user", "a wrong command line"),
        (126, "user", "may not be executed"),
        (127, "user", "no such command"),
        (134, "platform", "128 + SIGABRT"),
        (137, "infrastructure", "128 + SIGKILL"),
        (139, "platform", "128 + SIGSEGV"),
        (143, "preemption", "SIGTERM"),
    ],
)
def test_an_exit_code_is_told_with_its_meaning(here, code, kind, words):
    """R82. 143 comes back for free, once: it is 0 then."""
    command = f"if [ {code} = 143 ] && [ -e once ]; then exit 0; fi; touch once; exit {code}"
    done = here.call("run", "--workers", 1, "--max-restarts", 0, "sh", "-c", command)
    named = here.event("culprit-named")
    assert named["kind"] == kind
    assert words in named["cause"]
    assert done.returncode == (0 if code == 143 else 1)

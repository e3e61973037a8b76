"""A run in a cluster from the user's side: started, followed, found again, stopped; against a small API server."""

from __future__ import annotations

import collections
import json
import threading
import time

import pytest

from kubernetes_api import FakeCluster
from kubernetes_objects import condition, event, pod
from phalanx import events as ev
from phalanx import remote
from phalanx.cli.main import app
from phalanx.engine.kubernetes import engine as engines
from phalanx.errors import PhalanxError
from phalanx.events import Record
from phalanx.job.flags import Flags
from phalanx.job.incluster import declare_in_cluster
from phalanx.launch import follow
from phalanx.names import TaskId
from phalanx.records.index import Index
from phalanx.records.reader import read_records, read_state
from phalanx.states import RunPhase

pytestmark = pytest.mark.real

W0, W1 = TaskId("worker", 0), TaskId("worker", 1)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engines, "agent_zip", lambda: b"agent" * 100)


@pytest.fixture
def declared(tmp_path):
    (tmp_path / "job.yaml").write_text(
        "name: ctr\ncommand: [python, train.py]\nstrategy: mwms\nimage: registry.example.com/ctr:1\n"
        "roles: {worker: {count: 2}}\nhealth: {start: 3s}\non: {kubernetes: {rbac: role}}\n"
    )
    return declare_in_cluster(("job.yaml",), Flags(), cwd=tmp_path)


@pytest.fixture
def launched(cluster, declared, tmp_path):
    found = remote.launch(declared, remote.Where(), runs=tmp_path / "runs", attached=True)
    yield found
    found.started.let_go()


def told(run: str) -> list[Record]:
    """The records of a run of two workers that goes well."""
    events: list[ev.Event] = [
        ev.RunStarted(time=1.0, run=run, name="ctr", tasks=(W0, W1), strategy="mwms", hosts=2, leader=W0),
        *(
            ev.HostJoined(
                time=2.0, host=n, name=f"{run}-worker-{n}", address="a", cpus=1, gpus=0, memory=1, agent_pid=7
            )
            for n in (0, 1)
        ),
        ev.GenerationBound(
            time=3.0,
            generation=1,
            places=tuple(ev.TaskPlace(task=task, host=n, address=f"a:{n + 1}") for n, task in enumerate((W0, W1))),
        ),
        *(ev.TaskStarted(time=4.0, task=task, host=n, generation=1, pid=9) for n, task in enumerate((W0, W1))),
        *(ev.TaskExited(time=9.0, task=task, host=n, generation=1, pid=9, code=0) for n, task in enumerate((W0, W1))),
        ev.LeaderSucceeded(time=9.0, generation=1, task=W0),
        ev.RunEnded(time=10.0, outcome="succeeded", exit_code=0, cause="worker:0 exited with code 0"),
    ]
    return [Record(seq=n, epoch=1, event=event) for n, event in enumerate(events, start=1)]


def say(cluster: FakeCluster, name: str, records: list[Record]) -> None:
    for record in records:
        cluster.write(name, f"phalanx-record: {json.dumps(record.to_json())}")


def begin(cluster: FakeCluster, run: str) -> list[str]:
    """The Job controller's part: both pods run."""
    names = []
    for number in (0, 1):
        made = pod(f"worker-{number}", run=run)
        made["spec"]["hostname"] = f"{run}-worker-{number}"
        names.append(cluster.put(made)["metadata"]["name"])
    return names


class Seen:
    """A view that keeps what it was told."""

    def __init__(self):
        self.said, self.state = [], None

    def update(self, state, records):
        self.state = state

    def say(self, message):
        self.said.append(message)

    def close(self, state):
        self.state = state


def test_the_leads_job_comes_first_held_back_owns_all_and_is_let_go_last(cluster, launched):
    run = launched.entry.run
    order = [(plural, item["metadata"]["name"]) for _, _, plural, item in cluster.history]
    assert order[0] == ("jobs", f"{run}-worker") == order[-1]
    assert cluster.history[0][3]["spec"]["suspend"] is True
    lead = cluster.get(f"{run}-worker", plural="jobs")
    assert not lead["spec"].get("suspend")
    for (_, plural, name), item in cluster.objects.items():
        if (plural, name) != ("jobs", f"{run}-worker"):
            assert item["metadata"]["ownerReferences"][0]["uid"] == lead["metadata"]["uid"], name
            assert item["metadata"]["labels"]["phalanx/run"] == run
    assert launched.entry.lead == f"kubernetes://test/ml/{run}"


def test_a_refused_object_takes_everything_back_and_leaves_no_folder(cluster, declared, tmp_path):
    cluster.forbidden.add(("patch", "networkpolicies"))
    with pytest.raises(PhalanxError, match=r"the rule \{apiGroups: \[\"networking.k8s.io\"\]"):
        remote.launch(declared, remote.Where(), runs=tmp_path / "runs", attached=True)
    assert cluster.names() == []
    assert not (tmp_path / "runs").exists()
    assert Index().all() == ()


def test_a_run_is_followed_by_its_leads_log_to_its_end(cluster, launched):
    run = launched.entry.run
    first, second = begin(cluster, run)
    records = told(run)
    view = Seen()

    def life():
        say(cluster, first, records[:6])
        cluster.write(second, "worker:1 | step 1 loss 0.5")
        cluster.write(first, "worker:0 | step 1 loss 0.5")
        cluster.write(second, "the agent's own word")
        time.sleep(0.3)
        cluster.break_streams()
        cluster.fail(503)
        cluster.fail(429)
        cluster.write(second, "worker:1 | step 2 loss 0.4")
        time.sleep(1.5)
        say(cluster, first, records[6:])
        for name in (first, second):
            item = cluster.get(name)
            item["status"]["phase"] = "Succeeded"
            cluster.put(item)

    thread = threading.Thread(target=life)
    thread.start()
    state = follow(launched, view)
    thread.join()
    assert state.phase is RunPhase.SUCCEEDED
    assert [record.seq for record in read_records(launched.folder.events)] == list(range(1, 11))
    log = launched.folder.log(W1, generation=1, attempt=1, stream="out")
    assert log.read_text() == "step 1 loss 0.5\nstep 2 loss 0.4\n"
    assert "the agent's own word" in launched.folder.agent_log(1).read_text()
    assert f"{run}-worker" in str(cluster.names("jobs"))


def test_a_lead_that_takes_over_in_another_pod_tells_the_rest(cluster, launched):
    run = launched.entry.run
    first, second = begin(cluster, run)
    records = told(run)
    say(cluster, first, records[:5])
    later = [Record(seq=one.seq, epoch=2, event=one.event) for one in records[5:]]
    cluster.remove(first)
    say(cluster, second, [*records[:5], *later])
    assert follow(launched, Seen()).phase is RunPhase.SUCCEEDED
    assert [record.seq for record in read_records(launched.folder.events)] == list(range(1, 11))


def test_a_lead_that_never_starts_ends_with_the_schedulers_reason_and_releases_everything(cluster, launched):
    run = launched.entry.run
    no_room = condition("PodScheduled", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.", status="False")
    cluster.put(pod("worker-0", run=run, phase="Pending", node="", conditions=[no_room]))
    state = follow(launched, Seen())
    assert state.phase is RunPhase.LOST
    assert "did not start within 3 s, and everything was released" in state.end.cause
    assert "waits for a node: 0/3 nodes are available: 3 Insufficient cpu" in state.end.cause
    assert [name for name in cluster.names() if not name.startswith("pods/")] == []


def test_what_pods_wait_for_is_said_while_they_wait(cluster, launched):
    run = launched.entry.run
    made = cluster.get(f"{run}-worker", plural="jobs")
    made["spec"]["parallelism"] = 2
    cluster.put(made, plural="jobs")
    quota = 'Error creating: pods "x" is forbidden: exceeded quota: team, requested: cpu=2, used: cpu=3, limited: cpu=4'
    cluster.put(event({**made, "kind": "Job"}, "FailedCreate", quota), plural="events")
    until = time.monotonic() + 5
    found = []
    while not found and time.monotonic() < until:
        found = launched.started.news()
        time.sleep(0.05)
    assert found[0].startswith(f"{run}-worker waits for quota: exceeded quota: team")
    assert launched.started.news() == []


def test_a_deleted_run_is_lost_and_says_why(cluster, launched):
    begin(cluster, launched.entry.run)
    time.sleep(0.3)
    cluster.remove(f"{launched.entry.run}-worker", plural="jobs")
    assert "somebody has deleted the run" in follow(launched, Seen()).end.cause


def asked(cluster: FakeCluster, run: str, first: str, answers: list) -> None:
    """A lead that takes a stop, and ends."""

    def answer(name, method, path, headers, body):
        answers.append((name, method, path, headers.get("x-phalanx-token", ""), json.loads(body or b"{}")))
        if path == "/v1/stop":
            events = [
                ev.StopRequested(time=5.0, by="jane"),
                ev.RunEnded(time=6.0, outcome="stopped", exit_code=4, cause="stopped: jane"),
            ]
            say(cluster, first, [Record(seq=7 + n, epoch=1, event=event) for n, event in enumerate(events)])
        return 200, json.dumps({"run": run, "phase": "running", "hosts": {"0": 1}, "end": None})

    cluster.proxied = answer


def test_stop_asks_the_lead_through_the_api_server_and_leaves_nothing(cluster, launched, capsys):
    run = launched.entry.run
    first, _ = begin(cluster, run)
    say(cluster, first, told(run)[:6])
    launched.started.let_go()
    answers: list = []
    asked(cluster, run, first, answers)
    assert app(brief=False)(["stop", run], exit_on_error=False) == 0
    assert ("POST", "/v1/stop") in {one[1:3] for one in answers}
    assert {one[3] for one in answers} == {launched.entry.token}
    assert "nothing of it is left in its namespace" in capsys.readouterr().out
    assert [name for name in cluster.names() if not name.startswith("pods/")] == []


def test_where_the_proxy_is_forbidden_stop_suspends_the_jobs_and_says_so_in_them(cluster, launched, capsys):
    run = launched.entry.run
    first, _ = begin(cluster, run)
    records = told(run)[:6]
    say(cluster, first, records)
    launched.started.let_go()
    cluster.forbidden |= {("create", "pods/proxy"), ("get", "pods/proxy")}

    def lead():
        while not cluster.get(f"{run}-worker", plural="jobs")["spec"].get("suspend"):
            time.sleep(0.05)
        seen.update(cluster.get(f"{run}-worker", plural="jobs"))
        end = ev.RunEnded(time=6.0, outcome="stopped", exit_code=4, cause="stopped: jane")
        say(cluster, first, [Record(seq=7, epoch=1, event=end)])

    seen: dict = {}
    thread = threading.Thread(target=lead)
    thread.start()
    assert app(brief=False)(["stop", run], exit_on_error=False) == 0
    thread.join()
    assert "with `phalanx stop`" in seen["metadata"]["annotations"]["phalanx/stop"]
    assert "pods/proxy" in capsys.readouterr().err


def test_a_run_is_found_from_another_machine_by_its_label_and_followed(
    cluster, launched, tmp_path, monkeypatch, capsys
):
    run = launched.entry.run
    launched.started.let_go()
    first, second = begin(cluster, run)
    say(cluster, first, told(run))
    cluster.write(second, "worker:1 | hello")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert app(brief=False)(["attach", run[:-2], "--on", "kubernetes"], exit_on_error=False) == 0
    assert "succeeded" in capsys.readouterr().out
    entry = Index().find(run)
    assert entry.token == launched.entry.token
    assert read_state(entry.files).phase is RunPhase.SUCCEEDED
    assert app(brief=False)(["logs", run, "worker:1"], exit_on_error=False) == 0
    assert capsys.readouterr().out == "hello\n"
    assert app(brief=False)(["ps", "--on", "kubernetes", "--namespace", "ml"], exit_on_error=False) == 0
    assert run in capsys.readouterr().out
    with pytest.raises(PhalanxError, match="no run is called 'other'"):
        app(brief=False)(["report", "other", "--on", "kubernetes"], exit_on_error=False)


@pytest.mark.parametrize(("pods", "logs"), [(4, 4), (200, 48)])
def test_following_costs_a_watch_of_each_kind_and_a_log_of_each_of_the_first_pods(cluster, launched, pods, logs):
    run = launched.entry.run
    for number in range(pods):
        cluster.put(pod(f"worker-{number}", run=run))
    deadline = time.monotonic() + 20
    while cluster.asked.count(("get", "pods/log")) < logs and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    asked = collections.Counter(one for one in cluster.asked if one[0] != "patch")
    assert asked == {
        ("list", "pods"): 1,
        ("watch", "pods"): 1,
        ("list", "jobs"): 1,
        ("watch", "jobs"): 1,
        ("get", "configmaps"): 1,
        ("get", "pods/log"): logs,
    }

"""The report in words: golden texts of every way a run can end, and what must be on top."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import DAWN, History, history, killed, running
from phalanx import events as ev
from phalanx.decide.resume import resumption
from phalanx.names import TaskId
from phalanx.observe.follow import lost
from phalanx.observe.ink import Ink
from phalanx.observe.report import render
from phalanx.records.folder import RunFolder
from phalanx.records.report import Report, build_report
from phalanx.states import RunState

Golden = Callable[[str, str], None]


def made(told: History, runs: Path, *, state: RunState | None = None, **logs: str) -> Report:
    """The report of a history; `logs` are texts by `worker_0_out`."""
    folder = told.write(runs)
    for name, text in logs.items():
        kind, index, stream = name.split("_")
        path = folder.log(TaskId(kind, int(index)), generation=told.generation, attempt=1, stream=stream)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return build_report(state or told.state, None, folder)


def text_of(report: Report, runs: Path, **how: object) -> str:
    return render(report, **how).replace(str(runs), "RUNS")


def test_a_run_that_succeeded(tmp_path: Path, golden: Golden):
    told = running().at(40).exited("worker:0").succeeded().at(40.5).exited("worker:1")
    told.ended("succeeded", 0, "worker:0 exited with code 0")
    report = made(told, tmp_path, worker_0_out="epoch 5\naccuracy 0.972\n", worker_0_err="2026 I tensorflow/core\n")
    golden("observe/report_succeeded.txt", text_of(report, tmp_path))


def test_a_success_in_which_tasks_fell_says_so(tmp_path: Path, golden: Golden):
    told = running(workers=3).at(9).exited("worker:0").succeeded()
    told.exited("worker:1", code=1, said=["Traceback", "KeyError: 'nope'"]).exited("worker:2", signal=11)
    told.ended("succeeded", 0, "worker:0 exited with code 0")
    report = made(told, tmp_path)
    assert report.notes[0] == "warning: worker:1 exited with code 1 (KeyError: 'nope')"
    assert report.notes[1] == "warning: worker:2 was killed by SIGSEGV (crashed in native code)"
    assert report.next_steps == tuple(f"phalanx logs digits-1130-070000 worker:{n}" for n in (1, 2))
    assert "warning: worker:1 exited" in text_of(report, tmp_path, brief=True)
    golden("observe/report_warned.txt", text_of(report, tmp_path))


def test_of_many_fallen_tasks_some_are_named_and_all_are_counted(tmp_path: Path):
    told = running(workers=100).at(9).exited("worker:0").succeeded()
    told.exited(*(f"worker:{n}" for n in range(1, 100)), code=1).ended("succeeded", 0, "done")
    report = made(told, tmp_path)
    assert len(report.notes) == 7
    assert report.notes[-1] == "warning: 93 more tasks fell"


def test_tasks_that_were_told_to_end_are_no_warning(tmp_path: Path):
    told = running().at(9).exited("worker:0").succeeded().ordered("worker:1")
    told.exited("worker:1", signal=15, stopped=True).ended("succeeded", 0, "done")
    report = made(told, tmp_path)
    assert (report.notes, report.next_steps) == ((), ())


def test_last_lines_are_those_that_tell_something(tmp_path: Path):
    noise = "I0000 00:00:1796029155.014306   11370 port.cc:153] oneDNN custom operations are on."
    told = running().at(9).exited("worker:0", code=1, said=[noise] * 20).exited("worker:1", code=1, said=[noise])
    told.culprit("worker:0", "worker:0 exited with code 1", "worker:1").ended("failed", 1, "worker:0 exited")
    report = made(told, tmp_path, worker_0_err=f"{noise}\nKeyError: 'nope'\n" + f"{noise}\n" * 30)
    assert report.tasks[0].last_lines == ("KeyError: 'nope'",)
    assert report.tasks[1].last_lines == (noise,)


def test_a_task_tells_when_it_wrote_last(tmp_path: Path):
    made(running(), tmp_path, worker_1_out="x\n")
    folder = RunFolder(tmp_path / "digits-1130-070000")
    os.utime(folder.log(TaskId("worker", 1), generation=1, attempt=1, stream="out"), (DAWN + 5, DAWN + 5))
    report = build_report(running().state, None, folder)
    assert [task.wrote for task in report.tasks] == [None, DAWN + 5]


def test_a_killed_worker_is_on_top_and_its_peer_a_victim(tmp_path: Path, golden: Golden):
    report = made(killed(), tmp_path, worker_1_out="epoch 1\nepoch 2\n")
    assert (report.culprit, report.victims, report.exit_code) == ("worker:1", ("worker:0",), 1)
    text = text_of(report, tmp_path)
    assert "worker:1 was killed by SIGKILL" in text.splitlines()[1]
    golden("observe/report_killed.txt", text)


def test_what_a_killed_task_said_last_is_what_it_wrote_last_on_either_stream(tmp_path: Path):
    logs = {"worker_1_err": "W warning of long ago\n", "worker_1_out": "step 41\nstep 42\n"}
    made(killed(), tmp_path, **logs)
    folder = RunFolder(tmp_path / "digits-1130-070000")
    os.utime(folder.log(TaskId("worker", 1), generation=1, attempt=1, stream="err"), (DAWN, DAWN))
    report = build_report(killed().state, None, folder)
    assert report.tasks[1].last_lines == ("step 41", "step 42")


def test_a_script_that_fails_shows_its_traceback(tmp_path: Path, golden: Golden):
    said = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "ValueError: no such \x1b[31mfile",
    ]
    cause = "worker:0 exited with code 1 3.0 s after its start; its last line was: ValueError: no such file"
    told = running(hosts=2).at(4.5).exited("worker:0", code=1, said=said).ordered("worker:1", grace=0.5)
    told.at(5).exited("worker:1", signal=9, stopped=True).culprit("worker:0", cause, "worker:1")
    told.noted("not listening 300 s after the start: worker:1").ended("failed", 1, cause)
    golden("observe/report_failed.txt", text_of(made(told, tmp_path), tmp_path))


def test_a_run_that_was_stopped(tmp_path: Path, golden: Golden):
    told = running().at(9).stop("SIGINT to the launcher").ordered(reason="stop requested by SIGINT to the launcher")
    told.at(9.4).exited("worker:0", code=143, stopped=True).at(19).exited("worker:1", signal=9, stopped=True)
    told.ended("stopped", 4, "stopped: SIGINT to the launcher")
    golden("observe/report_stopped.txt", text_of(made(told, tmp_path), tmp_path))


def test_a_lost_host_blames_no_task_and_shows_what_fell_with_it(tmp_path: Path, golden: Golden):
    told = running(workers=3, hosts=2).at(30).lost(1).ordered("worker:0", "worker:2", grace=0.5)
    told.at(30.6).exited("worker:0", "worker:2", signal=9, stopped=True)
    cause = "host n1 (agent 1) was lost: its agent no longer answers"
    hint = "look at that host; tasks on it were ended by its reaper"
    told.culprit(None, cause, "worker:0", "worker:1", "worker:2", host=1, kind="infrastructure", hint=hint)
    told.ended("failed", 3, cause)
    report = made(told, tmp_path, worker_1_err="step 41\nstep 42\n")
    golden("observe/report_host_lost.txt", text_of(report, tmp_path))


def test_a_task_that_could_not_start(tmp_path: Path, golden: Golden):
    told = history().at(0.5).joined().at(1).bound().refused("worker:0", "pyhton: no such program").started("worker:1")
    cause = "worker:0 could not start: pyhton: no such program"
    told.ordered("worker:1", grace=0.5).at(1.6).exited("worker:1", signal=15, stopped=True)
    told.culprit("worker:0", cause, "worker:1", hint="`phalanx plan` shows the command and the interpreter")
    told.ended("failed", 2, cause)
    golden("observe/report_not_started.txt", text_of(made(told, tmp_path), tmp_path))


def test_hosts_that_never_came(tmp_path: Path, golden: Golden):
    cause = "1 of 2 hosts joined within 300 s"
    told = history(hosts=2).at(1).joined().at(300).culprit(None, cause, kind="infrastructure").ended("failed", 3, cause)
    golden("observe/report_no_hosts.txt", text_of(made(told, tmp_path), tmp_path))


def test_a_run_without_a_lead_says_what_to_do(tmp_path: Path, golden: Golden):
    told = running()
    state = lost(told.state, "no lead answers at 127.0.0.1:4711", DAWN + 60)
    golden("observe/report_lost.txt", text_of(made(told, tmp_path, state=state), tmp_path))


def test_a_run_that_goes_on(tmp_path: Path, golden: Golden):
    golden("observe/report_running.txt", text_of(made(running(), tmp_path), tmp_path))


def test_of_a_thousand_tasks_the_failed_ones_come_first(tmp_path: Path):
    told = running(workers=1000).at(5).exited("worker:717", code=1, said=["Boom"])
    told.exited("worker:900", code=1, said=["Collective ops is aborted by"])
    told.culprit("worker:717", "worker:717 exited with code 1", "worker:900", *[f"worker:{n}" for n in range(50)])
    told.ended("failed", 1, "worker:717 exited with code 1")
    lines = text_of(made(told, tmp_path), tmp_path).splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("  task ")) + 1 :]
    assert table[0].split()[0] == "worker:717"
    assert table[1].split()[0] == "worker:900"
    assert "… and 960 more" in "\n".join(table)
    assert "victims: 51 tasks (worker:900 … worker:49)" in "\n".join(lines)


@pytest.mark.parametrize("width", [20, 60, 100])
def test_no_line_of_the_table_is_wider_than_the_terminal(tmp_path: Path, width: int):
    told = running().at(9).exited("worker:0", code=1, said=["x" * 500])
    text = render(made(told, tmp_path, worker_1_out="y" * 500), width=width)
    start = text.index("  task ")
    head = text[start:].splitlines()[0]
    for line in text[start:].splitlines()[:3]:
        assert len(line) <= max(width, len(head))


def test_brief_is_result_cause_and_next_step(tmp_path: Path):
    text = text_of(made(killed(), tmp_path), tmp_path, brief=True)
    assert "task " not in text
    assert text.splitlines()[-1].endswith("phalanx logs digits-1130-070000 --merged")


def test_colour_only_where_asked(tmp_path: Path):
    report = made(killed(), tmp_path)
    assert "\x1b" not in render(report)
    assert "\x1b[" in render(report, ink=Ink(on=True))


def test_what_looks_like_a_credential_is_taken_out(tmp_path: Path):
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    told = running().at(9).exited("worker:0", code=1, said=[f"denied for {key}"]).noted(f"key {key}")
    told.culprit("worker:0", f"worker:0 said {key}").ended("failed", 1, f"worker:0 said {key}")
    report = made(told, tmp_path, worker_1_out=f"using {key}\n")
    assert key not in str(report.to_json())
    assert report.tasks[1].last_output.startswith("using ")


def test_the_json_report_has_every_field(tmp_path: Path):
    data = json.loads(json.dumps(made(killed(), tmp_path, worker_0_err="1\n2\n").to_json()))
    assert data["version"] == 1
    assert data["result"] == "failed"
    assert data["duration"] == 7.5
    task = data["tasks"][1]
    assert (task["task"], task["part"], task["signal"], task["exit_code"]) == ("worker:1", "culprit", "SIGKILL", None)
    assert (task["started"], task["ended"], task["duration"]) == (DAWN + 1.5, DAWN + 7.25, 5.75)
    assert data["tasks"][0]["logs"] == [{"path": "logs/worker_0/g1.a1.err", "bytes": 4}]
    assert task["first_step"] is None


def test_a_run_that_came_back_tells_what_it_lost_on_the_way(tmp_path: Path, golden: Golden):
    told = running().at(40).exited("worker:1", signal=9).exited("worker:0", signal=9, stopped=True)
    told.culprit("worker:1", "worker:1 was killed by SIGKILL 39.0 s after its start", "worker:0", kind="infrastructure")
    told.restarted().bound(port=30000).at(41).started("worker:0").started("worker:1").listening()
    told.at(90).exited("worker:0").succeeded().exited("worker:1").ended("succeeded", 0, "worker:0 exited with code 0")
    report = made(told, tmp_path)
    assert [(past.number, past.culprit, past.restart) for past in report.past] == [(1, "worker:1", "restart 1 of 3")]
    golden("observe/report_restarted.txt", text_of(report, tmp_path))


def test_tasks_that_never_met_are_no_whole_success(tmp_path: Path):
    """R20 turned round: nobody waits, and nobody trains together."""
    told = history(workers=2).joined().at(1).bound().started().at(9).exited().succeeded()
    told.ended("succeeded", 0, "worker:0 exited with code 0")
    report = made(told, tmp_path)
    assert report.exit_code == 0
    [note] = report.notes
    assert note.startswith("warning: no task ever listened on its address: each of the 2 has trained alone")
    assert "--strategy none" in text_of(report, tmp_path, brief=True)


def test_what_was_slow_is_told_once_with_how_long_it_lasted(tmp_path: Path):
    told = running(hosts=2)
    slow = {"generation": 1, "cause": "task", "task": TaskId("worker", 1), "host": 1}
    found = {"factor": 1.9, "says": "worker:1 on n1 computes 1.9 times slower", "advice": "look at n1"}
    told.at(20).say(ev.SlowFound(time=told.now, **slow, **found)).at(50).say(ev.SlowEnded(time=told.now, **slow))
    told.at(60).say(ev.SlowFound(time=told.now, **slow, **found))
    report = made(told, tmp_path)
    assert [(one.task, one.host, one.ended is None) for one in report.slow] == [
        ("worker:1", "n1", False),
        ("worker:1", "n1", True),
    ]
    assert (
        "  slow:\n    worker:1 on n1 computes 1.9 times slower (since 07:01:00, 2 times)\n      look at n1\n"
        in text_of(report, tmp_path)
    )


def test_a_task_alone_need_not_listen(tmp_path: Path):
    told = history(workers=1).joined().at(1).bound().started().at(9).exited().succeeded().ended("succeeded", 0, "done")
    assert made(told, tmp_path).notes == ()


def trained(steps: int, *, saved: int | None = None) -> History:
    told = running().at(5).lives(ev.TaskStepped, "worker:0", step=1)
    if saved is not None:
        told.at(8).lives(ev.CheckpointSaved, "worker:0", path=f"/ckpt/ckpt-{saved}", step=saved)
        told.lives(ev.CheckpointSaved, "worker:1", path="/ckpt/temporary", step=saved)
    return told.at(9).lives(ev.TaskStepped, "worker:0", step=steps)


def stopped(told: History) -> History:
    told.stop("me").ordered("worker:0", "worker:1").exited(signal=15, stopped=True)
    return told.ended("stopped", 4, "stopped: me")


def test_a_run_that_was_stopped_says_what_is_saved(tmp_path: Path):
    report = made(stopped(trained(52, saved=50)), tmp_path)
    text = text_of(report, tmp_path, brief=True)
    assert "  last checkpoint: /ckpt/ckpt-50 at step 50; 2 steps after it are lost\n" in text
    assert "start it again with the same command" in report.next_steps[-1]


def test_a_run_that_failed_says_it_too_and_counts_from_the_beginning(tmp_path: Path):
    told = trained(52, saved=50).culprit("worker:1", "worker:1 crashed").restarted().at(12).bound().started()
    told.lives(ev.CheckpointRestored, "worker:0", path="/ckpt/ckpt-50").lives(ev.TaskStepped, "worker:0", step=9)
    told.exited("worker:1", code=1).culprit("worker:1", "worker:1 crashed").ended("failed", 1, "worker:1 crashed")
    assert "last checkpoint: /ckpt/ckpt-50 at step 50; 9 steps after it are lost" in text_of(
        made(told, tmp_path), tmp_path
    )


def test_where_no_step_of_a_generation_was_done_the_one_before_counts(tmp_path: Path):
    told = trained(52, saved=50).culprit("worker:1", "worker:1 crashed").restarted().at(12).bound().started()
    told.exited("worker:1", code=1).culprit("worker:1", "worker:1 crashed").ended("failed", 1, "worker:1 crashed")
    assert "last checkpoint: /ckpt/ckpt-50 at step 50; 2 steps after it are lost" in text_of(
        made(told, tmp_path), tmp_path
    )


def test_steps_without_a_checkpoint_are_lost(tmp_path: Path):
    report = made(stopped(trained(52)), tmp_path)
    assert "no checkpoint was seen: 52 steps are lost" in text_of(report, tmp_path)
    assert report.next_steps == ("phalanx logs digits-1130-070000",)


def test_what_nobody_counts_is_not_spoken_of(tmp_path: Path):
    assert made(stopped(running()), tmp_path).kept is None


def test_a_first_start_that_read_a_checkpoint_says_so(tmp_path: Path):
    told = running().lives(ev.CheckpointRestored, "worker:0", path="/ckpt/ckpt-70")
    told.at(5).lives(ev.TaskStepped, "worker:0", step=1)
    for event in resumption(told.state, told.now):
        told.say(event)
    assert resumption(told.state, told.now) == ()
    assert "  went on from another run (/ckpt/ckpt-70)\n" in text_of(made(stopped(told), tmp_path), tmp_path)


def test_a_first_start_from_zero_proves_nothing():
    told = running().at(5).lives(ev.TaskStepped, "worker:0", step=1)
    assert resumption(told.state, told.now) == ()


def test_steps_after_a_checkpoint_are_counted_also_where_another_runs_came_before(tmp_path: Path):
    told = running().lives(ev.CheckpointRestored, "worker:0", path="/ckpt/ckpt-70").at(5)
    told.lives(ev.CheckpointSaved, "worker:0", path="/ckpt/ckpt-120", step=50)
    told.lives(ev.TaskStepped, "worker:0", step=53)
    text = text_of(made(stopped(told), tmp_path), tmp_path)
    assert "last checkpoint: /ckpt/ckpt-120; 3 steps after it are lost" in text

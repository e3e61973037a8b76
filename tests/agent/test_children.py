"""Real processes through a real reaper: how they start, what is said of their end, and who hears a signal."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from phalanx.agent.children import ChildSpec, Exited, FailedToStart, Gone, Lost, Started, sweep
from phalanx.agent.tree import marker_of
from phalanx.errors import PlaceError

pytestmark = pytest.mark.real


def test_start_exit_and_gone_are_told_in_this_order(desk):
    child = desk.spawn("true")
    desk.until(Gone)
    assert [type(event) for event in desk.told] == [Started, Exited, Gone]
    assert child.pid == desk.until(Started).pid
    assert (child.alive, child.gone) == (False, True)


@pytest.mark.parametrize(("end", "code", "number"), [("exit 0", 0, None), ("exit 7", 7, None), ("kill -9 $$", None, 9)])
def test_the_end_is_told_as_code_or_signal(desk, end, code, number):
    desk.spawn("sh", "-c", end)
    exited = desk.until(Exited)
    assert (exited.code, exited.signal) == (code, number)


def test_start_and_end_are_exact_to_milliseconds(desk):
    desk.python("import os, time; print(time.time(), flush=True); os._exit(0)")
    last_breath = float(desk.line())
    started, exited = desk.until(Started), desk.until(Exited)
    assert started.time < last_breath <= exited.time + 0.001
    assert exited.time - last_breath < 0.1  # a few ms on an idle machine


def test_the_time_of_an_end_is_not_blurred_by_a_busy_agent(desk):
    begin = time.time()
    desk.spawn("true")
    time.sleep(0.3)  # the agent reads nothing
    assert desk.until(Exited).time - begin < 0.25


def test_an_exit_carries_cpu_time_and_memory(desk):
    desk.python("x = bytearray(60_000_000)\nfor _ in range(2_000_000): pass")
    exited = desk.until(Exited)
    assert exited.user > 0.01
    assert 60_000_000 < exited.max_rss < 500_000_000


def test_a_child_has_its_own_session_and_null_as_stdin(desk):
    code = "import os; print(os.getsid(0) == os.getpid() == os.getpgid(0), os.readlink('/proc/self/fd/0'), flush=True)"
    desk.python(code)
    assert desk.line() == "True /dev/null"


def test_a_child_starts_with_default_signals_and_none_blocked(desk):
    desk.spawn("cat", "/proc/self/status")
    desk.until(Gone)
    status = dict(line.split(":\t") for line in os.read(desk.read, 65536).decode().splitlines())
    # 32 and 33 are the C library's own: whoever started the tests may ignore them, and no program can reset them.
    ours = ~(1 << 31 | 1 << 32)
    assert {int(status[name], 16) & ours for name in ("SigBlk", "SigIgn", "SigCgt")} == {0}


def test_a_child_has_the_files_it_was_given_and_no_other(desk):
    read, write = os.pipe()
    others = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    desk.spawn("ls", "/proc/self/fd", fds={5: read, 7: write, write: read})
    for fd in (read, write, *others):
        os.close(fd)
    desk.until(Gone)
    # ls itself has opened the folder, at the lowest number that is free
    assert {int(name) for name in os.read(desk.read, 4096).split()} == {0, 1, 2, 3, 5, 7, write}


def test_files_may_swap_their_numbers(desk):
    read, write = os.pipe()
    desk.python(
        f"import os, stat; os.write({read}, b'through'); print(os.read({write}, 9).decode(), flush=True)",
        fds={read: write, write: read},
    )
    os.close(read)
    os.close(write)
    assert desk.line() == "through"


def test_umask_folder_cores_and_memory_score_reach_the_child(desk, tmp_path):
    old = os.umask(0o027)
    os.umask(old)
    core = max(os.sched_getaffinity(0))
    desk.python(
        "import os; mask = os.umask(0); print(mask, os.getcwd(), os.sched_getaffinity(0), "
        "open('/proc/self/oom_score_adj').read().strip(), sep='|', flush=True)",
        cwd=str(tmp_path),
        cpus=(core,),
        oom_score_adj=321,
    )
    assert desk.line() == f"{old}|{tmp_path}|{{{core}}}|321"


def test_a_large_environment_arrives_to_the_byte(desk):
    env = {f"BIG_{number}": chr(65 + number) * 100_000 for number in range(8)} | {"ODD": os.fsdecode(b"\xff\xfe\n=")}
    code = "print(sum(len(v) for n, v in e.items() if n[:4] == b'BIG_'), e[b'BIG_7'][-3:], e[b'ODD'], flush=True)"
    desk.python(f"import os; e = os.environb; {code}", env=env)
    assert desk.line() == r"800000 b'HHH' b'\xff\xfe\n='"


def failure(desk, *argv: str, **more) -> FailedToStart:
    desk.spawn(*argv, **more)
    failed = desk.until(FailedToStart)
    assert not any(isinstance(event, Started) for event in desk.told)
    return failed


def test_a_program_that_is_not_on_path_is_named(desk):
    failed = failure(desk, "no-such-program", env={"PATH": "/usr/bin:/bin"})
    assert (failed.errno, failed.path) == (errno.ENOENT, "no-such-program")
    assert failed.message == "no program 'no-such-program' on PATH (/usr/bin:/bin)"


def test_a_missing_program_and_a_missing_folder_are_told_apart(desk):
    assert failure(desk, "/no/such/program").path == "/no/such/program"
    desk.told.clear()
    failed = failure(desk, "true", cwd="/no/such/folder")
    assert (failed.errno, failed.path) == (errno.ENOENT, "/no/such/folder")
    assert failed.message == "the folder to run in, /no/such/folder, cannot be entered: No such file or directory"


@pytest.mark.parametrize(
    ("first", "mode", "number", "words"),
    [
        ("#!/no/such/python3\n", 0o755, errno.ENOENT, "wants the interpreter '/no/such/python3', which is not there"),
        ("#!/bin/sh\r\n", 0o755, errno.ENOENT, "the file has Windows line ends"),
        ("#!/bin/sh\n", 0o644, errno.EACCES, "may not be executed: chmod +x it"),
        ("echo hi\n", 0o755, errno.ENOEXEC, "is no program: no `#!` line"),
    ],
)
def test_a_script_that_cannot_be_started_says_why(desk, tmp_path, first, mode, number, words):  # noqa: PLR0917 - cases
    script = tmp_path / "train"
    script.write_bytes(first.encode())
    script.chmod(mode)
    failed = failure(desk, str(script))
    assert failed.errno == number
    assert words in failed.message


def test_a_folder_is_no_program(desk, tmp_path):
    assert failure(desk, str(tmp_path)).message == f"{tmp_path} is a folder, not a program"


def test_the_first_program_on_path_that_may_run_is_run(desk, tmp_path):
    (tmp_path / "true").write_text("#!/bin/sh\n")  # in front, and not executable
    desk.spawn("true", env={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert desk.until(Exited).code == 0


def test_a_variable_too_long_for_linux_is_named(desk):
    failed = failure(desk, "true", env={"PATH": "/usr/bin:/bin", "TF_CONFIG": "x" * 140_000})
    assert failed.errno == errno.E2BIG
    assert failed.message.startswith("the variable TF_CONFIG is 140,011 bytes long, and Linux takes 131,072")


def test_cores_that_are_not_ours_are_refused(desk):
    failed = failure(desk, "true", cpus=(0, 4095))
    assert "cannot be bound to CPUs 0,4095: this host lets us use 0" in failed.message


def test_a_zero_byte_in_an_argument_is_a_failed_start(desk):
    assert "embedded null byte" in failure(desk, "/bin/true", "a\0b").message


def test_a_spec_that_cannot_be_is_refused_before_anything_happens(desk):
    desk.spawn("sleep", "60", name="twice")
    for wrong in ({"name": "twice"}, {"fds": {1: desk.write}}):
        with pytest.raises(ValueError, match=r"twice is not gone yet|0, 1 and 2 are stdin, stdout and stderr"):
            desk.spawn("true", **wrong)


def test_a_signal_right_after_the_start_is_not_lost(desk):
    for name in map(str, range(10)):
        desk.reaper.signal(desk.spawn("sleep", "60", name=name), signal.SIGTERM, whole_tree=False)
        assert desk.until(Exited, name).signal == signal.SIGTERM


LISTENER = """
import os, signal, sys, time
def heard(number, frame):
    os.write(1, f"{sys.argv[1]} heard {number}\\n".encode())
signal.signal(signal.SIGUSR1, heard)
os.write(1, f"{sys.argv[1]} {os.getpid()}\\n".encode())
while True:
    signal.pause()
"""


def test_whole_tree_reaches_daemons_and_the_group_signal_does_not(desk, tmp_path):
    listener = tmp_path / "listener.py"
    listener.write_text(LISTENER)
    start = f"{sys.executable} -I -S {listener}"
    child = desk.spawn("sh", "-c", f"trap : USR1; {start} near & (setsid {start} far &) ; while :; do wait; done")
    pids = dict(desk.line().split() for _ in range(2))
    desk.reaper.signal(child, signal.SIGUSR1, whole_tree=False)
    assert desk.line() == "near heard 10"
    desk.reaper.signal(child, signal.SIGUSR1, whole_tree=True)
    assert {desk.line(), desk.line()} == {"near heard 10", "far heard 10"}
    desk.reaper.kill_tree(child)
    desk.until(Gone)
    assert desk.dead(*map(int, pids.values()))


# A daemon out of the book: two forks, a new session, and optionally nothing left that tells whose it is.
DAEMON = """
import os, signal, sys, time
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
there, tell = os.pipe()
if os.fork():
    os.close(tell); os.read(there, 1); STAY; os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.write(1, f"{os.getpid()}\\n".encode())
if "mute" in sys.argv: os.close(1); os.close(2)
if "nameless" in sys.argv: os.execve("/bin/sleep", ["sleep", "60"], {})
os.close(tell)
time.sleep(60)
"""


def daemon(desk, *traits: str, stay: bool = False, **more):
    code = DAEMON.replace("STAY", "time.sleep(60)" if stay else "pass")
    child = desk.spawn(sys.executable, "-I", "-S", "-c", code, *traits, **more)
    return child, int(desk.line())


def bystander(desk):
    """Another task, so that a daemon is not taken for the only one's just because there is no other."""
    with Path("/dev/null").open("w") as null:
        desk.spawn("sleep", "60", name="other", stdout=null.fileno(), stderr=null.fileno())


@pytest.mark.parametrize("traits", [(), ("mute",), ("nameless",)])
def test_what_a_task_leaves_behind_is_ended_with_it(desk, traits):
    bystander(desk)
    _, pid = daemon(desk, *traits)
    exited, gone = desk.until(Exited), desk.until(Gone)
    assert desk.dead(pid)
    assert gone.time - exited.time < 0.9  # by TERM, before the grace is over
    assert not any(isinstance(event, Exited) and event.id == "other" for event in desk.told)


def test_a_leftover_that_ignores_term_is_killed_after_its_grace(desk):
    _, pid = daemon(desk, "stubborn", leftover_grace=0.3)
    exited, gone = desk.until(Exited), desk.until(Gone)
    assert desk.dead(pid)
    assert 0.25 < gone.time - exited.time < 2


def test_kill_tree_leaves_the_daemons_of_others_alone(desk):
    one, one_daemon = daemon(desk, "mute", stay=True, name="one")
    two, two_daemon = daemon(desk, "mute", stay=True, name="two")
    desk.reaper.kill_tree(one)
    desk.until(Gone, "one")
    assert desk.dead(one_daemon, one.pid)
    assert not desk.dead(two_daemon)
    assert two.alive


def test_the_daemon_of_a_standby_is_known_by_the_identity_it_got_later(desk):
    bystander(desk)
    identity = {"PHALANX_RUN": "later", "PHALANX_TASK": "worker:0"}
    # A standby: its own environment tells nothing, the identity is set inside.
    script = "(setsid sh -c 'echo $$; exec sleep 60 >/dev/null 2>&1' &) ; sleep 60"
    become = f"import os; os.environ.update({identity!r}); os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', {script!r}])"
    child = desk.python(become, env={"PATH": os.environ["PATH"]})
    desk.reaper.mark(child, identity)
    pid = int(desk.line())
    desk.wait(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    desk.reaper.kill_tree(child)
    desk.until(Gone)
    assert desk.dead(pid)


def test_a_stopped_task_is_killed_like_any_other(desk):
    child = desk.spawn("sleep", "60")
    desk.reaper.signal(child, signal.SIGSTOP, whole_tree=True)
    desk.reaper.kill_tree(child)
    assert desk.until(Exited).signal == signal.SIGKILL


def test_requests_about_an_ended_child_are_no_error(desk):
    child = desk.spawn("true")
    desk.until(Gone)
    desk.reaper.signal(child, signal.SIGTERM, whole_tree=True)
    desk.reaper.kill_tree(child)
    desk.reaper.mark(child, {})
    assert desk.reaper.poll(0.05) == []


def test_the_reaper_has_no_file_of_the_agent_open(desk):
    desk.spawn("true")
    desk.until(Gone)
    links = {int(fd.name): str(fd.readlink()) for fd in Path(f"/proc/{desk.reaper.pid}/fd").iterdir()}
    assert links[0] == links[1] == "/dev/null"
    mine = {f"pipe:[{os.fstat(fd).st_ino}]" for fd in (desk.read, desk.write)}
    assert mine.isdisjoint(links.values())
    assert Path(f"/proc/{desk.reaper.pid}/comm").read_text() == "phalanx-reaper\n"


async def test_events_come_through_an_event_loop_those_before_it_too(desk):
    desk.spawn("true", name="before")
    told = []
    all_there = asyncio.Event()

    def on_event(event):
        told.append((type(event).__name__, event.id))
        if len(told) == 6:
            all_there.set()

    desk.reaper.attach(asyncio.get_running_loop(), on_event)
    desk.spawn("true", name="after")
    await asyncio.wait_for(all_there.wait(), 5)
    for name in ("before", "after"):
        assert [what for what, whose in told if whose == name] == ["Started", "Exited", "Gone"]


def test_a_dead_reaper_is_told_and_what_it_left_is_swept(desk):
    child, pid = daemon(desk, "mute", stay=True)
    desk.until(Started)
    os.kill(desk.reaper.pid, signal.SIGKILL)
    lost = desk.until(Lost)
    assert lost.children == ("a",)
    assert desk.reaper.lost
    desk.wait(lambda: desk.dead(pid, child.pid), within=1)
    desk.reaper.kill_tree(child)  # no error any more
    with pytest.raises(PlaceError, match=r"reaper .* is gone"):
        desk.spawn("true", name="late")


def test_a_dead_reaper_takes_its_direct_children_with_it_at_once(desk):
    child = desk.spawn("sleep", "60", env={"PATH": os.environ["PATH"]})  # no marker: only PDEATHSIG can find it
    desk.until(Started)
    os.kill(desk.reaper.pid, signal.SIGKILL)
    assert desk.wait(lambda: desk.dead(child.pid), within=1) < 1


def test_a_spec_survives_as_json_whatever_the_environment_holds():
    odd = os.fsdecode(bytes(range(1, 256)))
    assert json.loads(json.dumps({"env": {"ODD": odd}}))["env"]["ODD"] == odd
    assert ChildSpec(id="a", argv=("x",), env={}, cwd="/", stdout=1, stderr=2).cpus == ()


def test_tasks_of_two_runs_that_bear_one_name_are_told_apart_by_their_folders(desk, tmp_path):
    """Started in the same second, in two places: the end of one must not be the other's."""
    env = {"PATH": os.environ["PATH"], "PHALANX_RUN": "t-1130-151738", "PHALANX_TASK": "worker:0"}
    ours, theirs = ({**env, "PHALANX_TASK_DIR": str(tmp_path / place)} for place in ("ours", "theirs"))
    child = desk.spawn("sleep", "60", env=theirs)
    desk.until(Started)
    sweep([marker_of(ours)], ())
    assert not desk.dead(child.pid)
    sweep([marker_of(theirs)], ())
    assert desk.until(Exited).signal == signal.SIGKILL

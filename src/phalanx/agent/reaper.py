"""One tiny process per host: parent of every task, and the end of all of them when the agent is gone.

The agent forks it before anything else. It starts, signals and waits for tasks as told through a socket, adopts every
orphan they leave (child subreaper), and kills each and every descendant once that socket reads end of file, or the
agent has been stopped for so long that its lead has given it up.
Cgroups are not used: a user may seldom make one, and kill by descent needs nobody's permission.
"""

from __future__ import annotations

import dataclasses
import errno
import gc
import os
import select
import signal
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from phalanx.agent import spawn, tree, vigil
from phalanx.agent.channel import Channel, Message

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

#: Seconds between two looks at what an ended task has left.
_LOOK = 0.02
#: Seconds for which processes of another user, whom we may not kill, keep the reaper from leaving.
_UNTOUCHABLE = 1.0
_LIMITS = {
    errno.EAGAIN: " (ulimit -u, or the pids limit of the cgroup)",
    errno.EMFILE: " (ulimit -n)",
}


@dataclasses.dataclass(kw_only=True, slots=True, eq=False)
class _Task:
    """One task: from its fork to the end of the last process that belongs to it."""

    id: str
    pid: int
    #: Where the child tells how its exec went; None once it has.
    pipe: int | None
    started: float
    marker: Mapping[str, str]
    #: Its stdout and stderr where they are pipes: who holds one keeps its reader waiting.
    pipes: frozenset[tuple[int, int]]
    #: Seconds between TERM and KILL for what the main process leaves behind.
    grace: float
    killed: bool = False
    ended: bool = False
    deadline: float | None = None

    @property
    def closing(self) -> bool:
        """What is left of it is being ended."""
        return self.ended or self.killed


def run(sock: socket.socket) -> None:
    """Be the reaper, in a process of its own: returns when the agent is gone and no descendant is left."""
    os.setsid()
    spawn.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    spawn.prctl(_PR_SET_NAME, b"phalanx-reaper")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    _keep_only(sock.fileno())
    gc.freeze()
    try:
        _Reaper(Channel(sock)).serve()
    finally:
        _end_all()


class _Reaper:
    """The loop: requests in, news out."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._tasks: dict[str, _Task] = {}
        self._times: dict[int, float] = {}  # when a main process was first seen dead, until it is reaped
        self._owners: dict[tuple[int, int], _Task] = {}  # orphans whose task is known: (pid, start) → task
        self._next_look = 0.0
        self._agent = vigil.Vigil(os.getppid())
        self._poll = select.poll()
        self._bell, ring = os.pipe()
        for end in (self._bell, ring):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._note_deaths)

    def serve(self) -> None:
        """Until the agent is gone, or frozen for longer than anybody waits for it."""
        control = self._channel.fileno()
        self._poll.register(self._bell, select.POLLIN)
        while True:
            self._poll.register(control, select.POLLIN if self._channel.flush() else select.POLLIN | select.POLLOUT)
            closing = any(task.closing for task in self._tasks.values())
            ready = {fd for fd, _ in self._poll.poll((_LOOK if closing else vigil.GLANCE) * 1000)}
            if self._agent.frozen():
                return
            if self._bell in ready:
                _drain(self._bell)
            for task in [task for task in self._tasks.values() if task.pipe in ready]:
                self._hear(task)
            if control in ready:
                try:
                    for message, files in self._channel.receive():
                        self._obey(message, files)
                except EOFError:
                    return
            self._reap()
            if time.monotonic() >= self._next_look:
                self._look()

    # Requests ------------------------------------------------------------------------------------------------------

    def _obey(self, message: Message, files: list[int]) -> None:
        if message["do"] == "spawn":
            self._spawn(message, files)
            return
        task = self._tasks.get(message["id"])
        if task is None:  # it has ended meanwhile
            return
        match message["do"]:
            case "signal":
                self._signal(task, message["signal"], whole_tree=message["whole_tree"])
            case "kill":
                task.killed = True
                self._next_look = 0.0
                if not task.ended:
                    _send_group(task.pid, signal.SIGKILL)  # the look at /proc may take a while
            case "mark":
                task.marker = message["marker"]

    def _spawn(self, message: Message, files: list[int]) -> None:
        numbers = message["numbers"]
        try:
            if len(files) == len(numbers):
                self._start(message, dict(zip(numbers, files, strict=True)))
            else:
                self._not_started(message["id"], errno.EMFILE)
        except OSError as wrong:
            self._not_started(message["id"], wrong.errno or 0)
        finally:
            for file in files:
                os.close(file)

    def _start(self, message: Message, files: Mapping[int, int]) -> None:
        request = spawn.Request(
            argv=message["argv"],
            env=message["env"],
            cwd=message["cwd"],
            files=files,
            cpus=message["cpus"],
            oom_score_adj=message["oom_score_adj"],
        )
        pid, pipe, now = spawn.start(request)
        self._tasks[message["id"]] = _Task(
            id=message["id"],
            pid=pid,
            pipe=pipe,
            started=now,
            marker=message["marker"],
            pipes=frozenset(_pipes(files[number] for number in (1, 2))),
            grace=message["leftover_grace"],
        )
        self._poll.register(pipe, select.POLLIN)

    def _not_started(self, name: str, number: int) -> None:
        hint = _LIMITS.get(number, "")
        self._tell("failed", name, errno=number, path="", message=f"no new process: {os.strerror(number)}{hint}")

    def _signal(self, task: _Task, number: int, *, whole_tree: bool) -> None:
        if not task.ended and not whole_tree:
            _send_group(task.pid, number)
            return
        for process in self._members().get(task.id, ()):
            if whole_tree or process.group == task.pid:
                tree.send(process.pid, number)

    # News ----------------------------------------------------------------------------------------------------------

    def _tell(self, what: str, name: str, **more: Any) -> None:
        self._channel.put({"is": what, "id": name, **more})

    def _hear(self, task: _Task) -> None:
        """The child's exec has come off, or not."""
        if task.pipe is None:
            return
        self._poll.unregister(task.pipe)
        failure = spawn.read_failure(task.pipe)
        task.pipe = None
        if failure is None:
            self._tell("started", task.id, pid=task.pid, time=task.started)
            return
        del self._tasks[task.id]  # its process leaves by itself, and is reaped like any orphan
        self._tell("failed", task.id, errno=failure.errno, path=failure.path, message=failure.message)

    def _note_deaths(self, *_: object) -> None:
        """SIGCHLD, between any two steps: note the time of each end, so that no long look at /proc blurs it."""
        now = time.time()
        for task in tuple(self._tasks.values()):
            if not task.ended and task.pid not in self._times:
                try:
                    dead = os.waitid(os.P_PID, task.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                except ChildProcessError:
                    continue  # just reaped
                if dead is not None:
                    self._times[task.pid] = now

    def _reap(self) -> None:
        while (end := _wait()) is not None:
            pid, status, usage = end
            when = self._times.pop(pid, None) or time.time()
            task = next((task for task in self._tasks.values() if task.pid == pid and not task.ended), None)
            if task is None:
                continue  # an orphan we had adopted
            self._hear(task)
            if task.id not in self._tasks:
                continue
            task.ended = True
            self._next_look = 0.0
            signalled = os.WIFSIGNALED(status)
            self._tell(
                "exited",
                task.id,
                pid=pid,
                time=when,
                code=None if signalled else os.WEXITSTATUS(status),
                signal=os.WTERMSIG(status) if signalled else None,
                core=signalled and os.WCOREDUMP(status),
                user=usage.ru_utime,
                system=usage.ru_stime,
                max_rss=usage.ru_maxrss * 1024,
            )

    # What a task leaves --------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """End what ended tasks have left: TERM, their grace, KILL. Tell when nothing is."""
        closing = [task for task in self._tasks.values() if task.closing]
        if not closing:
            return
        members = self._members()
        now = time.monotonic()
        doomed = set()
        for task in closing:
            left = members.get(task.id)
            if left is None:
                if task.ended:
                    self._forget(task)
            elif task.killed or task.grace <= 0 or (task.deadline is not None and now >= task.deadline):
                doomed.add(task.id)
            elif task.deadline is None:
                task.deadline = now + task.grace
                for process in left:
                    tree.send(process.pid, signal.SIGTERM)
                    tree.send(process.pid, signal.SIGCONT)  # a stopped one would not hear it
        if doomed:
            tree.end(lambda: [one for name, all_of in self._members().items() if name in doomed for one in all_of])
        self._next_look = time.monotonic() + _LOOK

    def _forget(self, task: _Task) -> None:
        del self._tasks[task.id]
        self._owners = {key: owner for key, owner in self._owners.items() if owner is not task}
        self._tell("gone", task.id, time=time.time())

    def _members(self) -> dict[str, list[tree.Process]]:
        """The living processes of each task, its main one among them."""
        found: dict[str, list[tree.Process]] = {}
        if _childless():
            return found  # the kernel's own word, without a look at all of /proc
        me = os.getpid()
        table = tree.processes()
        mains = {task.pid: task for task in self._tasks.values() if not task.ended}
        # A session's number is not given away while somebody is in it, though its first process is long gone.
        sessions = {task.pid: task for task in self._tasks.values()}
        for process in tree.below(table, me):
            line = _line(process, table, me)
            known = (sessions.get(each.session) or mains.get(each.pid) for each in line)
            owner = next((task for task in known if task is not None), None) or self._adopted(line[-1])
            if owner is not None:
                found.setdefault(owner.id, []).append(process)
        return found

    def _adopted(self, orphan: tree.Process) -> _Task | None:
        """Whose a daemon is that has left its parents and its session: by its variables, or by the pipe it holds."""
        key = (orphan.pid, orphan.start)
        owner = self._owners.get(key)
        if owner is None:
            tasks = tuple(self._tasks.values())
            owner = next((task for task in tasks if tree.carries(orphan.pid, task.marker)), None)
            owner = owner or next((task for task in tasks if tree.holds(orphan.pid, task.pipes)), None)
            if owner is None and len(tasks) == 1:
                owner = tasks[0]  # it is nobody else's
        if owner is not None:
            self._owners[key] = owner
        return owner


def _end_all() -> None:
    """Kill every descendant until the kernel says that there is none."""
    me = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pause = 0.001
    refused_since: float | None = None
    while True:
        while _wait() is not None:
            pass
        if _childless():
            return
        # At once: one that forks and leaves, again and again, is another before a look at all of /proc has come to it.
        for pid in tree.children():
            tree.send(pid, signal.SIGKILL)
        if tree.end(lambda: tree.below(tree.processes(), me)):
            refused_since = None
        else:
            refused_since = refused_since or time.monotonic()
            if time.monotonic() - refused_since > _UNTOUCHABLE:
                return  # what is left is another user's (sudo): not ours to end
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)  # one in the middle of a disk or driver call goes when that returns


def _wait() -> tuple[int, int, Any] | None:
    """The next dead child: pid, status, rusage."""
    try:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status, usage) if pid else None


def _childless() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _send_group(pid: int, number: int) -> None:
    """Signal a main process, not yet reaped, and its process group."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        tree.send(pid, number)  # it has no group of its own yet
    except PermissionError:
        return  # all of it is another user's (sudo)


def _line(process: tree.Process, table: Mapping[int, tree.Process], root: int) -> list[tree.Process]:
    """The process, its parent, and so on up to the child of `root`."""
    line = [process]
    while (parent := table.get(line[-1].parent)) is not None and parent.pid != root:
        line.append(parent)
    return line


def _pipes(files: Iterable[int]) -> Iterator[tuple[int, int]]:
    for file in files:
        found = os.fstat(file)
        if stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode):
            yield found.st_dev, found.st_ino


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return


def _keep_only(fd: int) -> None:
    """Close all that the agent had open, but for `fd` and stderr: what we held, nobody would see the end of."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - no pathlib here
        if int(name) not in (0, 1, 2, fd):
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own

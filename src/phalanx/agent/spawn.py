"""From fork to exec: what a task's process does before it is the user's program, and why it could not become it."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import fcntl
import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
#: One string of argv or environment, its closing zero included (MAX_ARG_STRLEN: 32 pages).
_LONGEST = 128 * 1024
#: An answer this long goes through a pipe in one piece (PIPE_BUF).
_ANSWER = 4096
_FAILED = 127

_libc = ctypes.CDLL(None, use_errno=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One process to start. `files`: number in the child → open file here; must hold 1 and 2."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    files: Mapping[int, int]
    cpus: Sequence[int] = ()
    oom_score_adj: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why a program did not start. `path` is what was wrong: the folder, the program or its interpreter."""

    errno: int
    path: str
    message: str


def prctl(option: int, value: int | bytes) -> None:
    """Set one attribute of this process, as the manual of prctl says. Raises OSError."""
    argument = value if isinstance(value, bytes) else ctypes.c_ulong(value)
    none = ctypes.c_ulong(0)
    if _libc.prctl(option, argument, none, none, none) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def start(request: Request) -> tuple[int, int, float]:
    """Fork a child on its way to `request`: its pid, a pipe, and the Unix time of its start.

    The pipe reads end of file when the program runs, or `read_failure`'s text when it does not; the child then exits
    by itself. Raises OSError where no process or pipe is to be had. The caller must be single-threaded, and lives as
    long as the child: it is killed when its parent goes (PR_SET_PDEATHSIG, which is bound to the parent's thread).
    """
    parent = os.getpid()
    told, tell = os.pipe()
    # Blocked until the child has its defaults back: a signal sent right after the start is then kept, not ignored.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        now = time.time()
        pid = os.fork()
        if pid == 0:
            _become(request, tell, parent)
    except OSError:
        os.close(told)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(tell)
    return pid, told, now


def read_failure(pipe: int) -> Failure | None:
    """What the child said: None when its program runs. To be called when the pipe is readable; closes it."""
    try:
        text = os.read(pipe, _ANSWER)
    finally:
        os.close(pipe)
    return Failure(**json.loads(text)) if text else None


def _become(request: Request, tell: int, parent: int) -> NoReturn:
    """In the child: never returns, whatever happens."""
    try:
        # Past every number that the child will have, so that nothing it is given can close it.
        past = max(*request.files, *request.files.values(), tell) + 1
        pipe = fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, past)
        try:
            failure = _exec(request, pipe, parent)
        except Exception as wrong:  # noqa: BLE001 - nothing may climb back into the reaper's loop, in a second copy of it
            failure = Failure(getattr(wrong, "errno", None) or 0, "", f"could not be started: {wrong!r}")
        os.write(pipe, _packed(failure))
    finally:
        os._exit(_FAILED)


def _exec(request: Request, pipe: int, parent: int) -> Failure:
    """Set the stage and exec; returns only where that failed, with why."""
    os.setsid()
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it went before the line above could hold
        os._exit(_FAILED)
    _default_signals()
    if request.oom_score_adj is not None:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123 - no pathlib here
            file.write(str(request.oom_score_adj))
    if request.cpus:
        allowed = os.sched_getaffinity(0)
        if not allowed.issuperset(request.cpus):  # the kernel would use those of them that are, and say nothing
            cpus, ours = (",".join(map(str, sorted(some))) for some in (request.cpus, allowed))
            return Failure(errno.EINVAL, "", f"cannot be bound to CPUs {cpus}: this host lets us use {ours}")
        os.sched_setaffinity(0, request.cpus)
    _place_files(request.files, pipe)
    try:
        os.chdir(request.cwd)
    except OSError as wrong:
        return _failure(wrong, request.cwd, f"the folder to run in, {request.cwd}, cannot be entered: {wrong.strerror}")
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return _run(request)


def _default_signals() -> None:
    """What Python and the reaper ignore must not stay ignored in the program: SIGPIPE above all (`yes | head`)."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_DFL)
        except OSError:
            continue  # one that the C library keeps for itself


def _place_files(files: Mapping[int, int], pipe: int) -> None:
    """Each file at its number, /dev/null at 0, everything else closed but our answer's pipe, which lies past them all.

    Another child's pipe above all: while we had it, nobody could tell that that child runs.
    """
    # All go out of the way first, so that no dup2 closes what a later one needs.
    sources = {0: os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), **files}
    high = {number: fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, pipe + 1) for number, file in sources.items()}
    for number, file in high.items():
        os.dup2(file, number, inheritable=True)
    kept = [*sorted(high), pipe, max(high.values()) + 1]
    for low, next_kept in itertools.pairwise(kept):
        os.closerange(low + 1, next_kept)  # never (0, 0), which Python 3.11 takes for everything


def _run(request: Request) -> Failure:
    """execvpe, with the search of PATH in the child's own environment, and with a reason where it failed."""
    program = request.argv[0]
    if "/" in program:
        return _attempt(program, request)
    refused: Failure | None = None
    for folder in os.get_exec_path(dict(request.env)):
        path = os.path.join(folder, program)  # noqa: PTH118 - no pathlib here
        failure = _attempt(path, request)
        if not os.path.lexists(path):
            continue
        refused = refused or failure  # like execvp: go on looking where it may not be executed, but remember the first
        if failure.errno != errno.EACCES:
            break
    searched = f"no program {program!r} on PATH ({request.env.get('PATH', os.defpath)})"
    return refused or Failure(errno.ENOENT, program, searched)


def _attempt(path: str, request: Request) -> Failure:
    try:
        os.execve(path, list(request.argv), dict(request.env))  # noqa: S606 - the user's program, as written
    except OSError as wrong:
        return _explained(wrong, path, request)
    except ValueError as wrong:  # a zero byte, or a `=` in a name
        return Failure(errno.EINVAL, path, f"{path} cannot be started: {wrong}")


def _explained(wrong: OSError, path: str, request: Request) -> Failure:
    reasons: dict[int, Callable[[], tuple[str, str]]] = {
        errno.ENOENT: lambda: _missing(path),
        errno.EACCES: lambda: _denied(path),
        errno.ENOEXEC: lambda: (path, f"{path} is no program: no `#!` line, or built for another machine"),
        errno.E2BIG: lambda: (path, _too_big(request)),
        errno.ENOTDIR: lambda: (path, f"no program {path}: part of that path is not a folder"),
    }
    reason = reasons.get(wrong.errno or 0)
    where, message = reason() if reason else (path, f"{path} cannot be started: {wrong.strerror}")
    return _failure(wrong, where, message)


def _missing(path: str) -> tuple[str, str]:
    """The kernel says ENOENT as well of a script whose interpreter is not there."""
    if not os.path.exists(path):  # noqa: PTH110 - no pathlib here
        return path, f"no program {path}"
    interpreter = _interpreter(path)
    if interpreter is None:
        return path, f"{path} is there, but the loader it was built for is not (another Linux, or another libc)"
    note = ", with a carriage return: the file has Windows line ends" if interpreter.endswith("\r") else ""
    return interpreter, f"{path} wants the interpreter {interpreter!r}, which is not there{note}"


def _denied(path: str) -> tuple[str, str]:
    if os.path.isdir(path):  # noqa: PTH112 - no pathlib here
        return path, f"{path} is a folder, not a program"
    interpreter = _interpreter(path)
    if interpreter is not None and os.access(path, os.X_OK):
        return interpreter, f"{path} wants the interpreter {interpreter!r}, which may not be executed"
    return path, f"{path} may not be executed: chmod +x it, or start it with its interpreter (python {path})"


def _interpreter(path: str) -> str | None:
    """What stands after `#!`; None where the file begins with something else or cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - no pathlib here
            line = file.readline(256)
    except OSError:
        return None
    words = line[2:].strip(b" \t\n").split(None, 1) if line.startswith(b"#!") else []
    # A carriage return is part of the name for the kernel, though not for split().
    name = line[2:].strip(b" \t\n").partition(b" ")[0] if words else b""
    return os.fsdecode(name) if name else None


def _too_big(request: Request) -> str:
    sizes = {f"the variable {name}": len(os.fsencode(value)) + len(name) + 2 for name, value in request.env.items()}
    sizes |= {f"argument {place}": len(os.fsencode(word)) + 1 for place, word in enumerate(request.argv)}
    name, size = max(sizes.items(), key=lambda item: item[1])
    if size > _LONGEST:
        return f"{name} is {size:,} bytes long, and Linux takes {_LONGEST:,} for one string: hand it over in a file"
    return f"arguments and environment are {sum(sizes.values()):,} bytes, more than Linux takes here (ulimit -s)"


def _failure(wrong: OSError, path: str, message: str) -> Failure:
    return Failure(wrong.errno or 0, path, message)


def _packed(failure: Failure) -> bytes:
    """JSON of at most _ANSWER bytes, so that the reaper reads it in one piece."""
    room = _ANSWER
    while True:
        text = json.dumps({"errno": failure.errno, "path": failure.path[:room], "message": failure.message[:room]})
        if len(text) <= _ANSWER:
            return text.encode("ascii")
        room //= 2

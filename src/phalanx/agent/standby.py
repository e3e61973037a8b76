"""Standbys, seen from the agent: which commands can stand by, and the two pipes to an interpreter that does."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from phalanx.runtime.boot.phalanx_standby import ABANDONED, mark

if TYPE_CHECKING:
    import asyncio

__all__ = ["ABANDONED", "InterpreterLine", "Standby", "boot_env", "can_stand_by", "interpreter_line", "is_there"]

#: The pipes' numbers in the child: high, so that files which imports leave open have the numbers they always had.
_IDENTITY, _READY = 198, 199

_PYTHON = re.compile(r"python(3(\.\d+)?)?[td]*")
#: Switches, then perhaps one option with its value. Missing on purpose: E, I, S (sitecustomize would not be run),
#: h, V (no program is run), v (prints each import, in the order in which it is done).
_OPTION = re.compile(r"-[bBdiOPqRstux]*(?:(?P<name>[cmWX])(?P<value>.*))?", re.DOTALL)
_RUNS: Mapping[str, Literal["command", "module"]] = {"c": "command", "m": "module"}
#: Variables that do what `-v` and `-X importtime` do.
_TALKATIVE = ("PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class InterpreterLine:
    """A command line of Python that runs a program: `target` is a path, a module's name, or the program's text."""

    kind: Literal["script", "module", "command"]
    target: str
    #: What the program finds in sys.argv[1:].
    args: tuple[str, ...]


def interpreter_line(argv: Sequence[str]) -> InterpreterLine | None:
    """`argv` read as Python reads it. None where it is no Python, runs no program of its own, or must not stand by."""
    if not argv or not _PYTHON.fullmatch(argv[0].rpartition("/")[2]):
        return None
    rest = list(argv[1:])
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        option = _OPTION.fullmatch(rest.pop(0))
        if option is None:
            return None
        if option["value"]:
            rest.insert(0, option["value"])
        if option["name"] in _RUNS:
            return _program(_RUNS[option["name"]], rest)
        if option["name"] == "X" and rest[:1] and rest[0].startswith("importtime"):
            return None
        if option["name"]:
            del rest[:1]
    return _program("script", rest[1:] if rest[:1] == ["--"] else rest)


def _program(kind: Literal["script", "module", "command"], words: Sequence[str]) -> InterpreterLine | None:
    if not words or words[0] in ("", "-"):
        return None  # stdin, which is /dev/null
    return InterpreterLine(kind=kind, target=words[0], args=tuple(words[1:]))


def can_stand_by(argv: Sequence[str], environ: Mapping[str, str], cwd: str = "") -> bool:
    """Whether a task with this command and environment can be started before its identity is known.

    Not so where `argv[0]` is a script (a pyenv shim, a wrapper): it may start other interpreters first, or lose the
    pipes. Looks at the file; a relative path starts at `cwd`.
    """
    if interpreter_line(argv) is None or any(environ.get(name) for name in _TALKATIVE):
        return False
    folders = [""] if "/" in argv[0] else os.get_exec_path(environ)
    for program in (os.path.join(cwd, folder, argv[0]) for folder in folders):  # noqa: PTH118 - pathlib is dear, as below
        if os.access(program, os.X_OK):
            with open(program, "rb") as file:  # noqa: PTH123 - no pathlib before the standbys are off
                return file.read(2) != b"#!"
    return False


def is_there(boot: str) -> bool:
    """Whether our sitecustomize lies there still: without it a standby would not wait, and run the program alone."""
    return os.access(f"{boot}/sitecustomize.py", os.R_OK)


def boot_env(environ: Mapping[str, str], boot: str) -> dict[str, str]:
    """What to add to `environ` so that an interpreter runs `boot`/sitecustomize.py. That takes it out again.

    Raises ValueError where `boot` cannot be an entry of PYTHONPATH.
    """
    if not boot.startswith("/") or os.pathsep in boot:
        raise ValueError(f"{boot!r} cannot be put on PYTHONPATH: an absolute path without {os.pathsep!r} can")
    before = environ.get("PYTHONPATH")
    if before is None:
        return {"PYTHONPATH": boot}
    return {"PYTHONPATH": f"{boot}{os.pathsep}{before}" if before else boot, "PHALANX_BOOT_PYTHONPATH": before}


class Standby:
    """The agent's side of one standby: `env` and `fds` for its start, then `started`, and `go` or `discard`.

    It owns four file descriptors until `started`, two until its end.
    """

    def __init__(self, *, boot: str, imports: Sequence[str] = ()) -> None:
        """`boot`: the folder with our sitecustomize. `imports`: as `script.imports` found them; they may be stale."""
        self._boot, self._head = boot, "".join(imports).encode()
        identity, self._identity = os.pipe()
        self._ready, ready = os.pipe()
        self.fds: Mapping[int, int] = {_IDENTITY: identity, _READY: ready}
        self._is_ready: bool | None = None
        self._heard: asyncio.Future[bool] | None = None
        os.set_blocking(self._ready, False)

    def env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What to add to `environ`, the whole environment of the task as far as it is known."""
        added = {**boot_env(environ, self._boot), "PHALANX_BOOT_FDS": f"{_IDENTITY},{_READY}"}
        if self._head:
            added["PHALANX_BOOT_HEAD"] = f"{len(self._head)}:{mark(self._head)}"
        return added

    def started(self) -> None:
        """The child has its ends of the pipes; ours of those are closed."""
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}

    @property
    def ready(self) -> bool:
        """Whether it waits for its identity, everything before done. Stays true."""
        self._listen()
        return self._is_ready is True

    async def wait_ready(self) -> bool:
        """Until it waits for its identity (True) or has ended before (False). Any number may wait."""
        import asyncio  # noqa: PLC0415 - dear before the standbys are off

        loop = asyncio.get_running_loop()
        self._listen()
        if self._is_ready is not None:
            return self._is_ready
        if self._heard is None:
            self._heard = loop.create_future()
            loop.add_reader(self._ready, self._on_readable, loop)
        return await asyncio.shield(self._heard)

    def _on_readable(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self._ready)
        self._listen()
        if self._heard is not None and not self._heard.done():
            self._heard.set_result(self._is_ready is True)

    def _listen(self) -> None:
        if self._is_ready is not None:
            return
        try:
            self._is_ready = os.read(self._ready, 1) == b"R"
        except BlockingIOError:
            return
        os.close(self._ready)

    def go(self, env: Mapping[str, str], unset: Sequence[str] = ()) -> None:
        """Give it its identity: variables to set and to remove. It need not be ready yet. Once; later calls do nothing.

        TF_CONFIG and PHALANX_… come without loss; another variable that changes makes it start afresh, cold. An
        interpreter that has ended already is no error here: its exit says so.
        """
        if self._identity < 0:
            return
        entries = [f"{name}={value}" for name, value in env.items()] + [*unset]
        if any("\0" in entry for entry in entries) or any(not name or "=" in name for name in (*env, *unset)):
            raise ValueError("a variable's name is not empty and has no '='; neither it nor its value has a zero byte")
        text = b"".join(os.fsencode(entry) + b"\0" for entry in entries)
        self._send(len(text).to_bytes(8, "big") + text)

    def _send(self, frame: bytes) -> None:
        """Without waiting: what the pipe does not take at once (a cluster of thousands) a thread passes on."""
        pipe, self._identity = self._identity, -1
        os.set_blocking(pipe, False)
        try:
            frame = frame[os.write(pipe, frame) :]
        except BrokenPipeError:
            frame = b""
        if not frame:
            os.close(pipe)
            return
        import threading  # noqa: PLC0415 - seldom needed

        threading.Thread(target=_pass_on, args=(pipe, frame), daemon=True, name="standby identity").start()

    def discard(self) -> None:
        """It will get no identity: where it waits, or comes to wait, it exits with `ABANDONED` and says nothing.

        Also lets go of the pipes after `go`. Idempotent.
        """
        if self._heard is not None and not self._heard.done():
            self._heard.get_loop().remove_reader(self._ready)
            self._heard.set_result(False)
        self._close()

    def _close(self) -> None:
        self.started()
        if self._identity >= 0:
            os.close(self._identity)
            self._identity = -1
        if self._is_ready is None:
            os.close(self._ready)
            self._is_ready = False

    def __del__(self) -> None:
        """Nobody can tell it its identity any more."""
        self._close()


def _pass_on(pipe: int, frame: bytes) -> None:
    os.set_blocking(pipe, True)
    try:
        while frame:
            frame = frame[os.write(pipe, frame) :]
    except BrokenPipeError:
        return  # it has ended; its exit says so
    finally:
        os.close(pipe)

"""What the tasks of one host leave in the run's folder: folders of their own, all they say, and their stacks."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from phalanx import events as ev
from phalanx.agent.disk import Disk
from phalanx.agent.log import say as say_here
from phalanx.agent.output import Capture
from phalanx.agent.running import Running
from phalanx.agent.stacks import Stacks, write_stacks
from phalanx.names import TaskId
from phalanx.redact import Masker
from phalanx.runtime.boot.phalanx_life import quoted

#: Seconds that the last output of an ended process has to arrive, and a disk that is slow has to take it.
DRAIN, WRITE = 0.5, 10.0

#: Seconds for which a task waits for its own folder.
FURNISH = 5.0

#: For each stream of a task: who is told all that comes.
Echo = Callable[[TaskId, str], Callable[[bytes], None]]


class Logs:
    """A disk that refuses, or takes nothing, costs what it does not take, never a task."""

    def __init__(
        self,
        folder: Path,
        *,
        host: int,
        secrets: Sequence[bytes],
        say: Callable[[ev.Event], None],
        echo: Echo | None = None,
    ) -> None:
        """`secrets` are masked in all that is written; `say` hears of trouble with the disk, `echo` what is written."""
        self._echo = echo
        self._folder, self._host, self._secrets, self._say = folder, host, list(secrets), say
        #: Whatever waits for the run's folder is put there.
        self.disk = Disk(self._note)
        self._open: list[Capture] = []

    def furnish(self, task: TaskId) -> None:
        """The folders of a task; see `furnished`."""
        for kind in ("tasks", "logs"):
            self.disk.put(functools.partial(self._make, self._folder / kind / task.folder, task))

    def _make(self, folder: Path, task: TaskId) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            self.disk.back(self._note, f"{folder} cannot be made: {wrong.strerror}", task)

    async def furnished(self) -> None:
        """Until the folders are there, or the disk is not to be waited for."""
        await self.disk.settle(FURNISH)

    def capture(self, running: Running, out: int, err: int) -> None:
        """Keep what comes from these two from now on; they are ours."""
        folder, task = self._folder / "logs" / running.task.id.folder, running.task.id
        stem = f"g{running.generation}.a{running.task.attempt}"
        running.captures = [
            Capture(
                fd,
                folder / f"{stem}.{kind}",
                self.disk,
                masker=Masker(self._secrets) if self._secrets else None,
                on_trouble=lambda trouble: self._note(trouble.message, task),
                echo=self._echo(task, stem if kind == "out" else "") if self._echo is not None else None,
            )
            for fd, kind in ((out, "out"), (err, "err"))
        ]
        self._open = [capture for capture in self._open if not capture.done.is_set()] + running.captures

    async def written(self, running: Running) -> None:
        """Until all that an ended task has said is written, within bounds: a report without its end is half of one."""
        # A grandchild may hold the pipe for longer; then what has come is what we say.
        await asyncio.wait([asyncio.ensure_future(capture.done.wait()) for capture in running.captures], timeout=DRAIN)
        await self.disk.settle(WRITE)

    async def stacks(self, running: Running, pid: int) -> Stacks | None:
        """See `stacks.write_stacks`."""
        return await write_stacks(running, pid, self._folder, self.disk)

    def raised(self, running: Running) -> dict[str, str]:
        """The fields of its exit that tell the exception; all of it goes into a file beside its output."""
        found = running.raised
        if found is None:
            return {}
        stem = f"g{running.generation}.a{running.task.attempt}"
        path = self._folder / "logs" / running.task.id.folder / f"{stem}.error.json"
        if found.text:
            self.disk.put(functools.partial(self._write, path, self._masked(found.text), running.task.id))
        said, where = (self._masked(text.encode(errors="replace")).decode() for text in (found.said, found.where))
        return {"raised": said, "raised_at": where, "error_file": str(path) if found.text else ""}

    def _masked(self, text: bytes) -> bytes:
        """Without the secrets, as they are and as the runtime's JSON writes them."""
        written = (quoted(value.decode(errors="surrogateescape"))[1:-1].encode() for value in self._secrets)
        masker = Masker([*self._secrets, *written])
        return masker.feed(text) + masker.flush()

    def _write(self, path: Path, text: bytes, task: TaskId) -> None:
        try:
            path.write_bytes(text)
        except OSError as wrong:
            self.disk.back(self._note, f"{path} cannot be written: {wrong.strerror}", task)

    def close(self) -> None:
        """Nothing more is said: what has come is written, if the disk takes it soon. Blocks."""
        for capture in self._open:
            capture.close()
        if not self.disk.close():
            say_here("the disk of the run's folder takes nothing: what the tasks have said last is not in their logs")

    def _note(self, message: str, task: TaskId | None = None) -> None:
        self._say(ev.Noted(time=time.time(), message=message, task=task, host=self._host))

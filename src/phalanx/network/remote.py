"""One host's probe, seen from here: a process that reaches the host, orders down its input, answers from its output."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import shlex
import signal
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.errors import InputError, PlaceError
from phalanx.network.inside import phalanx_probe as inside

#: No character that a remote shell would read otherwise, so that `ssh`, which has one, and `srun`, which has none,
#: take the same words. `code` reads its lines from the input: the first one is the probe.
PYTHON = ("python3", "-I", "-S", "-m", "code")

#: What the probe is written for.
OLDEST = (3, 9)

#: Seconds in which a probe ends by itself once its input has ended, and once nobody has said anything to it.
_LEAVING, IDLE = 2.0, 120
#: Lines of what the command says that an error looks through, and what Python says in them of itself.
_LINES = 20
_BANNER = ("Python 3", 'Type "help"', "(InteractiveConsole)", ">>>")
_LINE = 1 << 20


class LostError(PlaceError):
    """A host is out of reach."""


class Remote:
    """Belongs to one event loop. `end` it, whatever happens."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, words: Sequence[str]) -> None:
        """See `start`."""
        self.name = name
        self._process, self._words = process, words
        self._numbers = itertools.count(1)
        self._awaited: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._said: deque[str] = deque(maxlen=_LINES)
        self._up = False
        #: Why it has ended.
        self._gone = ""
        self._tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._overhear())]

    @classmethod
    async def start(cls, name: str, through: Sequence[str]) -> Remote:
        """`through`: a command in which `{host}` stands for the name. Raises InputError where there is no such."""
        words = [word.replace("{host}", name) for word in through]
        pipe = asyncio.subprocess.PIPE
        try:
            # A session of its own: Ctrl-C is ours to pass on.
            process = await asyncio.create_subprocess_exec(
                *words, *PYTHON, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LINE, start_new_session=True
            )
        except OSError as wrong:
            message = f"{words[0]} cannot be started: {os.strerror(wrong.errno or 0)}"
            raise InputError(message, hint="say what reaches a host: --through 'ssh {host}'") from wrong
        return cls(name, process, words)

    async def greet(self, hello: Mapping[str, Any], *, patience: float) -> dict[str, Any]:
        """Send the probe and its first words; what it says of its host. Raises LostError."""
        answer = self._expect(0)
        await self._tell(_program() + json.dumps({**hello, "idle": IDLE}) + "\n")
        told = await self._await(answer, patience)
        self._up = True
        return told

    async def ask(self, order: Mapping[str, Any], *, patience: float) -> dict[str, Any]:
        """Its answer to an order. Raises LostError where it ends, or does not answer for so many seconds."""
        number = next(self._numbers)
        answer = self._expect(number)
        await self._tell(json.dumps({**order, "id": number}) + "\n")
        return await self._await(answer, patience)

    async def end(self) -> None:
        """It ends, and what it runs on the host with it. Idempotent."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        try:
            async with asyncio.timeout(_LEAVING):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _expect(self, number: int) -> asyncio.Future[dict[str, Any]]:
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._awaited[number] = answer
        if self._gone:
            self._give_up()
        return answer

    async def _tell(self, text: str) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(OSError):  # that it has ended is heard at the other pipe
            self._process.stdin.write(text.encode())
            await self._process.stdin.drain()

    async def _await(self, answer: asyncio.Future[dict[str, Any]], patience: float) -> dict[str, Any]:
        try:
            async with asyncio.timeout(patience):
                return await answer
        except TimeoutError:
            raise self._lost(f"no answer within {patience:.0f} s") from None

    async def _hear(self) -> None:
        """Answers, among whatever else the way to the host prints."""
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(ValueError):  # a line without an end: nothing of ours
            async for line in self._process.stdout:
                told = _answer(line)
                if told is not None and (answer := self._awaited.pop(told.get("id", -1), None)) is not None:
                    if not answer.done():
                        answer.set_result(told)
                elif told is None and line.strip():
                    self._said.append(line.decode(errors="replace").strip())
        code = await self._process.wait()
        await self._tasks[1]
        self._gone = next((said for said in reversed(self._said) if not said.startswith(_BANNER)), "") or _ended(code)
        self._give_up()

    def _give_up(self) -> None:
        for answer in self._awaited.values():
            if not answer.done():
                answer.set_exception(self._lost(self._gone))
                answer.exception()  # it may be that nobody waits for it any more
        self._awaited.clear()

    async def _overhear(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        with contextlib.suppress(ValueError):
            async for line in self._process.stderr:
                if line.strip():
                    self._said.append(line.decode(errors="replace").strip())

    def _lost(self, why: str) -> LostError:
        if self._up:
            return LostError(
                f"{self.name} was lost while it was measured: {why}", hint="leave it out, or measure again"
            )
        tried = shlex.join([*self._words, "python3", "--version"])
        return LostError(f"{self.name} cannot be reached: {why}", hint=f"this must work without a question: {tried}")


def _program() -> str:
    """The probe as one line."""
    source = Path(inside.__file__).read_text(encoding="utf-8")
    old = f"sys.exit('its python3 is %d.%d, and {OLDEST[0]}.{OLDEST[1]} is needed' % sys.version_info[:2])"
    probe = f"exec({source!a}, {{'__name__': 'phalanx_probe'}})"
    return f"import sys; {old} if sys.version_info < {OLDEST} else {probe}\n"


def _answer(line: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(line)["phalanx"]
    except (ValueError, KeyError, TypeError):
        return None
    return told if isinstance(told, dict) else None


def _ended(code: int) -> str:
    return f"its command ended with exit code {code}" if code >= 0 else f"its command was ended by signal {-code}"

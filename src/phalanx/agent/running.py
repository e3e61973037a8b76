"""One attempt of one task, from its order to its end."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

from phalanx.agent.children import Child
from phalanx.agent.life import Life
from phalanx.agent.output import Capture
from phalanx.agent.standby import Standby
from phalanx.noise import own_words
from phalanx.protocol.messages import StartTask

#: How many last lines an exit carries, and how long each may be.
_LAST_LINES, _LINE_LENGTH = 20, 500


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Raised:
    """The exception that ended a program: in a word, where in its own files, and all of it as JSON."""

    said: str
    where: str
    text: bytes


class Running:
    """What is known of it here. The three events are set once and stay set."""

    def __init__(self, task: StartTask, generation: int, tf_config: str | None) -> None:
        """Nothing runs yet."""
        self.task, self.generation, self.tf_config = task, generation, tf_config
        self.child: Child | None = None
        self.former: Child | None = None  # the process of the attempt or generation before
        self.standby: Standby | None = None
        self.life: Life | None = None
        self.captures: list[Capture] = []
        self.started = asyncio.Event()  # it has its identity
        self.listens = asyncio.Event()
        self.ended = asyncio.Event()
        self.stopped = False
        self.pid = 0
        #: The exception that ended it, as its runtime told it.
        self.raised: Raised | None = None
        #: Whether it has ended inside a training step; None where nobody tells.
        self.inside: bool | None = None
        #: What a standby must still be told: variables to set, and to remove.
        self.news: dict[str, str] = {}
        self.gone: tuple[str, ...] = ()

    def last_words(self) -> dict[str, Any]:
        """What it said last on stderr, where tracebacks go; and on stdout where stderr says nothing of its own."""
        out, err = (capture.last_lines(_LAST_LINES) for capture in self.captures)
        lines = tuple(line[:_LINE_LENGTH] for line in (err or out))
        return {"last_lines": lines, "last_output": out[-1][:_LINE_LENGTH] if out and not own_words(err) else ""}

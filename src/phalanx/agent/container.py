"""What an agent does besides where it is a container's first process: its pod's TERM, log, exit code and last word."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from phalanx.agent.carrier import Carrier
from phalanx.agent.console import Console
from phalanx.agent.link import Link
from phalanx.agent.log import say
from phalanx.agent.logs import Echo
from phalanx.agent.tasks import Tasks
from phalanx.errors import PlaceError
from phalanx.events import HostWithdrawn
from phalanx.plan.pods import final
from phalanx.records.folder import RunFolder
from phalanx.records.gist import gist
from phalanx.spans import span

_BY = "Kubernetes, which ends its pod (TERM)"

#: Of the grace, this part is kept for what does not end by itself, and so many seconds of it at most.
_KEPT, _MOST = 0.4, 10.0

#: Seconds that a lead which has led the run to its end may take to dismiss the others and write; one that hands over;
#: and the log.
_LEAVING, _GOING, _TELLING = 15.0, 3.0, 5.0

#: Seconds of the grace that are left alone.
_LAST = 0.5

#: Seconds for which a replaced host is believed to live, beyond its grace, before its replacement gives up.
_BELIEVED = 60.0

#: Seconds without a lead, at the beginning, of which there is a word.
_SILENT = 20.0

#: Bytes that Kubernetes takes as the last word of a container.
_WORD = 4096


class Container:
    """Asked by `agent.host` at each point where a pod is not like any host."""

    def __init__(self, config: dict[str, Any], carrier: Carrier) -> None:
        """Starts to tell the records at once, where this host leads."""
        about = config["pod"]
        self._folder = RunFolder(Path(config["host"]["folder"]))
        self._host: int = config["host"]["id"]
        self._grace: float = about["grace"]
        self._kept = min(_KEPT * self._grace, _MOST)
        self._word = Path(about["word"])
        self._carrier = carrier
        self._console = Console(self._folder.events, leads=lambda: carrier.carries or carrier.done)
        self._console.start()
        self._conversation: asyncio.Task[None] | None = None
        self._told = False
        self._killed = 0.0  # when it will be, by the monotonic clock, once it is told to end
        self._code: int | None = None
        #: Who hears what tasks say, besides their logs.
        self.echo: Echo | None = self._console.stream if about["echo"] else None
        #: Seconds for which it waits until the agent is given up that was here before, and for a lead at all.
        self.replaces, self.joins = _BELIEVED + self._grace, float(about["joins"])
        #: Who may lead by now, before the lead itself has said so.
        self.line = tuple(about["line"])
        #: Seconds that tasks may take to end which this agent has to end; a little is left for itself.
        self.last = max(self._kept - 2.0, 0.5 * self._kept)

    async def run(self, link: Link, tasks: Tasks) -> None:
        """The link's whole conversation; cut short where the pod has to end before it has joined."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ended, link, tasks)
        loop.call_later(_SILENT, self._no_lead, link)
        self._conversation = asyncio.ensure_future(link.run())
        try:
            await self._conversation
        except asyncio.CancelledError:
            if not self._told:
                raise
        finally:
            self._code = link.code

    def _no_lead(self, link: Link) -> None:
        if not link.joined:
            say(f"no lead answers yet ({', '.join(self.line)}); this agent waits {span(round(self.joins))} in all")

    def _ended(self, link: Link, tasks: Tasks) -> None:
        """TERM: where all can stop they do, and this host is let go before it is killed."""
        if self._told or self._conversation is None:
            return
        self._told = True
        self._killed = time.monotonic() + self._grace
        if not link.joined:
            say("the pod is told to end (TERM) before it has joined the run")
            self._conversation.cancel()
            return
        say(f"the pod is told to end (TERM) within {self._grace:g} s: the run is to go on without it")
        link.say(HostWithdrawn(time=time.time(), host=self._host, by=_BY))
        asyncio.get_running_loop().call_later(self._grace - self._kept, self._late, tasks)

    def _late(self, tasks: Tasks) -> None:
        """The group has not stopped in time: what runs here has to end now."""
        why = f"Kubernetes ends its pod, and the group has not stopped within its grace of {self._grace:g} s"
        tasks.give_up(time.time(), why)

    def leave(self, code: int) -> int:
        """The exit code: the run's where the lead has said it; where only this pod goes another one is to follow."""
        going = self._told and self._code in (None, PlaceError.exit_code)
        left = self._killed - time.monotonic() - _LAST if self._told else _LEAVING
        self._carrier.wait(min(_GOING if going else _LEAVING, left))
        if self._carrier.done:
            self._tell(gist(self._report(), _WORD))
        self._console.close(min(_TELLING, max(left, _LAST)))
        if self._code is not None:
            return self._code
        if going:
            return PlaceError.exit_code
        return final(self._report().get("exit_code", code)) if self._carrier.done else code

    def _report(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._folder.report.read_bytes())
        except (OSError, ValueError):
            return {}
        return found

    def _tell(self, word: str) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(self._word, os.O_WRONLY | os.O_TRUNC)
            os.write(fd, word.encode())
            os.close(fd)

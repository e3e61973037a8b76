"""One host's preflight: all checks at once, each in a thread of its own, and one answer."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from phalanx.agent.preflight import limits, storage, surroundings, versions
from phalanx.agent.preflight.asked import Answer, Asked
from phalanx.agent.preflight.names import Unresolved, resolve
from phalanx.agent.preflight.programs import programs_of
from phalanx.agent.preflight.reach import Greeter, Greeting, reach
from phalanx.apart import apart
from phalanx.events import HostChecked
from phalanx.plan.checklist import Peer
from phalanx.protocol.messages import Order
from phalanx.protocol.signing import RunKey

#: Seconds for a check that waits for nobody: what takes longer hangs, on a file server most likely.
PATIENCE = 60.0

#: Beyond this many ports, one of each peer has to do.
_PORTS = 256


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A function, the row to blame when it never comes back, and whether later generations need it again."""

    row: str
    look: Callable[[Asked, Answer], None]
    again: bool = False


CHECKS = (
    Check(row="program-found", look=versions.check),
    Check(row="processes", look=limits.check, again=True),
    Check(row="disk", look=storage.disk, again=True),
    Check(row="proxy", look=surroundings.proxies),
    Check(row="same-gpus", look=surroundings.gpus),
    Check(row="time-left", look=surroundings.time_left, again=True),
    Check(row="clock", look=surroundings.clock),
)


class Preflight:
    """Looks when told to, and takes away what it needed for that when the tasks are to start, or will never."""

    def __init__(self, *, host: int, run: str, key: RunKey, environ: Mapping[str, str], folder: Path) -> None:
        """`environ` is what every task inherits; `folder` the run's."""
        self._host, self._run, self._key, self._environ, self._folder = host, run, key, environ, folder
        self._greeter: Greeter | None = None
        self._checkpoints = storage.Checkpoints()
        self._over = threading.Event()
        #: Seconds by which this clock is ahead of the lead's; set once the host has joined.
        self.ahead: Callable[[], float] = lambda: 0.0

    async def look(self, order: Order) -> HostChecked | None:
        """The whole preflight of one generation; None where the order asks for none, or it was ended meanwhile."""
        if order.check is None:
            return None
        self.end(keep=True)
        over = self._over = threading.Event()
        began = time.monotonic()
        asked = Asked(
            host=self._host,
            list=order.check,
            programs=programs_of(order.tasks, self._environ, order.cwd),
            environ=self._environ,
            folder=self._folder,
            token=(
                f".phalanx-token-{self._run}-g{order.generation}",
                self._key.mac(b"token", self._run.encode(), str(order.generation).encode()),
            ),
            ahead=self.ahead(),
        )
        checks = [check for check in CHECKS if check.again or not order.check.again]
        checks.append(Check(row="checkpoint-writable", look=self._checkpoints.check))
        meeting = asyncio.ensure_future(self._meet(asked, order, over))
        answers = await asyncio.gather(*(_bounded(check, asked) for check in checks), meeting)
        if over.is_set():
            return None
        ignored = frozenset(order.check.ignored)
        return HostChecked(
            time=time.time(),
            host=self._host,
            generation=order.generation,
            seconds=round(time.monotonic() - began, 3),
            looked=tuple(dict.fromkeys(one for answer in answers for one in answer.looked if one not in ignored)),
            facts=tuple(dict.fromkeys(fact for answer in answers for fact in answer.facts)),
            faults=tuple(
                dict.fromkeys(fault for answer in answers for fault in answer.faults if fault.check not in ignored)
            ),
        )

    def end(self, *, keep: bool) -> None:
        """Nothing of the preflight is left: no listener, no token; `keep` says that tasks will use the folder."""
        self._over.set()
        if self._greeter is not None:
            self._greeter.close()
            self._greeter = None
        self._checkpoints.end(keep=keep)

    async def _meet(self, asked: Asked, order: Order, over: threading.Event) -> Answer:
        """Names first, then the ports behind them."""
        answer = Answer()
        mine = [task.port for task in order.tasks if task.port is not None]
        if not mine:
            return answer
        answer.look("names-resolve", "peers-reachable")
        greeting = Greeting(self._key, self._run, order.generation)
        self._greeter = Greeter(greeting, self._host)
        try:
            self._greeter.listen(mine)
        except OSError as wrong:
            answer.fault("peers-reachable", f"its own ports cannot be listened on: {wrong}", peer=self._host)
            return answer
        every = sum(len(peer.ports) for peer in asked.list.peers) <= _PORTS

        async def visit(peer: Peer) -> None:
            try:
                places = await apart(
                    lambda: resolve(peer.address, patience=asked.list.patience, over=over), name="preflight"
                )
            except Unresolved as wrong:
                answer.fault("names-resolve", str(wrong))
                return
            ports = peer.ports if every else peer.ports[:1]
            said = await asyncio.gather(*(reach(greeting, peer, port, places) for port in ports))
            wrong_port = next((number for number, words in enumerate(said) if words), None)
            if wrong_port is not None:
                words = f"{peer.address}:{ports[wrong_port]} {said[wrong_port]}"
                answer.fault("peers-reachable", words, peer=peer.host)

        await asyncio.gather(*map(visit, asked.list.peers))
        return answer


async def _bounded(check: Check, asked: Asked) -> Answer:
    answer = Answer()
    try:
        async with asyncio.timeout(PATIENCE):
            await apart(lambda: check.look(asked, answer), name="preflight")
    except TimeoutError:
        late = Answer()  # the thread may still write into its own
        late.look(check.row)
        late.fault(check.row, f"no answer within {PATIENCE:g} s: does a file server hang?")
        return late
    except Exception as wrong:  # noqa: BLE001 - a check that breaks must not cost the job: it counts as not made
        sys.stderr.write(f"preflight: the check around {check.row} broke: {wrong!r}\n")
        return Answer()
    return answer

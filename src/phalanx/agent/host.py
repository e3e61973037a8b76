"""The agent once it is whole: one event loop that owns this host's ports, tasks, and line to the lead."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phalanx.agent.carrier import Carrier
from phalanx.agent.children import Reaper
from phalanx.agent.container import Container
from phalanx.agent.facts import this_machine
from phalanx.agent.journal import Journal
from phalanx.agent.link import LeadGoneError, Link
from phalanx.agent.log import say
from phalanx.agent.pins import Pins
from phalanx.agent.pool import Bounds, Pool
from phalanx.agent.ports import PortHolder
from phalanx.agent.preflight.checks import Preflight
from phalanx.agent.prestart import Waiting, refusal, stand_by
from phalanx.agent.succession import Succession
from phalanx.agent.tasks import Tasks
from phalanx.agent.understudy import Understudy
from phalanx.apart import Briefly
from phalanx.decide.quorum import lease_for
from phalanx.errors import PhalanxError, PlaceError, ProtocolError
from phalanx.events import Event, StopRequested
from phalanx.patient import patient_stderr
from phalanx.plan.part import part
from phalanx.protocol.client import LeadClient
from phalanx.protocol.messages import VERSION, Join
from phalanx.protocol.signing import RunKey
from phalanx.protocol.steady import SteadyClock
from phalanx.protocol.transport import HttpTransport
from phalanx.records.copybook import CopyBook
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import last_beat, read_rule

#: Seconds that the lead of a run that has ended may take to leave.
LEAVING = 3.0

#: Seconds between TERM and KILL for tasks whose agent has to go.
LAST = 5.0

#: Generations for which ports are held at once: this one and the next.
_GENERATIONS = 2


def run_agent(config: dict[str, Any], reaper: Reaper, waiting: dict[str, Waiting], carrier: Carrier) -> int:
    """See agent.main."""
    # Only the lead's orders and the launcher's pipe end it; a closing terminal does not.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    patient_stderr(apart=True)  # the reaper is forked, and threads are allowed
    pod = Container(config, carrier) if "pod" in config else None
    try:
        code = asyncio.run(_run(config, reaper, waiting, carrier, pod))
    except PhalanxError as wrong:
        say(f"{wrong}")
        code = wrong.exit_code
    except OSError as wrong:
        say(f"the agent cannot go on: {refusal(wrong)}")
        code = PlaceError.exit_code
    finally:
        if pod is None:
            # Whoever waits for this agent may then take the run's folder away: nobody writes into it any more.
            carrier.wait(LEAVING)
    return pod.leave(code) if pod is not None else code


async def _run(
    config: dict[str, Any], reaper: Reaper, waiting: dict[str, Waiting], carrier: Carrier, pod: Container | None
) -> int:
    carrier.attach(asyncio.get_running_loop())
    holder = PortHolder(_range(config["ports"]))
    serving = config["serving"]
    ports = holder.hold(serving * _GENERATIONS)
    about = config["host"]
    mine = part(this_machine(config["environ"]), *about["part"])
    pins = Pins(mine if config["pin"] else dataclasses.replace(mine, nodes=()))
    host = dataclasses.replace(
        pins.host,
        id=about["id"],
        name=about["name"],
        address=about["address"],
        ports=ports[:serving],
        folder=about["folder"],
        role=about.get("role", ""),
    )
    join = Join(
        version=VERSION,
        run=config["run"],
        instance=os.urandom(8).hex(),
        host=host,
        pid=os.getpid(),
        lead=carrier.address,
    )
    address, _, port = config["lead"].rpartition(":")
    transport, run_folder = HttpTransport(address, int(port)), RunFolder(Path(host.folder))
    key = RunKey.from_hex(config["key"])
    client = LeadClient(transport, key, clock=SteadyClock())
    preflight = Preflight(host=host.id, run=config["run"], key=key, environ=config["environ"], folder=Path(host.folder))
    preflight.ahead = lambda: client.ahead
    tasks = Tasks(
        host=host.id,
        folder=Path(host.folder),
        environ=config["environ"],
        secrets=[value.encode() for value in config["secrets"]],
        reaper=reaper,
        boot=config["boot"],
        pool=functools.partial(_pool, config, reaper, waiting),
        ports_after=_Ports(holder, ports[serving:], serving).after,
        lend=holder.lend,
        preflight=preflight,
        pins=pins,
        cwd=config["cwd"],
        echo=pod.echo if pod is not None else None,
    )
    lease, shared = lease_for(config["carry"]["lead"]["outline"].get("hosts", 1)), config["carry"]["lead"]["shared"]
    understudy = None
    if not shared:
        book = CopyBook(run_folder, host=host.id)
        understudy = Understudy(client, book, instance=join.instance, host=host.id, away=tasks.disk.ask)
    succession = Succession(
        carrier,
        lead=config["lead"],
        lease=lease,
        turn_to=transport.turn_to,
        rule=Briefly(lambda: read_rule(run_folder) if shared else None, None, name="rule"),
        beat=Briefly(lambda: last_beat(run_folder) if shared else None, None, name="beat"),
        understudy=understudy,
    )
    if pod is not None:
        succession.learn(pod.line)
    journal = Journal(run_folder.agents / f"{host.id}.words", tasks.disk)
    link = Link(
        client,
        join,
        tasks.obey,
        patience=lease,
        succession=succession,
        journal=journal,
        **({"replaces": pod.replaces, "crowd": pod.joins} if pod is not None else {}),
    )
    tasks.attach(link)
    if config["attached"]:
        _watch_launcher(link)
    disowned = ""
    copying = asyncio.ensure_future(understudy.run()) if understudy is not None else None
    try:
        await (pod.run(link, tasks) if pod is not None else link.run())
    except* ProtocolError as group:
        wrong = group.exceptions[0]
        disowned = f"{carrier.why}; {wrong}" if carrier.why and isinstance(wrong, LeadGoneError) else str(wrong)
    if copying is not None:
        copying.cancel()
    if disowned:
        say(f"{disowned}; ending this host's tasks")
        await tasks.end_all(pod.last if pod is not None else LAST)
    journal.close(keep=link.untold > 0)
    tasks.close()
    holder.release_all()
    return PlaceError.exit_code if disowned and not carrier.done else 0


def _pool(config: dict[str, Any], reaper: Reaper, waiting: dict[str, Waiting], say: Callable[[Event], None]) -> Pool:
    return Pool(
        waiting.values(),
        host=config["host"]["id"],
        cwd=config["cwd"],
        bounds=Bounds.of(config),
        start=functools.partial(stand_by, reaper, config),
        kill=lambda unwanted: reaper.kill_tree(unwanted.child),
        say=say,
    )


class _Ports:
    """The ports of the generation that comes next, always held before it is needed."""

    def __init__(self, holder: PortHolder, following: tuple[int, ...], count: int) -> None:
        self._holder, self._following, self._count = holder, following, count
        self._generation = 1

    def after(self, generation: int) -> tuple[int, ...]:
        """Those for `generation` + 1; what earlier generations held is let go. Asked for the same again: the same."""
        if generation <= self._generation:
            return self._following
        self._generation, now = generation, self._following
        for port in self._holder.held:
            if port not in now:
                self._holder.release(port)
        try:
            self._following = self._holder.hold(self._count)
        except PhalanxError as wrong:
            say(f"no ports for generation {generation + 1}: {wrong}")
            self._following = ()
        return self._following


def _watch_launcher(link: Link) -> None:
    """End of file on the launcher's pipe: it is gone, and an attached run goes with it."""
    loop = asyncio.get_running_loop()

    def ended() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            link.say(StopRequested(time=time.time(), by="its launcher, which is gone (--detach leaves a run alone)"))

    loop.add_reader(0, ended)


def _range(ports: list[int] | None) -> tuple[int, int] | None:
    return None if ports is None else (ports[0], ports[1])

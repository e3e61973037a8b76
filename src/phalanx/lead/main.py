"""The lead's process: its configuration comes by a pipe, its listening socket is inherited."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn

from phalanx.apart import apart
from phalanx.lead.app import App
from phalanx.lead.deposed import DeposedError
from phalanx.lead.keeper import Keeper
from phalanx.lead.lead import Lead
from phalanx.lead.ownjobs import published
from phalanx.lead.platform import here
from phalanx.names import join_host_port
from phalanx.patient import last_word_to, patient_stderr
from phalanx.plan.outline import Outline
from phalanx.protocol.messages import decode
from phalanx.protocol.signing import RunKey
from phalanx.protocol.steady import SteadyClock
from phalanx.records.folder import RunFolder
from phalanx.records.leadfile import BEAT
from phalanx.states import RunState

#: The exit code of a lead that another one has replaced: it wants no successor of its own.
DEPOSED = 5

#: The open poll of each, and now and then a word beside it.
FILES_PER_HOST = 1.5

#: Python looks through young objects as often as it would; through all of them only `sweep` does.
_YOUNG, _MIDDLE, _NEVER = 5000, 20, 1_000_000

#: Seconds between two sweeps, and how many times longer than the last one it is at least.
_SWEEP, _SHARE = 10.0, 30.0

#: Connections that may wait to be accepted; the kernel takes fewer where net.core.somaxconn says so.
BACKLOG = 16_384


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LeadConfig:
    """All that a lead is told."""

    run: str
    #: The run's key, in hex. Comes by a pipe, never by argv.
    key: str
    outline: Outline
    #: The run folder.
    folder: str
    #: Whether all hosts see that folder.
    shared: bool = True
    epoch: int = 1
    #: `host:port` by which agents know it; empty where the socket tells.
    reached: str = ""


def main(config_fd: int, listen_fd: int) -> int:
    """Lead one run to its end; 0 once the report is written, whatever the run's own outcome; else DEPOSED."""
    patient_stderr(apart=True)  # it lies on the run's disk, which may be full, or hang
    last_word_to(1)
    with os.fdopen(config_fd, "rb") as pipe:
        config = decode(LeadConfig, pipe.read())
    listener = socket.socket(fileno=listen_fd)
    # Only orders end it: a Ctrl-C or a closing terminal concerns the launcher.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    open_files(config.outline.hosts)
    try:
        state = asyncio.run(_serve(config, listener))
    except DeposedError as wrong:
        sys.stderr.write(f"lead of {config.run}: {wrong}\n")
        return DEPOSED
    sys.stderr.write(f"lead of {config.run}: {state.phase.value}\n")
    return 0


def open_files(hosts: int) -> None:
    """Each host keeps a request open: as many files as this user may have, and a word where they do not suffice."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < hosts * FILES_PER_HOST:
        sys.stderr.write(
            f"the lead may open {hard} files, and {hosts} hosts want {hosts * FILES_PER_HOST:.0f}: "
            "they will wait for each other; raise the hard limit (ulimit -Hn)\n"
        )


async def _serve(config: LeadConfig, listener: socket.socket) -> RunState:
    address, port = listener.getsockname()[:2]
    reached = config.reached or join_host_port(address, port)
    keeper = Keeper(Path(config.folder), epoch=config.epoch, address=reached)
    past = keeper.past()
    clock = SteadyClock(not_before=past.heard)
    lead = Lead(
        config.outline,
        run=config.run,
        epoch=keeper.epoch,
        records=keeper,
        past=past,
        clock=clock,
        fenced=config.shared,
        address=config.reached,
    )
    hosts = frozenset() if config.reached else frozenset({f"{address}:{port}", f"localhost:{port}"})
    app = App(lead, RunKey.from_hex(config.key), hosts=hosts, clock=clock).asgi()
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            backlog=BACKLOG,
        )
    )
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]  # ours are set in main
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    others = [asyncio.ensure_future(rule(lead, keeper.holds)), asyncio.ensure_future(sweep())]
    platform = here(lead) if config.reached else None
    others += [platform.start()] if platform is not None else []
    try:
        state = await lead.run_until_ended()
        if platform is not None:
            await platform.close(state, await published(RunFolder(Path(config.folder))))
        return state
    finally:
        for other in others:
            other.cancel()
        await apart(keeper.close, name="close")  # while a full disk is waited for, people can still ask for the end
        server.should_exit = True
        await serving


async def rule(lead: Lead, holds: Callable[[], bool]) -> None:
    """Shows that this lead lives, and ends it where another has claimed the run: one that was frozen, and thaws.

    `holds` asks the disk. One that hangs holds up nothing but the next sign of life: agents judge the lead by its
    answers, and look for signs of life once it gives none.
    """
    while await apart(holds, name="beat"):  # noqa: ASYNC110 - the disk's word, which wakes nobody
        await asyncio.sleep(BEAT)
    lead.depose()


async def sweep() -> None:
    """Looks for garbage by the clock, and not as often as objects come: of ten thousand hosts each look at everything
    takes half a second, and Python's own pace made of it four tenths of a rendezvous.
    """
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    while True:
        begun = time.monotonic()
        gc.collect()
        await asyncio.sleep(max(_SWEEP, _SHARE * (time.monotonic() - begun)))

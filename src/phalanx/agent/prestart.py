"""The tasks that may start before anybody knows their identity, and the pipes that hold what they say meanwhile."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.agent.children import Child, ChildSpec, Reaper
from phalanx.agent.life import Life
from phalanx.agent.standby import Standby, boot_env, can_stand_by, is_there
from phalanx.plan.own import found_here


class Waiting:
    """One task's interpreter, started with everything it gets but its identity."""

    __slots__ = ("argv", "child", "env", "err", "life", "out", "standby")

    def __init__(
        self,
        *,
        argv: tuple[str, ...],
        env: dict[str, str],
        standby: Standby,
        child: Child,
        life: Life,
        out: int,
        err: int,
    ) -> None:
        """`env`: the variables added so far; `out`, `err`: the read ends of its pipes."""
        self.argv, self.env, self.standby, self.child, self.out, self.err = argv, env, standby, child, out, err
        self.life = life

    def discard(self) -> None:
        """Nobody wants it: its pipes are closed, and where it waits it leaves. Only for one that was not taken."""
        self.standby.discard()
        self.life.close()
        for fd in (self.out, self.err):
            os.close(fd)


def prestart(config: dict[str, Any], reaper: Reaper) -> dict[str, Waiting]:
    """Start a standby for each task this host will probably get, by task name. Nothing is waited for."""
    found: dict[str, Waiting] = {}
    for task in config["standby"]:
        waiting = stand_by(
            reaper,
            config,
            name=f"{task['id']}/standby",
            argv=found_here(task["argv"]),
            env=task["env"],
            imports=config["imports"].get(task["id"].partition(":")[0], ()),
        )
        if waiting is not None:
            found[task["id"]] = waiting
    return found


def stand_by(
    reaper: Reaper,
    config: Mapping[str, Any],
    *,
    name: str,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    imports: Sequence[str],
) -> Waiting | None:
    """Start one; None where this command cannot stand by. `env` is what is known of the variables that it will get.

    Raises OSError and PlaceError where no process or pipe is to be had.
    """
    environ = {**config["environ"], **env}
    if not is_there(config["boot"]) or not can_stand_by(argv, environ, config["cwd"]):
        return None
    standby, life = Standby(boot=config["boot"], imports=tuple(imports)), Life()
    added = {**standby.env(environ), **life.env()}
    spec, out, err = piped(name, argv, {**environ, **added}, config["cwd"], {**standby.fds, **life.fds})
    child = reaper.spawn(spec)
    for fd in (spec.stdout, spec.stderr):
        os.close(fd)
    standby.started()
    life.started()
    return Waiting(argv=argv, env=dict(env), standby=standby, child=child, life=life, out=out, err=err)


def ride_along(
    argv: tuple[str, ...], environ: Mapping[str, str], cwd: str, boot: str
) -> tuple[Life | None, dict[str, str]]:
    """A life line for a cold start, and what to add to its environment; (None, {}) where the runtime cannot ride.

    `boot`: the folder with our sitecustomize; empty where nothing of ours may be inside.
    """
    if not boot or not is_there(boot) or not can_stand_by(argv, environ, cwd):
        return None, {}
    life = Life()
    return life, {**boot_env(environ, boot), **life.env()}


def piped(
    name: str,
    argv: tuple[str, ...],
    env: dict[str, str],
    cwd: str,
    fds: Mapping[int, int],
    *,
    cpus: tuple[int, ...] = (),
) -> tuple[ChildSpec, int, int]:
    """A child with two new pipes: its spec, and the ends to read."""
    out, out_write = os.pipe()
    err, err_write = os.pipe()
    spec = ChildSpec(id=name, argv=argv, env=env, cwd=cwd, stdout=out_write, stderr=err_write, fds=fds, cpus=cpus)
    return spec, out, err


def refusal(wrong: OSError) -> str:
    """What the operating system refused, and what to raise where it is a limit."""
    limits = {errno.EMFILE: "raise `ulimit -n`", errno.EAGAIN: "raise `ulimit -u`", errno.ENOMEM: "free memory"}
    advice = limits.get(wrong.errno or 0)
    said = wrong.strerror or str(wrong)
    return f"{said}; {advice}, or put fewer tasks on a host" if advice else said

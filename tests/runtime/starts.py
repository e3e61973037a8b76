"""Three ways to start one program with one identity: plain, cold (our sitecustomize rides along), standby."""

from __future__ import annotations

import dataclasses
import os
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import phalanx.runtime.boot
from phalanx.agent.life import Life
from phalanx.agent.standby import Standby, boot_env
from phalanx.script.imports import imports_of

BOOT = str(Path(phalanx.runtime.boot.__file__).parent)
PATIENCE = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What anybody can see of a program that has ended."""

    code: int
    out: bytes
    err: bytes


def plain(argv: Sequence[str], *, env: Mapping[str, str], identity: Mapping[str, str], cwd: Path) -> Outcome:
    return _finish(_popen(argv, {**env, **identity}, cwd))


def cold(argv: Sequence[str], *, env: Mapping[str, str], identity: Mapping[str, str], cwd: Path) -> Outcome:
    whole = {**env, **identity}
    with riding(argv, env={**whole, **boot_env(whole, BOOT)}, cwd=cwd) as (process, _):
        return _finish(process)


@contextmanager
def riding(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], Life]]:
    """A start with a life line; ended, if it has not, when the block is. `env` holds boot_env already."""
    life = Life()
    with _placed(life.fds):
        process = _popen(argv, {**env, **life.env()}, cwd, tuple(life.fds))
    life.started()
    try:
        yield process, life
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        life.close()


@contextmanager
def _placed(fds: Mapping[int, int]) -> Iterator[None]:
    """The files at the numbers they have in the child."""
    for number, fd in fds.items():
        os.dup2(fd, number, inheritable=True)
    yield
    for number in fds:
        os.close(number)


def standby(argv: Sequence[str], *, env: Mapping[str, str], identity: Mapping[str, str], cwd: Path) -> Outcome:
    with waiting(argv, env=env, cwd=cwd) as (process, one):
        await_ready(one)
        one.go(identity)
        return _finish(process)


@contextmanager
def waiting(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, imports: Sequence[str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], Standby]]:
    """A standby of `argv` on its way; ended, if it has not, when the block is."""
    one, life = Standby(boot=BOOT, imports=imports_of(argv, cwd) if imports is None else imports), Life()
    files = {**one.fds, **life.fds}
    with _placed(files):
        process = _popen(argv, {**env, **one.env(env), **life.env()}, cwd, tuple(files))
    one.started()
    life.started()
    try:
        yield process, one
    finally:
        one.discard()
        life.close()
        if process.poll() is None:
            process.kill()
        process.communicate()


def await_ready(one: Standby) -> bool:
    """Wait until it is ready (True) or has ended (False), as `wait_ready` does, but for tests without a loop."""
    if not one.ready and one._is_ready is None:
        assert select.select([one._ready], [], [], PATIENCE)[0], "neither ready nor ended"
    return one.ready


def _popen(argv: Sequence[str], env: Mapping[str, str], cwd: Path, fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=fds,
        start_new_session=True,
    )


def _finish(process: subprocess.Popen[bytes]) -> Outcome:
    out, err = process.communicate(timeout=PATIENCE)
    return Outcome(code=process.returncode, out=out, err=err)

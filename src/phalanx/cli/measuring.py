"""The flags by which `advise` measures hosts, or takes what was measured before."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from phalanx.cli.values import read
from phalanx.errors import InputError

if TYPE_CHECKING:
    from phalanx.network.measured import Measured

#: It must not ask, since nobody could answer for each host, and not wait for one that is off.
THROUGH = "ssh -o BatchMode=yes -o ConnectTimeout=10 {host}"
SECONDS = "500ms"
_LONGEST = 60.0


def course(
    *,
    measure: str | None,
    through: str,
    seconds: str,
    ports: str | None,
    save: Path | None,
    measured: Path | None,
    hosts: int | None,
) -> Callable[[], Measured] | None:
    """What gives the measured hosts; None where no flag asks for any. Raises InputError before anything is started."""
    from phalanx.network.measured import load  # noqa: PLC0415 - not for --help

    if measure is not None and measured is not None:
        raise InputError("--measure and --measured both say what the hosts are", hint="leave one of them out")
    if hosts is not None and (measure or measured):
        raise InputError("--hosts: how many there are is what is measured", hint="leave --hosts out")
    if measure is None:
        for flag, said in (("--save", save is not None), ("--through", through != THROUGH), ("--ports", bool(ports))):
            if said:
                raise InputError(f"{flag} is for what --measure does", hint=f"--measure n1,n2 {flag} …")
        if measured is None:
            return None
        found = load(measured)
        return lambda: found
    return _measuring(measure, through, seconds, ports, save)


def _measuring(
    measure: str, through: str, seconds: str, ports: str | None, save: Path | None
) -> Callable[[], Measured]:
    from phalanx.job.model import port_range  # noqa: PLC0415 - not for --help
    from phalanx.job.units import some_seconds  # noqa: PLC0415 - as above
    from phalanx.network import measure as measures  # noqa: PLC0415 - as above
    from phalanx.network import measured as kept  # noqa: PLC0415 - as above
    from phalanx.network.target import targets  # noqa: PLC0415 - as above

    wanted = targets(measure)
    try:
        words = shlex.split(through)
    except ValueError as wrong:
        raise InputError(f"--through {through}: {wrong}", hint=f"as in --through '{THROUGH}'") from wrong
    if not any("{host}" in word for word in words):
        raise InputError(f"--through {through}: {{host}} is nowhere in it", hint=f"as in --through '{THROUGH}'")
    each = read(some_seconds, "--probe-time", seconds)
    if each > _LONGEST:
        raise InputError(f"--probe-time {seconds}: at most a minute for each round", hint="write 500ms or 2s")
    try:
        span = None if ports is None else port_range(ports)
    except ValueError as wrong:
        raise InputError(f"--ports: {wrong}") from wrong
    if save is not None and not save.absolute().parent.is_dir():
        raise InputError(f"--save {save}: there is no folder {save.absolute().parent}", hint="make it, or name another")

    def go() -> Measured:
        names = f"{len(wanted)} hosts" if len(wanted) > 1 else wanted[0].name
        plan = measures.Course.of(len(wanted), each).words()
        sys.stderr.write(f"phalanx: measuring {names} through `{through}`: {plan}\n")
        found = measures.measure(wanted, through=words, seconds=each, ports=span, say=_say)
        if save is not None:
            kept.save(found, save)
            sys.stderr.write(f"phalanx: what was measured is in {save}; --measured {save} takes it again\n")
        return found

    return go


def _say(what: str) -> None:
    """How far it is, on one line that goes away."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{f'phalanx: {what}' if what else ''}")
        sys.stderr.flush()

"""One fault: what, to whom, when; and how that is written: `KIND[:TARGET][=VALUE][@WHEN]`."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Sequence

from phalanx.chaos.kinds import KINDS, Aim, Kind
from phalanx.errors import InputError
from phalanx.names import TaskId

#: As a duration is read elsewhere: `5s`, `1m30s`; raises ValueError saying what it wants.
Seconds = Callable[[object], float]

_FORM = "a fault is written KIND[:TARGET][=VALUE][@WHEN], such as kill:worker:1@5s"
_WRITTEN = re.compile(r"(?P<kind>[a-z-]+)(?::(?P<target>[^=@]*))?(?:=(?P<value>[^@]*))?(?:@(?P<when>.*))?\Z", re.DOTALL)
_PAIR = re.compile(r"(.+?:\d+)-(.+:\d+)\Z")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """When: `after` seconds since the run began to train; `gap` after the fault before it is over; or at a line."""

    after: float | None = None
    gap: float | None = None
    #: A regular expression; the fault comes when the leader has printed a line in which it is found.
    line: str = ""

    def __str__(self) -> str:
        """As it is written after `@`; a gap has no written form."""
        if self.line:
            return f"/{self.line}/"
        return f"{self.after if self.after is not None else self.gap or 0.0:.1f}s"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """`target` as written, empty where there is one only or all are meant. `value`: see the kind."""

    kind: str
    target: str = ""
    value: float | None = None
    when: Moment = Moment(gap=0.0)

    @property
    def row(self) -> Kind:
        """Its kind's row."""
        return KINDS[self.kind]

    @property
    def tasks(self) -> tuple[TaskId, ...]:
        """The tasks that it is done to: one, the two of a pair, or none."""
        if self.row.aim not in (Aim.TASK, Aim.PAIR):
            return ()
        return tuple(TaskId.parse(part) for part in _parts(self.target))

    def __str__(self) -> str:
        """`stop worker:1 for 2 s`, as reports say it."""
        words = [self.row.says or self.kind]
        if self.target:
            words.append({Aim.HOST: "agent:", Aim.OURS: "of "}.get(self.row.aim, "") + self.target)
        if self.row.aim is Aim.SIZE:
            words.append(f"to {self.value:g}")
        elif self.row.aim is Aim.HOST and self.value is not None:
            words.append(f"back after {self.value:g} s")
        elif self.value is not None:
            words.append(f"by {self.value:+g} s" if self.row.amount else f"for {self.value:g} s")
        return " ".join(words)


def parse_fault(text: str, *, seconds: Seconds) -> Fault:
    """Read a fault as a person writes it. Whether its target exists is `check_target`'s to say. Raises InputError."""
    match = _WRITTEN.match(text)
    if match is None:
        raise InputError(f"--fault {text!r} cannot be read", hint=_FORM)
    row = known_kind(match["kind"], f"--fault {text}")
    value = None
    if match["value"] is not None:
        if not row.value:
            raise InputError(f"--fault {text}: {row.name} takes no value", hint=_FORM)
        value = _signed(match["value"], seconds, f"--fault {text}")
        if value < 0 and (not row.amount or row.aim is Aim.SIZE):
            raise InputError(f"--fault {text}: a fault cannot last {match['value']}", hint=_FORM)
    when = _moment(match["when"], seconds, f"--fault {text}")
    return Fault(kind=row.name, target=match["target"] or "", value=value, when=when)


def known_kind(name: str, where: str) -> Kind:
    """The kind of that name. Raises InputError naming them all."""
    if name in KINDS:
        return KINDS[name]
    near = difflib.get_close_matches(name, KINDS, n=1)
    said = f"did you mean {near[0]}? " if near else ""
    raise InputError(f"{where}: there is no fault {name!r}", hint=f"{said}the kinds are {', '.join(KINDS)}")


def check_target(fault: Fault, *, tasks: Sequence[TaskId], hosts: int) -> Fault:
    """The same fault, with its target filled in where only one is possible. Raises InputError where it is none.

    Whether the job takes the size of a `scale` is the lead's to say.
    """
    aim, where = fault.row.aim, f"--fault {fault.kind}{f':{fault.target}' if fault.target else ''}"
    match aim:
        case Aim.TASK | Aim.PAIR:
            return dataclasses.replace(fault, target=_tasks_of(fault, tasks, where))
        case Aim.HOST:
            numbers = [str(number) for number in range(hosts)]
            if not fault.target and hosts == 1:
                return dataclasses.replace(fault, target="0")
            if fault.target not in numbers:
                raise InputError(f"{where}: no such host", hint=f"the hosts are {', '.join(numbers[:8])}")
        case Aim.OURS:
            known = ["lead", *(f"agent:{number}" for number in range(hosts))]
            if fault.target and fault.target not in known:
                raise InputError(f"{where}: no such process", hint=f"one of {', '.join(known[:8])}, or none for all")
        case _:
            if aim is Aim.SIZE and (fault.value is None or fault.value < 1 or fault.value % 1):
                raise InputError(f"{where} wants a number of workers", hint="scale=3")
            if fault.target:
                raise InputError(f"{where}: {fault.kind} takes no target", hint=_FORM)
    return fault


def _tasks_of(fault: Fault, tasks: Sequence[TaskId], where: str) -> str:
    wanted = 2 if fault.row.aim is Aim.PAIR else 1
    if not fault.target and len(tasks) == wanted:
        return "-".join(map(str, tasks))
    parts = _parts(fault.target)
    there = ", ".join(map(str, tasks[:8]))
    if len(set(parts)) != wanted or not fault.target:
        raise InputError(f"{where} wants {fault.row.aim.value}", hint=f"the tasks are {there}")
    for part in parts:
        if part not in map(str, tasks):
            raise InputError(f"{where}: there is no task {part}", hint=f"the tasks are {there}")
    return fault.target


def _parts(target: str) -> tuple[str, ...]:
    """`worker:0-worker:1` apart; a type of tasks may have a hyphen of its own."""
    pair = _PAIR.match(target)
    return (pair[1], pair[2]) if pair else (target,)


def _moment(text: str | None, seconds: Seconds, where: str) -> Moment:
    if text is None:
        return Moment(gap=0.0)
    if len(text) > 2 and text[0] == text[-1] == "/":  # noqa: PLR2004 - two strokes and something between
        try:
            re.compile(text[1:-1])
        except re.error as wrong:
            raise InputError(f"{where}: {text} is no regular expression: {wrong}") from wrong
        return Moment(line=text[1:-1])
    return Moment(after=_signed(text, seconds, where, least=0.0))


def _signed(text: str, seconds: Seconds, where: str, least: float | None = None) -> float:
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    try:
        value = sign * seconds(rest)
    except ValueError as wrong:
        raise InputError(f"{where}: {wrong}", hint=_FORM) from wrong
    if least is not None and value < least:
        raise InputError(f"{where}: {text} is in the past", hint=_FORM)
    return value

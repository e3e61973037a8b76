"""What a lead that takes over finds of those before it: the state, the newest plan, and whom it has heard how far."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from phalanx.events import HostJoined, Record
from phalanx.plan.plan import Plan
from phalanx.records.folder import RunFolder
from phalanx.records.reader import fold_on, read_plan, read_records
from phalanx.states import RunState


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """All that earlier leads have left. Of a run that begins there is nothing."""

    state: RunState = dataclasses.field(default_factory=RunState)
    plan: Plan | None = None
    #: By host: events of its agent up to this number are in the records.
    taken: Mapping[int, int] = dataclasses.field(default_factory=dict)
    #: When the last lead spoke last, in Unix seconds: its successor's clock is not behind that.
    heard: float = 0.0
    #: Bytes of a record that the last lead was killed in the middle of.
    dropped: int = 0


def past_of(records: Iterable[Record], plan: Plan | None) -> Past:
    """The past as these records tell it. A plan that is not of the newest generation bound is none."""
    taken: dict[int, int] = {}
    heard = 0.0

    def counted() -> Iterable[Record]:
        nonlocal heard
        for record in records:
            heard = heard if record.told else max(heard, record.event.time)
            if isinstance(record.event, HostJoined):
                taken[record.event.host] = 0  # another agent of that host counts anew
            elif record.told is not None:
                host, number = record.told
                taken[host] = number
            yield record

    state = fold_on(RunState(), counted())
    newest = plan if plan and plan.generation == state.generation else None
    return Past(state=state, plan=newest, taken=taken, heard=heard)


def read_past(folder: RunFolder) -> Past:
    """What lies in the run's folder; nothing where it is new."""
    return past_of(read_records(folder.events), read_plan(folder))

"""Puts the two ends of a connection together: who calls knows whom, who is called only from which port."""

from __future__ import annotations

import dataclasses

from phalanx.names import TaskId
from phalanx.protocol.messages import End, Measured
from phalanx.sample import LinkSample

#: Measurements that a connection may miss before another one between the same two counts in its place.
_MISSED = 3


@dataclasses.dataclass(slots=True)
class _Known:
    """One end, as it was last told of."""

    end: End
    at: float
    missed: int = 0


class Ends:
    """The connections of one generation. A pair of tasks has several; the one that carries most is the link."""

    def __init__(self) -> None:
        """None is known."""
        #: Who is called, and from which port → who calls; None where two do, from the same number on two hosts.
        self._callers: dict[tuple[TaskId, int], TaskId | None] = {}
        #: Task → its ends by peer and port; a peer that is not known yet is None.
        self._known: dict[TaskId, dict[tuple[TaskId | None, int], _Known]] = {}

    def take(self, told: Measured) -> tuple[LinkSample, ...]:
        """One host's measurement; returns what its tasks have sent, to whom it is known by now."""
        for end in told.ends:
            if end.peer is not None:
                key = (end.peer, end.port)
                self._callers[key] = end.task if self._callers.get(key, end.task) == end.task else None
            mine = self._known.setdefault(end.task, {})
            mine[end.peer, end.port] = _Known(end, told.at)
        samples = []
        for task in {end.task for end in told.ends}:
            samples += self._links(task, told.at)
        return tuple(sorted(samples, key=lambda one: (one.source, one.target)))

    def _links(self, task: TaskId, at: float) -> list[LinkSample]:
        best: dict[TaskId, _Known] = {}
        for (peer, port), one in [*self._known[task].items()]:
            one.missed = 0 if one.at == at else one.missed + 1
            if one.missed > _MISSED:
                del self._known[task][peer, port]
                continue
            target = peer or self._callers.get((task, port))
            if target is not None and (target not in best or one.end.sent > best[target].end.sent):
                best[target] = one
        return [_sample(task, target, one) for target, one in best.items() if not one.missed]


def _sample(source: TaskId, target: TaskId, one: _Known) -> LinkSample:
    return LinkSample(source=source, target=target, at=one.at, sent=one.end.sent, rtt=one.end.rtt, busy=one.end.busy)

"""How many parameter servers, and how variables are parted so that the largest table fits and traffic balances."""

from __future__ import annotations

import dataclasses
import math

from phalanx.sizing import memory
from phalanx.sizing.model import Model
from phalanx.sizing.place import Place

#: TensorFlow's own least size of a part (MinSizePartitioner's default).
LEAST_PART = 256 << 10
#: A server may carry so many times its fair share before parting is advised (R71).
UNEVEN = 1.25
#: More are not reckoned with: where a host has a few bytes for variables, billions would be wanted.
_MOST = 10**5


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Servers:
    """The least number that fits, and the partitioner that the script gives to its strategy."""

    count: int
    #: `MinSizePartitioner(min_shard_bytes=…, max_shards=…)`; None: no variable needs parting.
    least_part: int | None = None
    #: Bytes of the fullest server without parting, as a multiple of its fair share.
    uneven: float = 1.0

    @property
    def partitioner(self) -> str:
        """What to write in the script; empty where nothing is to be parted."""
        if self.least_part is None:
            return ""
        name = "tf.distribute.experimental.partitioners.MinSizePartitioner"
        return f"{name}(min_shard_bytes={self.least_part}, max_shards={self.count})"


def fitting(model: Model, place: Place, *, at_least: int = 1) -> Servers:
    """`at_least`: as many as the traffic wants. A host's memory is that of one server."""
    whole = model.bytes + model.slots
    room = memory.usable(place) - memory.server(model, 1).process
    wanted = min(math.ceil(whole / room), _MOST) if room > 0 else 1
    return parted(model, max(wanted, at_least, 1))


def parted(model: Model, count: int) -> Servers:
    """So many servers: whether their variables have to be parted."""
    uneven = heaviest(model, count) / (model.bytes / count) if model.bytes else 1.0
    if count == 1 or uneven <= UNEVEN:
        return Servers(count=count, uneven=uneven)
    # Parts smaller than what stays whole do not balance better. Layers of Keras 3 cannot be parted at all.
    return Servers(count=count, least_part=max(LEAST_PART, _least(model, count)), uneven=uneven)


def heaviest(model: Model, count: int) -> float:
    """Bytes of the fullest of so many servers where variables stay whole: TensorFlow hands them out in turns."""
    return max(share(model, Servers(count=count)))


def share(model: Model, servers: Servers) -> tuple[float, ...]:
    """Bytes of each server with that partitioner: each part, or whole variable, to the next in turn."""
    loads = [0.0] * servers.count
    turn = 0
    for one in model.variables:
        parts = 1
        if servers.least_part is not None:
            parts = max(1, min(servers.count, one.bytes // servers.least_part, one.rows))
        for _ in range(parts):
            loads[turn % servers.count] += one.bytes / parts
            turn += 1
    return tuple(loads)


def _least(model: Model, count: int) -> int:
    """So small that every table larger than a tenth of the fair share is parted among all; without one, every layer."""
    fair = model.bytes / count
    for some in (model.tables, model.variables):
        large = [one.bytes for one in some if one.bytes > fair / 10]
        if large:
            return int(min(large) // count)
    return LEAST_PART

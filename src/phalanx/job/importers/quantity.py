"""What a container asks for in Kubernetes' words → cpus, memory, gpus of a role, and what these cannot say."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from phalanx.job.importers.ledger import Ledger, Spot

_QUANTITY = re.compile(r"([+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,3})?)(m|k|[KMGTP]i?|Ei?)?\Z")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
#: Whole GPUs by their names; a share of one is an extended resource like any other.
_GPUS = re.compile(r"(?:nvidia|amd|aliyun|intel|habana)\.(?:com|ai)/(?:gpu|gaudi|i915|mig-[\w.-]+)\Z")
_OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One resource: what a role or the pods' overlay says of it."""

    #: `cpus`, `memory`, `gpus`, `hugepages-2Mi`, or empty for what goes into `resources` as it is.
    field: str
    value: Any
    spot: Spot
    #: The request that says the same as the limit.
    also: Spot | None = None
    why: str = ""
    #: What the cluster calls a GPU.
    gpu: str = ""
    #: `limits`, `requests`, and the name of the resource, for what stays as it is.
    at: tuple[str, str] = ("", "")


def asked(ledger: Ledger, resources: Spot) -> Iterator[Asked]:
    """Every resource of a container's `resources`. Refuses what is no quantity."""
    parts: dict[str, dict[str, Spot]] = {"limits": {}, "requests": {}}
    for field in ledger.mapping(resources):
        if field.key in parts:
            parts[field.key] = {one.key: one for one in ledger.mapping(field)}
        elif field.key == "claims":
            ledger.drop(field, "devices by claim are said in `pod`: resourceClaims and resources.claims of `task`")
        else:
            ledger.drop(field, "phalanx does not know this field; it is left out")
    for name in dict.fromkeys([*parts["limits"], *parts["requests"]]):
        limit, request = parts["limits"].get(name), parts["requests"].get(name)
        yield from _one(ledger, name, limit, request)


def amount(spot: Spot) -> Decimal | None:
    """The number that `500m`, `2`, `1.5`, `4Gi` stands for; None where it is none."""
    text = spot.tree.written.get(spot.loc, "").strip()
    found = _QUANTITY.match(text)
    if isinstance(spot.value, bool) or not found or not any(char.isdigit() for char in found[1]):
        return None
    number, unit = Decimal(found[1]), found[2] or ""
    if unit == "m":
        return number / 1000
    base = 1024 if unit.endswith("i") else 1000
    return number * Decimal(base) ** _POWERS[unit.removesuffix("i")]


def _one(ledger: Ledger, name: str, limit: Spot | None, request: Spot | None) -> Iterator[Asked]:
    numbers: list[Decimal] = []
    spots = [spot for spot in (limit, request) if spot is not None]
    for spot in spots:
        if (read := amount(spot)) is None:
            blank = "; fill the template in first" if "$" in str(spot.value) else ""
            ledger.refuse(spot, f"`{spot.value}` is no quantity such as 2, 500m or 4Gi{blank}")
            return
        numbers.append(read)
    said, number = spots[0], numbers[0]
    also = spots[1] if len(spots) > 1 else None
    same = limit is not None and numbers[-1] == number
    whole = number == number.to_integral_value() and number >= 0
    if (name == _OLD_GPU or _GPUS.match(name)) and whole:
        if also is not None and not same:
            ledger.refuse(also, f"{numbers[1]} here and {number} as the limit: a request for GPUs must be its limit")
            return
        old = f"{name} is no longer known to any cluster" if name == _OLD_GPU else ""
        yield Asked(
            field="gpus", value=int(number), spot=said, also=also, why=old, gpu="nvidia.com/gpu" if old else name
        )
        return
    if name == "cpu" and same and whole and number >= 1:
        yield Asked(field="cpus", value=int(number), spot=said, also=also)
        return
    if name == "memory" and same and whole and number >= 1:
        yield Asked(field="memory", value=_size(said, int(number)), spot=said, also=also)
        return
    if name in ("hugepages-2Mi", "hugepages-1Gi") and same and whole:
        yield Asked(field=name, value=_size(said, int(number)), spot=said, also=also)
        return
    for part, left in (("limits", limit), ("requests", request)):
        if left is not None:
            yield Asked(field="", value=left.tree.written[left.loc], spot=left, at=(part, name))


def _size(spot: Spot, number: int) -> int | str:
    """As it was written, where job.yaml reads it alike."""
    text = spot.tree.written[spot.loc].strip()
    return text if re.fullmatch(r"[0-9]+[KMGTP]i?", text) else number

"""What a decoded TF_CONFIG means, whatever is wrong with it: the rules and the model both start from here."""

from __future__ import annotations

import dataclasses
from typing import Any

from phalanx.names import KNOWN_TYPES, TaskId
from phalanx.tfconfig.address import Address, read
from phalanx.tfconfig.model import Cluster, TfConfig
from phalanx.tfconfig.quote import brief
from phalanx.tfconfig.tolerant import escape

#: Indices travel as int32 in TensorFlow's ClusterDef.
MAX_INDEX = 2**31 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One address of the cluster: whose it is, the text, its parts, and where it stands."""

    type: str
    index: int
    text: str
    address: Address
    pointer: str

    @property
    def task(self) -> TaskId:
        """The task that has this address."""
        return TaskId(self.type, self.index)

    @property
    def name(self) -> str:
        """The task as messages call it."""
        return f"{self.type if self.type in KNOWN_TYPES else brief(self.type, 40)}:{self.index}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """`config` is the best that can be made of the value; `sound` whether its cluster is what was written."""

    config: TfConfig
    entries: tuple[Entry, ...]
    sound: bool


def understand(value: Any) -> Meaning:
    """Make a model of decoded JSON. Never raises. O(size)."""
    if not isinstance(value, dict):
        return Meaning(config=TfConfig(), entries=(), sound=False)
    written = value.get("cluster")
    entries: list[Entry] = []
    cluster, sound = None, True
    if isinstance(written, dict):
        jobs = {}
        sparse = set()
        for kind, listed in written.items():
            indexed, whole = _indexed(kind, listed)
            sound = sound and whole
            if isinstance(listed, dict):
                sparse.add(kind)
            jobs[kind] = {index: item if isinstance(item, str) else "" for index, item, _ in indexed}
            texts = ((index, item, pointer) for index, item, pointer in indexed if isinstance(item, str))
            entries += [Entry(kind, index, item, read(item), pointer) for index, item, pointer in texts]
        cluster = Cluster(jobs=jobs, sparse=frozenset(sparse))
    elif "cluster" in value:
        sound = False
    extra = {key: item for key, item in value.items() if key not in {"cluster", "task"}}
    config = TfConfig(cluster=cluster, task=_task(value.get("task")), extra=extra)
    return Meaning(config=config, entries=tuple(entries), sound=sound)


def index_of(written: Any) -> int | None:
    """The index as TensorFlow's `int()` would take it; None where it is none or too strange to go on with."""
    if isinstance(written, bool):
        return None
    if isinstance(written, int):
        return written
    if isinstance(written, float):
        return int(written) if written.is_integer() else None
    return number(written) if isinstance(written, str) else None


def number(text: str) -> int | None:
    """`int(text)`, None where it is no number."""
    try:
        return int(text)
    except ValueError:
        return None


def _indexed(kind: str, listed: Any) -> tuple[list[tuple[int, Any, str]], bool]:
    """Index, item and pointer of each address of one type; and whether that is all there is."""
    base = f"/cluster/{escape(kind)}"
    if isinstance(listed, list):
        return [(i, item, f"{base}/{i}") for i, item in enumerate(listed)], all(isinstance(i, str) for i in listed)
    if isinstance(listed, dict):
        indexed = []
        for key, item in listed.items():
            index = number(key)
            if index is not None and 0 <= index <= MAX_INDEX:
                indexed.append((index, item, f"{base}/{escape(key)}"))
        return indexed, len({index for index, item, _ in indexed if isinstance(item, str)}) == len(listed)
    if isinstance(listed, str):
        return [(i, item.strip(), base) for i, item in enumerate(filter(str.strip, listed.split(",")))], True
    return [], False


def _task(written: Any) -> TaskId | None:
    if not isinstance(written, dict):
        return None
    kind, index = written.get("type"), index_of(written.get("index"))
    return TaskId(kind, index) if isinstance(kind, str) and index is not None else None

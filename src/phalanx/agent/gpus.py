"""The GPUs that this host's tasks may be given: what NVIDIA's library tells, within CUDA_VISIBLE_DEVICES.

The library is loaded where it is installed (`libnvidia-ml.so.1` comes with the driver) and let go of at once; without
it, the driver's folder in `/proc` still says how many there are and where they are plugged in.
"""

from __future__ import annotations

import ctypes
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

DRIVER, PCI = Path("/proc/driver/nvidia/gpus"), Path("/sys/bus/pci/devices")

_LIBRARY = "libnvidia-ml.so.1"
_TEXT = 96  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
_MIG_ON = 1
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)\s*$", re.MULTILINE)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One that CUDA shows to a task that is given its name. `index` is that of the whole card; MIG slices share it."""

    index: int
    uuid: str = ""
    slice: bool = False
    #: Its NUMA node; None where nobody knows.
    node: int | None = None

    @property
    def name(self) -> str:
        """What CUDA_VISIBLE_DEVICES calls it. A slice of a card has no number."""
        return self.uuid if self.slice else str(self.index)


class Nvml(Protocol):
    """The library, as far as it is used here: ctypes finds its functions by name, each returns 0 where all is well."""

    def __getattr__(self, name: str) -> Callable[..., int]: ...


def load() -> Nvml | None:
    """The library; None where it is not installed."""
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None


def installed(*, nvml: Callable[[], Nvml | None] = load, driver: Path = DRIVER, pci: Path = PCI) -> tuple[Gpu, ...]:
    """All of this host, in the driver's order."""
    library = nvml()
    found = _by_library(library, pci) if library is not None else None
    return tuple(_by_driver(driver, pci)) if found is None else tuple(found)


def chosen(said: str | None, there: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Those of `there` that a CUDA_VISIBLE_DEVICES names, in its order; all, where it is not set.

    As CUDA reads it: numbers of cards or beginnings of UUIDs; what follows the first unknown one does not count.
    """
    return tuple(there) if said is None else tuple(_named(said, there))


def visible(environ: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Those that a task with this environment may be given."""
    return chosen(environ.get("CUDA_VISIBLE_DEVICES"), installed())


def _named(said: str, there: Sequence[Gpu]) -> Iterator[Gpu]:
    seen = set[str]()
    for word in map(str.strip, said.split(",")):
        fits = [gpu for gpu in there if _is(word, gpu)]
        if len(fits) != 1 or fits[0].name in seen:
            return
        seen.add(fits[0].name)
        yield fits[0]


def _is(word: str, gpu: Gpu) -> bool:
    if word.isdecimal():
        return not gpu.slice and int(word) == gpu.index
    return word.startswith(("GPU-", "MIG-")) and gpu.uuid.startswith(word)


def _by_driver(driver: Path, pci: Path) -> Iterator[Gpu]:
    try:
        cards = sorted(path.name for path in driver.iterdir())
    except OSError:
        return
    for index, card in enumerate(cards):
        yield Gpu(index=index, uuid=_told_uuid(driver / card), node=_node(card, pci))


def _told_uuid(card: Path) -> str:
    """Empty where the driver does not tell it: a card that nobody has used since its start is full of `?`."""
    try:
        found = _UUID.search((card / "information").read_text(errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""


def _by_library(library: Nvml, pci: Path) -> list[Gpu] | None:
    """None where it does not answer."""
    try:
        if library.nvmlInit_v2():
            return None
        try:
            count = ctypes.c_uint()
            if library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
                return None
            return [gpu for index in range(count.value) for gpu in _card(library, index, pci)]
        finally:
            library.nvmlShutdown()
    except AttributeError:  # a library too old for one of the names
        return None


def _card(library: Nvml, index: int, pci: Path) -> Iterator[Gpu]:
    """The card, or the slices it is cut into: then CUDA shows only those. One that is broken is passed over."""
    handle = ctypes.c_void_p()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)):
        return
    place = _PciInfo()
    known = not library.nvmlDeviceGetPciInfo_v3(handle, ctypes.byref(place))
    node = _node(place.bus_id.decode(errors="replace"), pci) if known else None
    if not _is_cut(library, handle):
        yield Gpu(index=index, uuid=_uuid(library, handle), node=node)
        return
    most = ctypes.c_uint()
    library.nvmlDeviceGetMaxMigDeviceCount(handle, ctypes.byref(most))
    for number in range(most.value):
        slice_handle = ctypes.c_void_p()
        if library.nvmlDeviceGetMigDeviceHandleByIndex(handle, number, ctypes.byref(slice_handle)) == 0:
            yield Gpu(index=index, uuid=_uuid(library, slice_handle), slice=True, node=node)


def _is_cut(library: Nvml, handle: Any) -> bool:
    now, pending = ctypes.c_uint(), ctypes.c_uint()
    try:
        wrong = library.nvmlDeviceGetMigMode(handle, ctypes.byref(now), ctypes.byref(pending))
    except AttributeError:  # older than MIG
        return False
    return not wrong and now.value == _MIG_ON


def _uuid(library: Nvml, handle: Any) -> str:
    text = ctypes.create_string_buffer(_TEXT)
    return "" if library.nvmlDeviceGetUUID(handle, text, _TEXT) else text.value.decode(errors="replace")


class _PciInfo(ctypes.Structure):
    """nvmlPciInfo_t."""

    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("pci_subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


def _node(card: str, pci: Path) -> int | None:
    """`00000000:3B:00.0` or `0000:3b:00.0` in /sys. A machine of one node says -1."""
    domain, _, rest = card.lower().partition(":")
    try:
        node = int((pci / f"{domain[-4:]}:{rest}" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None

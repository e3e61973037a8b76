"""What the threads of a task do, as a file in the run's folder: as Python and as the kernel sees them."""

from __future__ import annotations

import dataclasses
import re
import time
from collections import Counter
from pathlib import Path

from phalanx.agent.disk import Disk
from phalanx.agent.running import Running

_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<name>.*)$')
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x.* \(most recent call first\):")
#: Python's own modules: who waits in them waits for somebody else's sake.
_STANDARD = re.compile(r"/lib/python3\.\d+/(?!site-packages/|dist-packages/)|^<frozen ")
_TENSORFLOW = "/tensorflow/"
#: Through this module TensorFlow calls a function of the program: a generator that feeds it, a py_function.
_CALLED_BACK = "/script_ops.py"
#: Others' too: the functions of ours through which a program calls Keras or TensorFlow.
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/phalanx/runtime/boot/phalanx_\w+\.py$")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Stacks:
    """Where they lie, and what they tell."""

    path: str
    #: The program's own newest line: `train.py:14 in step`; empty where none is known.
    at: str = ""
    #: Whether the main thread waits inside TensorFlow; None where there are no Python stacks.
    waits: bool | None = None


async def write_stacks(running: Running, pid: int, folder: Path, disk: Disk) -> Stacks | None:
    """Write `stacks/<task>/g<generation>.a<attempt>.<n>.txt`; None where the disk refuses."""
    python = await running.life.stacks() if running.life is not None else ""
    page = _page(running, pid, python)
    home = folder / "stacks" / running.task.id.folder
    try:
        path = await disk.ask(lambda: _written(home, f"g{running.generation}.a{running.task.attempt}", page))
    except OSError:
        return None
    at, waits = telling(python)
    return Stacks(path=str(path.relative_to(folder)), at=at, waits=waits)


def _written(home: Path, stem: str, page: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"{stem}.{len(list(home.glob(f'{stem}.*.txt'))) + 1}.txt"
    path.write_text(page)
    return path


def telling(text: str) -> tuple[str, bool | None]:
    """Of faulthandler's text: where the main thread is in the program, and whether it waits inside TensorFlow.

    A thread that waits in Python's own modules does what called them. A program's function that TensorFlow has called
    back counts as the program: input that never comes holds everybody up.
    """
    threads = _threads(text)
    if not threads:
        return "", None
    main = threads[-1]  # Python names its threads newest first
    busy = [one for one in threads[:-1] if any(_CALLED_BACK in file for file, _, _ in one) and not _inside(one)]
    shown = next((own for thread in (*busy, main) if (own := _own(thread))), "")
    return shown, not busy and _inside(main)


def _threads(text: str) -> list[list[tuple[str, str, str]]]:
    found: list[list[tuple[str, str, str]]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            found.append([])
        elif found and (frame := _FRAME.match(line)):
            found[-1].append((frame["file"], frame["line"], frame["name"]))
    return [thread for thread in found if thread]


def _inside(thread: list[tuple[str, str, str]]) -> bool:
    """Whether the newest frame that is not Python's own is TensorFlow's."""
    file = next((file for file, _, _ in thread if not _STANDARD.search(file)), "")
    return _TENSORFLOW in file and _CALLED_BACK not in file


def _own(thread: list[tuple[str, str, str]]) -> str:
    for file, line, name in thread:
        if not _STANDARD.search(file) and not _LIBRARY.search(file):
            return f"{Path(file).name}:{line} in {name}"
    return ""


def _page(running: Running, pid: int, python: str) -> str:
    head = f"{running.task.id}, generation {running.generation}, attempt {running.task.attempt}, pid {pid}, "
    head += time.strftime("%Y-%m-%d %H:%M:%S %z") + "\n"
    if not python:
        python = "No Python stacks: nothing of phalanx rides in this process, or it is stopped and cannot answer.\n"
    return f"{head}\n{python}\nThreads, as the kernel sees them (how many, state, name, waits in, system call):\n" + (
        "".join(f"  {count:4} {what}\n" for what, count in _kernel(pid).most_common()) or "  it has gone\n"
    )


def _kernel(pid: int, proc: Path = Path("/proc")) -> Counter[str]:
    """Each kind of thread once: TensorFlow has a hundred that do the same."""
    found: Counter[str] = Counter()
    for thread in (proc / str(pid) / "task").glob("*"):
        field = _read(thread / "stat").rpartition(")")[2].split()
        if not field:
            continue
        call = _read(thread / "syscall").split()[:1] or ["?"]
        stack = " < ".join(line.partition("] ")[2] for line in _read(thread / "stack").splitlines()[:4])
        place = _read(thread / "wchan") or "?"
        found[f"{field[0]} {_read(thread / 'comm').strip():15} {place} {call[0]} {stack}".rstrip()] += 1
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""  # it has gone, or this user may not read it

"""The life line, inside: words in memory that the agent shares, a pipe for what happens once, stacks on a signal.

Counting costs a few stores into memory: no system call, nothing to wait for, and whoever is stuck can still be read.
As in sitecustomize, nothing is imported that is not loaded already: what else is needed is made by hand and kept here.
"""

import _imp
import _thread
import os
import sys

TYPE_CHECKING = False  # as type checkers spell it; `typing` is not to be loaded here
if TYPE_CHECKING:
    from typing import Any

#: The words, 64-bit signed integers in this machine's order; times are CLOCK_MONOTONIC in nanoseconds.
#: Each of TRACING, VALIDATION and SAVING counts how deep the main thread is in it; FINISHED is 0 or 1.
PID, STEPS, STEPPED, LONGEST, TRACING, VALIDATION, SAVING, FINISHED, DROPPED = range(9)
#: What `fit` tells: the epoch from 1, how many there will be, steps that make one, steps done in this one. 0: unknown.
EPOCH, EPOCHS, PER_EPOCH, IN_EPOCH = range(9, 13)
#: How often a loss was read, and the newest, as a double; nanoseconds inside collectives, 0: none was measured.
LOSSES, LOSS, COLLECTIVE = range(13, 16)
#: 1 while the main thread is in a training call, and after one that an exception has ended.
INSIDE = 16
WORDS = 32
#: Bytes of the file that hold words; stacks are written behind them.
SIZE = 4096

#: What a pipe takes in one piece (PIPE_BUF).
_LONGEST_FACT = 4096
#: Files of ours have numbers from here on, so that those the program opens have the ones they always had.
_HIGH = 190


class Line:
    """This process's end. Nothing in it raises once it is made, and after a fork nothing reaches the agent."""

    def __init__(self, memory: int, pipe: int, number: int) -> None:
        """`memory`, `pipe`: open files; `number`: the signal that has all stacks written behind the words."""
        for fd in (memory, pipe):
            os.set_inheritable(fd, False)  # noqa: FBT003 - yes or no
        self._share(memoryview(_map(memory)))
        for place in range(WORDS):
            self.words[place] = 0
        self.main_thread = _thread.get_ident()
        self.now = _builtin("time").monotonic_ns
        self._pipe, self._file = pipe, os.fstat(pipe)
        self._memory, self._memory_file = memory, os.fstat(memory)
        _builtin("faulthandler").register(number, file=memory, all_threads=True, chain=False)
        os.register_at_fork(after_in_child=self._leave)
        self.words[PID] = os.getpid()

    def _share(self, memory: "memoryview[int]") -> None:
        self.words = memory.cast("q")
        #: The same words, read and written as doubles.
        self.numbers = memory.cast("d")

    @property
    def ours(self) -> bool:
        """Whether this is the process that the agent started, and not a fork of it."""
        return self._pipe >= 0

    def say(self, kind: str, **about: "str | int") -> None:
        """One fact, at once or never: a full pipe drops and counts it."""
        try:
            fields = [f'"is":{quoted(kind)}']
            for name, value in about.items():
                fields.append(f"{quoted(name)}:{quoted(value) if isinstance(value, str) else int(value)}")
            text = ("{" + ",".join(fields) + "}\n").encode("ascii")
            if self._pipe < 0:
                return
            # The program may have closed our pipe, and opened a file of its own at that number.
            if len(text) <= _LONGEST_FACT and os.path.samestat(os.fstat(self._pipe), self._file):
                os.write(self._pipe, text)
            else:
                self.words[DROPPED] += 1
        except Exception:  # noqa: BLE001 - counted, and never the program's trouble
            self.words[DROPPED] += 1

    def leave_text(self, text: bytes) -> int:
        """Put it behind the words, where stacks are written as well; how many bytes are there, 0 where none can be."""
        if not os.path.samestat(os.fstat(self._memory), self._memory_file):
            return 0
        os.ftruncate(self._memory, SIZE)
        return os.pwrite(self._memory, text, SIZE)

    def finish(self) -> None:
        """The main thread has come to the end of the program."""
        if self.ours and _thread.get_ident() == self.main_thread:
            self.words[FINISHED] = 1
            self.say("finished")

    def _leave(self) -> None:
        self._pipe = -1
        self._share(memoryview(bytearray(WORDS * 8)))


def attach(text: bytes) -> "Line | None":
    """`text`: the two files and the signal, as the agent numbered them. None where they are not there."""
    try:
        memory, pipe, number = map(int, text.split(b","))
        return Line(memory, pipe, number)
    except Exception:  # noqa: BLE001 - the program runs as it would without
        return None


def quoted(text: str) -> str:
    """A JSON string in ASCII; what cannot be decoded (surrogates of file names) survives as it is."""
    out = []
    for letter in text:
        if letter.isascii() and letter.isprintable() and letter not in '"\\':
            out.append(letter)
            continue
        units = letter.encode("utf-16", "surrogatepass")[2:]  # this machine's order: the one that loads no codec
        pairs = (units[place : place + 2] for place in range(0, len(units), 2))
        out.extend(f"\\u{int.from_bytes(pair, sys.byteorder):04x}" for pair in pairs)
    return '"' + "".join(out) + '"'


def _map(memory: int) -> "Any":
    """The file's first bytes, shared. mmap keeps a file of its own, which gets a high number as well."""
    low = []
    try:
        while True:
            fd = os.dup(memory)
            low.append(fd)
            if fd >= _HIGH:
                os.close(low.pop())
                break
        return _extension("mmap").mmap(memory, SIZE)
    finally:
        for fd in low:
            os.close(fd)


def _spec(name: str, loader: object, origin: str) -> "Any":
    return sys.modules["_frozen_importlib"].ModuleSpec(name, loader, origin=origin)


def _builtin(name: str) -> "Any":
    """A module of the interpreter itself; in sys.modules only where it was before."""
    if name in sys.modules:
        return sys.modules[name]
    spec = _spec(name, sys.modules["_frozen_importlib"].BuiltinImporter, "built-in")
    module = _imp.create_builtin(spec)
    _imp.exec_builtin(module)
    sys.modules.pop(name, None)
    return module


def _extension(name: str) -> "Any":
    """A module of the standard library in C, from the standard library and nowhere else; not put in sys.modules."""
    if name in sys.modules:
        return sys.modules[name]
    if _imp.is_builtin(name):
        return _builtin(name)
    external = sys.modules["_frozen_importlib_external"]
    for folder in sys.path:
        if not folder.endswith("/lib-dynload"):
            continue
        for suffix in _imp.extension_suffixes():
            path = f"{folder}/{name}{suffix}"
            if os.path.isfile(path):
                module = _imp.create_dynamic(_spec(name, external.ExtensionFileLoader(name, path), path))
                _imp.exec_dynamic(module)
                sys.modules.pop(name, None)
                return module
    raise ImportError(f"the standard library has no {name}")

"""A reaper, and what it tells, for tests that start real processes."""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING, TypeVar

import pytest

from phalanx.agent import tree
from phalanx.agent.children import Child, ChildSpec, Reaper, fork_reaper
from phalanx.agent.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phalanx.agent.children import Event

E = TypeVar("E")

#: For what must happen at once: far more than it takes, far less than for ever.
SOON = 5.0


class Desk:
    """One reaper with everything it has told."""

    def __init__(self) -> None:
        self.reaper: Reaper = fork_reaper()
        self.told: list[Event] = []
        self.read, self.write = os.pipe()
        self._text = b""

    def spawn(self, *argv: str, name: str = "a", env: dict[str, str] | None = None, **more) -> Child:
        """`argv` with our stdout pipe, marked as task `name` of run `desk`."""
        marked = {"PATH": os.environ["PATH"], "PHALANX_RUN": f"desk-{self.reaper.pid}", "PHALANX_TASK": name}
        spec = ChildSpec(
            id=name,
            argv=argv,
            env=marked if env is None else env,
            **{"cwd": "/", "stdout": self.write, "stderr": self.write, **more},
        )
        return self.reaper.spawn(spec)

    def python(self, code: str, **more) -> Child:
        """A child that is this Python, running `code`."""
        return self.spawn(sys.executable, "-I", "-S", "-c", code, **more)

    def until(self, kind: type[E], name: str = "a") -> E:
        """The first event of this kind about this child; fails when it does not come soon."""
        deadline = time.monotonic() + SOON
        while True:
            for event in self.told:
                if isinstance(event, kind) and getattr(event, "id", name) == name:
                    return event
            left = deadline - time.monotonic()
            assert left > 0, f"no {kind.__name__} of {name}; told: {self.told}"
            self.told += self.reaper.poll(left)

    def line(self) -> str:
        """The next line that children have written."""
        deadline = time.monotonic() + SOON
        while b"\n" not in self._text:
            left = deadline - time.monotonic()
            assert select.select([self.read], [], [], max(left, 0))[0], f"only {self._text!r} came"
            self._text += os.read(self.read, 65536)
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        self.reaper.close()
        for fd in (self.read, self.write):
            os.close(fd)

    def wait(self, true: Callable[[], object], within: float = SOON) -> float:
        """Seconds until `true()`; fails by the deadline."""
        begin = time.monotonic()
        while not true():
            assert time.monotonic() - begin < within, f"not within {within:g} s"
            time.sleep(0.005)
        return time.monotonic() - begin

    def dead(self, *pids: int) -> bool:
        """None of these lives."""
        return tree.processes().keys().isdisjoint(pids)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A reaper of one's own; all that it has started ends with the test."""
    desk = Desk()
    yield desk
    desk.close()


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A thread of one's own for what is written; it has ended with the test."""
    disk = Disk(lambda _: None)
    yield disk
    assert disk.close()

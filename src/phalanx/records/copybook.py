"""A copy of a run's records, on a host that may lead next and does not see the lead's folder."""

from __future__ import annotations

import contextlib
import shutil
import threading

from phalanx.records.folder import RunFolder

#: Seconds for which a write that goes on is waited for.
_HANGS = 0.2


class CopyBook:
    """One copy is whole, the next one is being written: each lead is copied from its beginning.

    A new lead may know less than the one before it, or something else. For one writer; `hand_over` may come from
    another thread.
    """

    def __init__(self, folder: RunFolder, *, host: int) -> None:
        """`folder`: this host's own for the run."""
        self._folder = folder
        self._place = folder.agents / f"{host}.copy"
        self._lock = threading.Lock()
        self._number = 0
        self._whole: RunFolder | None = None
        #: Bytes of events, and the generation of the plan, that the newest copy has.
        self.size, self.plan = 0, 0
        #: It has been handed over: nothing is copied any more.
        self.over = False

    def begin(self) -> None:
        """A new copy, empty. Raises OSError."""
        with self._lock:
            if self._whole != self._newest:
                shutil.rmtree(self._newest.path, ignore_errors=True)
            self._number += 1
            self.size, self.plan = 0, 0
            self._newest.path.mkdir(parents=True, exist_ok=True)

    def add(self, text: str, *, plan: str = "", generation: int = 0, whole: bool) -> None:
        """What follows, and the plan where it has changed. `whole`: that is all for now. Raises OSError."""
        with self._lock:
            if self.over:
                return
            if plan:
                scratch = self._newest.path / "plan"
                scratch.write_text(plan, encoding="utf-8")
                scratch.replace(self._newest.plan)
                self.plan = generation
            data = text.encode()
            with self._newest.events.open("ab") as events:
                events.write(data)
            self.size += len(data)
            if whole and self._whole != self._newest:
                before, self._whole = self._whole, self._newest
                if before is not None:
                    shutil.rmtree(before.path, ignore_errors=True)

    def hand_over(self) -> bool:
        """Put the copy where a lead of this host finds it.

        False where none was ever whole, where this host has led, and where the disk hangs in the middle of a write.
        """
        if not self._lock.acquire(timeout=_HANGS):
            return False
        try:
            if self._whole is None or self.over or self._folder.events.exists():
                return False
            with contextlib.suppress(FileNotFoundError):  # nothing was bound yet
                self._whole.plan.replace(self._folder.plan)
            self._whole.events.replace(self._folder.events)
        except OSError:
            return False
        finally:
            self._lock.release()
        self.over = True
        return True

    @property
    def _newest(self) -> RunFolder:
        return RunFolder(self._place / str(self._number))

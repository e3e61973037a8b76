"""Work that may hang, in a thread of its own: it is waited for, and left behind where it never comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")

#: Seconds for which a loop may stand still for the sake of an answer.
BRIEF = 0.25


async def apart(work: Callable[[], T], *, name: str) -> T:
    """Its result or exception. The thread is a daemon: unlike an executor's, one that hangs keeps no process alive."""
    run, answer = promised(work)
    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(answer)


def promised(work: Callable[[], T]) -> tuple[Callable[[], None], Future[T]]:
    """What another thread has to do, which never raises, and where its result or exception will be."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # so that a waiter who leaves does not take it back

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as wrong:  # noqa: BLE001 - it is raised again where it is awaited
            answer.set_exception(wrong)

    return run, answer


class Briefly(Generic[T]):
    """Work that may hang, for who cannot await it: it is waited for a moment, and not begun anew while it hangs."""

    def __init__(self, work: Callable[[], T], otherwise: T, *, name: str) -> None:
        """`work` must not raise; `otherwise` is the answer while it takes longer."""
        self._work, self._otherwise, self._name = work, otherwise, name
        self._thread: threading.Thread | None = None

    def __call__(self) -> T:
        """Its answer as of now."""
        if self._thread is not None and self._thread.is_alive():
            return self._otherwise
        found: list[T] = []
        self._thread = threading.Thread(target=lambda: found.append(self._work()), name=self._name, daemon=True)
        self._thread.start()
        self._thread.join(BRIEF)
        return found[0] if found else self._otherwise

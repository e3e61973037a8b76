"""Work that may hang, in a thread of its own: it is waited for, and left behind where it never comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def apart(work: Callable[[], T], *, name: str) -> T:
    """Its result or exception. The thread is a daemon: unlike an executor's, one that hangs keeps no process alive."""
    answer: Future[T] = Future()
    answer.set_running_or_notify_cancel()  # so that a waiter who leaves does not take it back

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as wrong:  # noqa: BLE001 - it is raised again where it is awaited
            answer.set_exception(wrong)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(answer)

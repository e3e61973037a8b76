"""Standard error that drops what its file does not take: a full disk is no reason to fail for a word of ours."""

from __future__ import annotations

import io
import sys


class _Patient(io.FileIO):
    def write(self, data: object, /) -> int:
        try:
            return super().write(data) or 0  # type: ignore[arg-type]  # typeshed's Buffer is of Python 3.12
        except OSError:
            return memoryview(data).nbytes  # type: ignore[arg-type]  # as above


def patient_stderr() -> None:
    """From now on `sys.stderr` never raises: a full disk costs the line, and what the encoding lacks is escaped."""
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    raw = io.BufferedWriter(_Patient(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", line_buffering=True)

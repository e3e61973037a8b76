"""Every error phalanx raises at people. A class's docstring is its default message; the exit code is its kind."""

from __future__ import annotations

from typing import ClassVar


class PhalanxError(Exception):
    """Something went wrong. Run again with --debug for the traceback."""

    #: What the process exits with: 1 the job failed, 2 the user's input, 3 the place, 4 stopped on request.
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        """`message` replaces the default; `hint` is the next step, printed on its own line."""
        super().__init__(message if message is not None else (type(self).__doc__ or "").strip())
        self.hint = hint


class InputError(PhalanxError):
    """The input cannot be used."""

    exit_code = 2


class JobFailedError(PhalanxError):
    """The job failed. `phalanx report` says which task was first and why."""

    exit_code = 1


class PlaceError(PhalanxError):
    """The place where the job should run failed, not the job."""

    exit_code = 3


class StoppedError(PhalanxError):
    """Stopped on request."""

    exit_code = 4


class RunNotFoundError(InputError):
    """No such run. `phalanx ps --all` lists what this user has started."""


class ProtocolError(PhalanxError):
    """A message between agent and lead was refused."""

    exit_code = 3

"""Which view fits: by what the user asked for and by what is at the other end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

from phalanx.errors import InputError
from phalanx.observe.follow import View
from phalanx.observe.ink import Ink
from phalanx.observe.lines import JsonView, LinesView, QuietView
from phalanx.records.folder import RunFolder


def view_for(
    folder: RunFolder,
    out: TextIO,
    *,
    quiet: bool = False,
    json: bool = False,
    footer: str = "",
    environ: Mapping[str, str] = os.environ,
) -> View:
    """A live table on a terminal, plain lines elsewhere; `footer` is the table's last line.

    Raises InputError for `quiet` together with `json`.
    """
    if quiet and json:
        raise InputError("--quiet and --json ask for different things", hint="--json prints events and nothing else")
    ink = Ink.of(out, environ)
    if json:
        return JsonView(out)
    if quiet:
        return QuietView(folder, out, ink=ink)
    if out.isatty() and environ.get("TERM") != "dumb":
        from phalanx.observe.live import LiveView  # noqa: PLC0415 - rich costs a tenth of a second

        return LiveView(folder, out, footer=footer, ink=ink)
    return LinesView(folder, out, ink=ink)

"""Lines that TensorFlow prints in every run and that explain nothing: views of the last line look past them."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Native code's log: `I0000 00:00:1764.5 140 port.cc:153] …`. Not from a .py file: that is a program's own absl log. A
#: fatal line (`F…`) is no noise, since it says why a process was aborted.
_GLOG = r"[IWE]\d{4} \d\d:\d\d\S*\s+\d+ (?!\S+\.py:\d)"
_NOISE = re.compile(
    rf"\s*(?:{_GLOG}"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* [IW] (?:tensorflow|external|xla|third_party)/"
    r"|/job:\w+/replica:\d+/task:\d+$"  # a line of such a message, which goes on over several
    r"|WARNING: All log messages before absl::InitializeLog"
    r"|oneDNN custom operations are on"
    r"|To enable the following instructions:"
    r"|To enable them in other operations, rebuild TensorFlow)"
)


def is_noise(line: str) -> bool:
    """Whether it is a line of native code's log below a fatal one, or a part of one."""
    return _NOISE.match(line) is not None


def own_words(lines: Iterable[str]) -> tuple[str, ...]:
    """`lines` without the noise and the blank ones: what the program itself has said."""
    return tuple(line for line in lines if line.strip() and not is_noise(line))


def telling(lines: Iterable[str]) -> tuple[str, ...]:
    """`lines` without the noise, in their order; all of them where nothing else is left."""
    every = tuple(lines)
    kept = tuple(line for line in every if not is_noise(line))
    return kept if any(line.strip() for line in kept) else every

"""Host lists as Slurm writes them: `n[001-003,007],gw` and the names it stands for, both ways (R56, R57)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

#: More names than any cluster has; a slip such as `n[1-99999999]` must not fill the memory.
LARGEST = 100_000

_RANGE = re.compile(r"(?P<low>\d+)(?:-(?P<high>\d+))?\Z", re.ASCII)
_PIECE = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<text>[^\[\]]+)")
_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>\d+)(?P<after>\D*)\Z", re.ASCII | re.DOTALL)


def expand(text: str) -> tuple[str, ...]:
    """The names in the order in which they stand. Zero padding is kept: `n[08-10]` is n08, n09, n10.

    Several brackets make a product, the last one counting fastest. Raises ValueError that quotes the faulty part.
    """
    names: list[str] = []
    for part in _split(text):
        names += itertools.islice(_product(part), LARGEST + 1 - len(names))
        if len(names) > LARGEST:
            raise ValueError(f"{text!r} stands for more than {LARGEST} hosts")
    return tuple(names)


def fold(names: Iterable[str]) -> str:
    """The shortest list of runs for these names, in their order: `expand(fold(names))` gives them back.

    Only the last number of a name is folded. Raises ValueError for a name with a comma, a bracket or a space.
    """
    parts: list[str] = []
    for key, group in itertools.groupby(map(_parts, names), key=lambda part: part[:2]):
        if key is None or key[0] is None:
            parts += [whole for _, _, _, whole in group]
            continue
        runs = list(_runs([number for _, _, number, _ in group]))
        inside = ",".join(runs)
        parts.append(f"{key[0]}{inside if len(runs) == 1 and '-' not in inside else f'[{inside}]'}{key[1]}")
    return ",".join(parts)


def _split(text: str) -> Iterator[str]:
    """At commas outside brackets."""
    depth, start = 0, 0
    for at, letter in enumerate([*text, ","]):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError(f"{text!r}: brackets do not match")
        if letter == "," and depth == 0:
            part = text[start:at].strip()
            if not part:
                raise ValueError(f"{text!r}: a name is missing between commas")
            yield part
            start = at + 1
    if depth:
        raise ValueError(f"{text!r}: a bracket is not closed")


def _product(part: str) -> Iterator[str]:
    choices: list[list[str]] = []
    size = 1
    for piece in _PIECE.finditer(part):
        ranges = piece["ranges"]
        choices.append([piece["text"]] if ranges is None else list(_numbers(ranges, part)))
        size *= len(choices[-1])
        if size > LARGEST:
            raise ValueError(f"{part!r} stands for more than {LARGEST} hosts")
    return map("".join, itertools.product(*choices))


def _numbers(ranges: str, part: str) -> Iterator[str]:
    for one in ranges.split(","):
        found = _RANGE.match(one.strip())
        if found is None:
            raise ValueError(f"{part!r}: {one!r} is no number or range, such as 7 or 001-003")
        low, high = found["low"], found["high"] or found["low"]
        if int(high) < int(low):
            raise ValueError(f"{part!r}: {one!r} counts downwards")
        if int(high) - int(low) >= LARGEST:
            raise ValueError(f"{part!r} stands for more than {LARGEST} hosts")
        yield from (str(number).zfill(len(low)) for number in range(int(low), int(high) + 1))


def _parts(name: str) -> tuple[str | None, str, str, str]:
    """What stands before and after the last number, the number as written, and the whole name."""
    if not name or any(letter in ",[]" or letter.isspace() for letter in name):
        raise ValueError(f"{name!r} is no host name")
    found = _NUMBERED.match(name)
    return (None, name, "", name) if found is None else (found["before"], found["after"], found["number"], name)


def _runs(numbers: list[str]) -> Iterator[str]:
    """Neighbours that count upwards with the same padding."""
    start = last = numbers[0]
    for number in [*numbers[1:], ""]:
        if number and number == str(int(last) + 1).zfill(len(start)):
            last = number
            continue
        yield start if start == last else f"{start}-{last}"
        start = last = number

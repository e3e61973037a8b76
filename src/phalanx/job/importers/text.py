"""Plain values → the text of a job.yaml that people read: short things in one line, comments where they belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.job.complaint import Loc
from phalanx.job.dump import flow

_WIDTH = 100
#: Characters of a comment's line.
_COMMENT = 110


def written(data: Mapping[str, Any], comments: Mapping[Loc, Sequence[str]], header: Sequence[str]) -> str:
    """The file's text; `comments` stand above what they are about, `header` above all. Reading it gives `data`."""
    page = _Page(comments)
    lines = [part for line in header for part in _wrapped(line, "")]
    body = page.mapping(data, (), "")
    return "".join(f"{line}\n" for line in [*lines, *([""] if lines else []), *body])


class _Page:
    def __init__(self, comments: Mapping[Loc, Sequence[str]]) -> None:
        self._comments = comments

    def mapping(self, data: Mapping[str, Any], loc: Loc, indent: str) -> list[str]:
        lines: list[str] = []
        for key, value in data.items():
            lines += self._above((*loc, key), indent)
            name = key if (*loc, key) == ("on",) else flow(key)  # our YAML is 1.2, where that is a word like others
            lines += self._value(f"{indent}{name}:", value, (*loc, key), indent)
        return lines

    def _value(self, head: str, value: Any, loc: Loc, indent: str) -> list[str]:
        short = f"{head} {flow(value)}"
        if isinstance(value, dict) and value and not self._fits(short, loc):
            return [head, *self.mapping(value, loc, indent + "  ")]
        if isinstance(value, list) and value and not self._fits(short, loc):
            return [head, *self._list(value, loc, indent + "  ")]
        if (block := _block(value, indent + "  ")) is not None:
            return [f"{head} {block[0]}", *block[1]]
        return [short]

    def _list(self, items: Sequence[Any], loc: Loc, indent: str) -> list[str]:
        lines: list[str] = []
        for number, item in enumerate(items):
            at = (*loc, number)
            lines += self._above(at, indent)
            short = f"{indent}- {flow(item)}"
            if isinstance(item, dict) and item and not self._fits(short, at):
                inner = self.mapping(item, at, indent + "  ")
                first = next(at for at, line in enumerate(inner) if not line.lstrip().startswith("#"))
                # A comment above an item's first key stands above the item.
                lines += [line[2:] for line in inner[:first]]
                lines += [f"{indent}- {inner[first].lstrip()}", *inner[first + 1 :]]
            elif (block := _block(item, indent + "  ")) is not None:
                lines += [f"{indent}- {block[0]}", *block[1]]
            else:
                lines.append(short)
        return lines

    def _fits(self, line: str, loc: Loc) -> bool:
        """Whether it may stand in one line: short enough, and nothing inside wants a comment."""
        if len(line) > _WIDTH or loc in (("roles",), ("on",), ("on", "kubernetes")):
            return False
        return not any(len(other) > len(loc) and other[: len(loc)] == loc for other in self._comments)

    def _above(self, loc: Loc, indent: str) -> list[str]:
        return [part for line in self._comments.get(loc, ()) for part in _wrapped(line, indent)]


def _block(value: Any, indent: str) -> tuple[str, list[str]] | None:
    """A text of several lines as a literal block, where that says exactly the same."""
    if not isinstance(value, str) or "\n" not in value:
        return None
    body = value.removesuffix("\n")
    lines = body.split("\n")
    if not body or value.endswith("\n\n") or lines[0][:1] in ("", " "):
        return None
    plain = all((line.isprintable() or not line) and line == line.rstrip() for line in lines)
    if not plain or not value.isascii():
        return None
    return "|" if value.endswith("\n") else "|-", [f"{indent}{line}" if line else "" for line in lines]


def _wrapped(text: str, indent: str) -> list[str]:
    """A comment, its lines no longer than people read."""
    lines: list[str] = []
    now = ""
    room = _COMMENT - len(indent) - 2
    hang = "  " if text.startswith("- ") else ""
    for word in "".join(char if char.isprintable() else "?" for char in text).split(" "):
        if now and len(now) + 1 + len(word) > room:
            lines.append(now)
            now = hang + word
        else:
            now = f"{now} {word}" if now else word
    return [f"{indent}# {line}" for line in [*lines, now]] if text else [f"{indent}#"]

"""A reader of almost-JSON: goes on where the writer's intent is plain, so that all mistakes come out at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from phalanx.tfconfig.quote import shown

#: Deeper nesting is refused: a TF_CONFIG has three levels.
DEPTH = 60

_SPACE = re.compile(r"[ \t\r\n]*")
_ODD_SPACE = re.compile(r"[\u00a0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff\x0b\x0c\x85\u2028\u2029]+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_ASSIGNMENT = re.compile(r"(?:export\s+)?TF_CONFIG\s*=\s*")
_PLAIN = re.compile(r'"[^"\\\x00-\x1f]*"')
_ESCAPED = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<float>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_ALMOST_NUMBER = re.compile(r"[+-]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9_]*\.?[0-9_]*(?:[eE][+-]?[0-9]*)?)")
_ESCAPE = re.compile(r'["\\/bfnrt]|u[0-9a-fA-F]{4}')
_COLON = re.compile(r":|=>?")
_WORD = re.compile(r"[^\s,:={}\[\]\"']+")
_BARE = re.compile(r"[^\s,{}\[\]\"']+")

_OPENED = re.compile(r"\s*\{")
_NAMES = {"'": "single quotes", '"': "double quotes"}
_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}
_PYTHON: dict[str, Any] = {"True": True, "False": False, "None": None}
CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_CURLY = "“”„‟‘’‚‛«»"  # noqa: RUF001 - the quotes that word processors write
_PREFIX = re.compile(r"[uUbBrR]{1,2}(?=[\"'])")
_MAX_DIGITS = 4000
_LOCATED = 100


class Complaint(NamedTuple):
    """One fault of syntax: the id of its rule, where it stands (offsets), and what it is in plain words."""

    id: str
    start: int
    end: int
    message: str


class _FatalError(Exception):
    """The reader cannot know how the text goes on; the complaint is made already."""


class Span(NamedTuple):
    """Offsets of a value and of its key (the value itself where it has none)."""

    start: int
    end: int
    key_start: int
    key_end: int


def escape(key: str) -> str:
    """A key as a part of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


class Reader:
    """Reads what JSON is meant to be, complains where it is not, and gives up where two readings are possible."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.complaints: list[Complaint] = []
        self.spans: dict[str, Span] = {}

    def read(self) -> tuple[Any, bool]:
        """The value, and whether it is one."""
        try:
            return self._root(), True
        except _FatalError:
            return None, False

    def complain(self, rule: str, start: int, end: int, message: str) -> None:
        """Note one fault; reading goes on."""
        self.complaints.append(Complaint(rule, start, end, message))

    def _fatal(self, rule: str, start: int, end: int, message: str) -> NoReturn:
        self.complain(rule, start, end, message)
        raise _FatalError

    def _where(self, offset: int) -> str:
        line = self.text.count("\n", 0, offset) + 1
        return f"line {line} column {offset - self.text.rfind(chr(10), 0, offset)}"

    def _root(self) -> Any:
        if self.text.startswith("\ufeff"):
            self.complain("json-bom", 0, 1, "the text starts with a byte order mark")
            self.pos = 1
        self._skip()
        found = _ASSIGNMENT.match(self.text, self.pos)
        if found:
            message = "this is the shell's assignment, not only its value"
            self.complain("json-assignment", found.start(), found.end(), message)
            self.pos = found.end()
            self._skip()
        if self.pos == len(self.text):
            self._fatal("json-empty", 0, 1, "the text is empty")
        closing = self._shell_quote()
        value = self._value("", 0)
        self._skip()
        if closing is not None and self.pos == closing:
            self.pos += 1
            self._skip()
        if self.pos < len(self.text):
            end = self.text.find("\n", self.pos)
            end = len(self.text) if end < 0 else end
            self.complain("json-trailing-text", self.pos, end, "there is more text after the end of the JSON")
            if not isinstance(value, dict | list):
                raise _FatalError
        return value

    def _shell_quote(self) -> int | None:
        """Past a quote that the shell should have eaten (docker --env-file keeps it): where its other end is."""
        at = self.pos
        last = len(self.text.rstrip()) - 1
        quote = self.text[at]
        if quote not in _NAMES or last <= at or self.text[last] != quote or not _OPENED.match(self.text, at + 1):
            return None
        if _ESCAPED.fullmatch(self.text, at, last + 1):
            return None
        message = f"the whole text stands in {_NAMES[quote]}: the shell's were kept"
        self.complain("json-shell-quotes", at, at + 1, message)
        self.pos += 1
        self._skip()
        return last

    def _skip(self) -> None:
        """Over white space, and over what people take for it."""
        text = self.text
        while True:
            self.pos = _SPACE.match(text, self.pos).end()  # type: ignore[union-attr] # it matches anywhere
            if self.pos == len(text) or (text[self.pos] in '"{}[],:-' or text[self.pos].isalnum()):
                return
            if found := _ODD_SPACE.match(text, self.pos):
                name = f"U+{ord(text[self.pos]):04X}"
                self.complain("json-space", self.pos, found.end(), f"this white space ({name}) is none for JSON")
            elif found := _COMMENT.match(text, self.pos):
                self.complain("json-comment", self.pos, found.end(), "JSON has no comments")
            else:
                return
            self.pos = found.end()

    def _value(self, pointer: str, depth: int) -> Any:
        """Read the value at `pos` and note its span."""
        start = self.pos
        self._prefix()
        first = self.text[self.pos]
        if first == "{":
            value: Any = self._object(pointer, depth + 1)
        elif first == "[":
            value = self._array(pointer, depth + 1)
        elif first in "\"'" or first in _CURLY:
            value = self._string()
        else:
            value = self._bare()
        self.spans[pointer] = Span(start, self.pos, start, self.pos)
        return value

    def _object(self, pointer: str, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for _ in self._members("{", "}", depth):
            start = self.pos
            key = self._key()
            end = self.pos
            if key in seen:
                # Finding a line counts newlines: enough places for people, never O(N²) for a hostile file.
                first = self._where(seen[key]) if len(self.complaints) < _LOCATED else "an earlier place"
                message = f"{shown(key, 60)} is written twice; only this one counts, not the one at {first}"
                self.complain("json-duplicate-key", start, end, message)
            seen[key] = start
            self._colon(end)
            inner = f"{pointer}/{escape(key)}"
            out[key] = self._value(inner, depth)
            self.spans[inner] = self.spans[inner]._replace(key_start=start, key_end=end)
        return out

    def _array(self, pointer: str, depth: int) -> list[Any]:
        out: list[Any] = []
        for _ in self._members("[", "]", depth):
            out.append(self._value(f"{pointer}/{len(out)}", depth))
        return out

    def _members(self, opening: str, closing: str, depth: int) -> Iterator[None]:
        """Stop at the start of each member; eat the commas and the brackets around them."""
        opened = self.pos
        if depth > DEPTH:
            self._fatal("json-depth", opened, opened + 1, f"nested more than {DEPTH} deep")
        self.pos += 1
        comma = opened  # where the last comma is, the bracket before the first member, -1 when one is due
        while True:
            self._skip()
            at = self.pos
            here = self.text[at : at + 1]
            if here == closing:
                if comma > opened:
                    self.complain("json-trailing-comma", comma, comma + 1, f"a comma before the closing {closing}")
                self.pos += 1
                return
            if not here or here in "}]:":
                self._refuse(here, opened, opening, closing)
            if here == ",":
                if comma >= 0:
                    self.complain("json-comma", at, at + 1, "nothing stands before this comma")
                self.pos += 1
                comma = at
                continue
            if comma < 0:
                self.complain("json-missing-comma", at, at + 1, "a comma is missing before this")
            yield
            comma = -1

    def _refuse(self, here: str, opened: int, opening: str, closing: str) -> NoReturn:
        """What stands here can neither begin a member nor end the brackets."""
        at = self.pos
        if not here:
            message = f"the {opening} at {self._where(opened)} is never closed; the text may be cut off"
            self._fatal("json-unterminated", opened, opened + 1, message)
        if here == ":":
            self._fatal("json-syntax", at, at + 1, "this colon has no place here")
        message = f"{here} closes the {opening} at {self._where(opened)}, which wants {closing}"
        self._fatal("json-bracket", at, at + 1, message)

    def _prefix(self) -> None:
        """Past the letter before a string of Python 2's `{u'cluster': ...}`."""
        if found := _PREFIX.match(self.text, self.pos):
            message = f"a string of Python: JSON has no {found[0]} before a string"
            self.complain("json-single-quotes", found.start(), found.end() + 1, message)
            self.pos = found.end()

    def _key(self) -> str:
        self._prefix()
        at = self.pos
        first = self.text[at]
        if first in "\"'" or first in _CURLY:
            return self._string()
        found = _WORD.match(self.text, at)
        if found is None:
            self._fatal("json-syntax", at, at + 1, f"a key in double quotes is wanted here, not {first!r}")
        self.pos = found.end()
        self.complain("json-unquoted", at, self.pos, "a key without double quotes")
        return found[0]

    def _colon(self, after: int) -> None:
        self._skip()
        at = self.pos
        found = _COLON.match(self.text, at)
        if found is None:
            message = "a colon is missing after this key"
            self._fatal("json-colon", after - 1, after, message)
        if found[0] != ":":
            self.complain("json-colon", at, found.end(), f"{found[0]} stands where JSON wants a colon")
        self.pos = found.end()
        self._skip()
        if self.text[self.pos : self.pos + 1] in {"", ",", "}", "]", ":"}:
            self._fatal("json-syntax", at, at + 1, "no value follows this colon")

    def _bare(self) -> Any:
        """A number, a literal, or a word that should have been a string."""
        at = self.pos
        found = _BARE.match(self.text, at)
        if found is None:
            self._fatal("json-syntax", at, at + 1, f"a value is wanted here, not {self.text[at]!r}")
        word, self.pos = found[0], found.end()
        if word in _LITERALS:
            return _LITERALS[word]
        number = _NUMBER.fullmatch(word)
        if number and len(word) <= _MAX_DIGITS:
            return float(word) if number["float"] else int(word)
        if word in _PYTHON:
            right = json.dumps(_PYTHON[word])
            self.complain("json-python-literal", at, self.pos, f"{word} is Python; JSON writes {right}")
            return _PYTHON[word]
        if word in CONSTANTS:
            self.complain("json-constant", at, self.pos, f"{word} is no JSON, though Python reads it")
            return CONSTANTS[word]
        if number and not number["float"]:
            self.complain(
                "json-number", at, self.pos, f"a number of {len(word):,} digits, which Python refuses to read"
            )
            return -(2**63) if word[0] == "-" else 2**63
        if number or (len(word) <= _MAX_DIGITS and _ALMOST_NUMBER.fullmatch(word) and any(c.isdigit() for c in word)):
            self.complain("json-number", at, self.pos, "no JSON writes a number like this")
        elif any(ord(c) < 32 for c in word):  # noqa: PLR2004 - control characters
            self._fatal("json-control", at, self.pos, "a control character")
        else:
            self.complain("json-unquoted", at, self.pos, "a text without double quotes")
        return word

    def _string(self) -> str:
        at = self.pos
        if found := _PLAIN.match(self.text, at):
            self.pos = found.end()
            return self.text[at + 1 : self.pos - 1]
        if found := _ESCAPED.match(self.text, at):
            self.pos = found.end()
            return str(json.loads(found[0]))
        return self._odd_string()

    def _odd_string(self) -> str:
        """A string with other quotes, or with something inside that JSON does not allow."""
        at = self.pos
        quote = self.text[at]
        ends = quote if quote in "\"'" else _CURLY
        parts: list[str] = []
        self.pos += 1
        while True:
            here = self.text[self.pos : self.pos + 1]
            if not here or here == "\n":
                message = "this string has no closing quote" + (" on its line" if here else "")
                self._fatal("json-unterminated", at, self.pos, message)
            self.pos += 1
            if here in ends:
                break
            if here == "\\":
                parts.append(self._escape(quote))
            else:
                if here < " ":
                    message = f"a control character (U+{ord(here):04X}) inside a string"
                    self.complain("json-control", self.pos - 1, self.pos, message)
                parts.append(here)
        if quote == "'":
            self.complain("json-single-quotes", at, self.pos, "single quotes; JSON knows only double ones")
        elif quote != '"':
            message = f"typographic quotes ({quote}); JSON knows only straight ones"
            self.complain("json-smart-quotes", at, self.pos, message)
        return "".join(parts)

    def _escape(self, quote: str) -> str:
        """What stands after a backslash."""
        at = self.pos
        found = _ESCAPE.match(self.text, at)
        if found:
            self.pos = found.end()
            return str(json.loads(f'"\\{found[0]}"'))
        here = self.text[at : at + 1]
        if here == "'" == quote:
            self.pos += 1
            return here
        self.complain("json-escape", at - 1, at + 1, "JSON has no such escape")
        return "\\"

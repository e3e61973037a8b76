"""YAML or JSON text → plain values, with the line and column of every key and value.

The text is composed into nodes and no further: nothing is constructed by tag, so nothing in a file can run. Scalars
follow YAML 1.2's core schema; `12:30:00`, `off` and dates stay text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from phalanx.job.complaint import Complaint, JobFileError, Loc

#: A job file is a page; anything beyond is another file, or a bomb of aliases.
_MOST_VALUES = 20_000
#: A list of all jobs of a cluster has some hundred values for each.
_MOST_OF_MANIFESTS = 500_000
_DEEPEST = 40

_PREFIX = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"str", "timestamp"})
_INT = re.compile(r"[-+]?(?:0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+)\Z", re.ASCII)
#: YAML 1.1, which Kubernetes reads.
_OLD_TRUTH = {"yes": True, "on": True, "no": False, "off": False}
_OLD_OCTAL = re.compile(r"0[0-7]+\Z", re.ASCII)
#: Python reads no longer ones; no number of a job comes near.
_MOST_DIGITS = 4000


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A document: its values, where they stand, and what its scalars looked like."""

    path: str
    value: Any
    #: Line and column, from 1: of the key where the value has one, else of the value.
    places: dict[Loc, tuple[int, int]]
    #: The text of each scalar as it was written, without quotes.
    written: dict[Loc, str]
    #: Mistakes of form that leave the rest readable: keys written twice, tags.
    complaints: tuple[Complaint, ...] = ()

    def place(self, loc: Loc) -> tuple[int, int]:
        """Where it stands; what the file does not have stands at its parent."""
        while loc and loc not in self.places:
            loc = loc[:-1]
        return self.places.get(loc, (1, 1))

    def complaint(self, loc: Loc, message: str) -> Complaint:
        """The message with its place in this file."""
        line, column = self.place(loc)
        return Complaint(message=message, source=self.path, line=line, column=column)


def read_tree(text: str, path: str) -> Tree:
    """What leaves nothing to read raises JobFileError: syntax, bombs. Lesser mistakes are the tree's `complaints`."""
    if path.endswith(".json"):
        _check_json(text, path)
        text = text.replace("\t", " ")  # JSON has raw tabs between tokens only, and YAML has none there
    return _built(_composed(path, lambda yaml: [yaml.compose(text)])[0], _Builder(path))


def read_manifests(text: str, path: str) -> list[Tree]:
    """The documents of a file as Kubernetes reads it, lines counted from the file's first; empty ones are left out.

    That is YAML 1.1 where it matters: `yes` and `off` are truth values, `0644` is octal, `<<` merges. Raises
    JobFileError as `read_tree` does.
    """
    if path.endswith(".json"):
        _check_json(text, path)
        text = text.replace("\t", " ")
    roots = _composed(path, lambda yaml: list(yaml.compose_all(text)))
    trees = [_built(root, _Builder(path, old=True)) for root in roots]
    return [tree for tree in trees if tree.value is not None]


def _composed(path: str, compose: Callable[[YAML], list[Any]]) -> list[Any]:
    try:
        return compose(YAML(typ="rt", pure=True))
    except MarkedYAMLError as wrong:
        raise JobFileError([_syntax(wrong, path)]) from wrong
    except YAMLError as wrong:
        raise JobFileError(
            [Complaint(message=f"not YAML: {str(wrong).splitlines()[0]}", source=path, line=1, column=1)]
        ) from wrong
    except RecursionError as wrong:
        raise JobFileError([Complaint(message="nested too deeply", source=path, line=1, column=1)]) from wrong
    except ValueError as wrong:  # a broken escape or directive
        raise JobFileError([Complaint(message=f"not YAML: {wrong}", source=path, line=1, column=1)]) from wrong


def _built(root: Any, builder: _Builder) -> Tree:
    try:
        value = builder.build(root, ()) if root is not None else None
    except RecursionError as wrong:  # a mapping that merges itself
        deep = Complaint(message="nested too deeply", source=builder.path, line=1, column=1)
        raise JobFileError([deep]) from wrong
    return Tree(
        path=builder.path,
        value=value,
        places=builder.places,
        written=builder.written,
        complaints=tuple(builder.complaints),
    )


class _Builder:
    def __init__(self, path: str, *, old: bool = False) -> None:
        self.path = path
        self._old = old  # YAML 1.1, as Kubernetes has it
        self.places: dict[Loc, tuple[int, int]] = {}
        self.written: dict[Loc, str] = {}
        self.complaints: list[Complaint] = []
        self._values = 0

    def build(self, node: Node, loc: Loc) -> Any:
        self._values += 1
        most = _MOST_OF_MANIFESTS if self._old else _MOST_VALUES
        if self._values > most or len(loc) > _DEEPEST:
            what = "nested too deeply" if len(loc) > _DEEPEST else f"more than {most} values (aliases count each time)"
            raise JobFileError([self._at(node, f"{what}: this is no {'manifest' if self._old else 'job file'}")])
        self.places.setdefault(loc, _start(node))
        if not isinstance(node, ScalarNode) and _tag(node) not in ("map", "seq"):
            self._complain(node, f"the tag {node.tag} is not allowed here; write a plain value")
        if isinstance(node, MappingNode):
            return self._mapping(node, loc)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*loc, number)) for number, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)  # noqa: S101 - the third and last kind
        if node.style == ">":
            node.value = node.value.replace("\a", "")  # where ruamel remembers that lines were folded
        self.written[loc] = node.value
        return self._scalar(node)

    def _mapping(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if self._old and _merges(key_node):
                continue
            key = self._key(key_node)
            if key is None:
                continue
            if key in built:
                line, _ = self.places[(*loc, key)]
                self._complain(key_node, f"`{key}` is written twice, first in line {line}")
                continue
            self.places[(*loc, key)] = _start(key_node)
            built[key] = self.build(value_node, (*loc, key))
        if self._old:
            self._merge(node, loc, built)
        return built

    def _merge(self, node: MappingNode, loc: Loc, built: dict[str, Any]) -> None:
        """What `<<` brings in, where the mapping itself does not say it; of several the first wins."""
        for key_node, value_node in node.value:
            if not _merges(key_node):
                continue
            for one in value_node.value if isinstance(value_node, SequenceNode) else [value_node]:
                if not isinstance(one, MappingNode):
                    self._complain(key_node, "`<<` merges mappings; this is none")
                    continue
                rest = [pair for pair in one.value if self._key_text(pair[0]) not in built]
                for name, value in self._mapping(MappingNode(one.tag, rest, one.start_mark, one.end_mark), loc).items():
                    built.setdefault(name, value)

    @staticmethod
    def _key_text(node: Node) -> str | None:
        return _whole(node.value) if isinstance(node, ScalarNode) else None

    def _key(self, node: Node) -> str | None:
        if not isinstance(node, ScalarNode):
            self._complain(node, "a key must be one word, not a list or a mapping")
            return None
        if node.tag == _PREFIX + "merge" or (node.value == "<<" and node.style is None):
            self._complain(node, "`<<` (merge) is no part of YAML 1.2; write the keys out")
            return None
        return _whole(node.value)

    def _scalar(self, node: ScalarNode) -> Any:
        text, kind = node.value, _tag(node)
        reader = _READERS.get(kind)
        if self._old and node.style is None and text.lower() in _OLD_TRUTH:
            return _OLD_TRUTH[text.lower()]
        if self._old and node.style is None and _OLD_OCTAL.match(text):
            return int(text, 8)
        if reader is not None and node.style is None:
            return reader(text)
        if kind not in _TEXT_TAGS and kind not in _READERS:
            self._complain(node, f"the tag {node.tag} is not allowed here; write a plain value")
        return _whole(text)

    def _complain(self, node: Node, message: str) -> None:
        self.complaints.append(self._at(node, message))

    def _at(self, node: Node, message: str) -> Complaint:
        line, column = _start(node)
        return Complaint(message=message, source=self.path, line=line, column=column)


def _merges(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.value == "<<" and node.style is None


def _tag(node: Node) -> str:
    return str(node.tag or "").removeprefix(_PREFIX)


def _start(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _null(text: str) -> Any:
    return None if text.lower() in {"", "~", "null"} else text


def _bool(text: str) -> Any:
    return text.lower() == "true" if text.lower() in {"true", "false"} else text


def _int(text: str) -> Any:
    """A `%YAML 1.1` header makes ruamel call `12:30:00` a number; it is none here."""
    if not _INT.match(text):
        return text
    if len(text) > _MOST_DIGITS:
        return -math.inf if text.startswith("-") else math.inf
    digits = text.lstrip("+-")
    number = int(digits, 0) if digits[:2] in {"0o", "0x"} else int(digits)
    return -number if text.startswith("-") else number


def _float(text: str) -> Any:
    try:
        number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        return text
    return text if "_" in text or (math.isnan(number) and "." not in text) else number


_READERS: dict[str, Callable[[str], Any]] = {"null": _null, "bool": _bool, "int": _int, "float": _float}


def _whole(text: str) -> str:
    """Two escapes of one character (as JSON writes an emoji) joined again."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _check_json(text: str, path: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        message = f"not JSON: {wrong.msg[:1].lower()}{wrong.msg[1:]}"
        raise JobFileError([Complaint(message=message, source=path, line=wrong.lineno, column=wrong.colno)]) from wrong
    except RecursionError as wrong:
        raise JobFileError([Complaint(message="nested too deeply", source=path, line=1, column=1)]) from wrong


#: ruamel's words for what goes wrong most, in ours.
_PLAINER = (
    (
        re.compile(r"mapping values are not allowed here"),
        "this `:` comes as a surprise; quote the value, or indent the line as its neighbours",
    ),
    (re.compile(r"found character '\\t'"), "a tab indents this line; YAML wants spaces"),
    (re.compile(r"found character '(.)' that cannot start any token"), r"a value cannot start with `\1`; quote it"),
    (
        re.compile(r"expected a single document.*|but found another document"),
        "a second document starts here; one job a file",
    ),
    (
        re.compile(r"found undefined alias '?([^']*)'?"),
        r"`*\1` refers to nothing; quote the value if it is meant as text",
    ),
    (
        re.compile(r"expected '<document start>'"),
        "this line is indented less than the first; all top keys start in one column",
    ),
    (re.compile(r"expected '?,'? or '\]', but got .*"), "the list that starts with `[` is not closed with `]`"),
    (re.compile(r"expected '?,'? or '\}', but got .*"), "the mapping that starts with `{` is not closed with `}`"),
    (re.compile(r"could not find expected ':'"), "`key: value` expected; the `:` or the blank after it is missing"),
    (
        re.compile(r"expected <block end>, but found .*"),
        "this line is indented differently from the ones it belongs to",
    ),
    (re.compile(r"found unexpected end of stream"), "a quote is opened and never closed"),
)


def _syntax(wrong: MarkedYAMLError, path: str) -> Complaint:
    problem = wrong.problem or wrong.context or "not YAML"
    said = next(
        (found.expand(plain) for pattern, plain in _PLAINER if (found := pattern.search(problem))),
        f"not YAML: {problem}",
    )
    mark = wrong.context_mark if "not closed" in said or "never closed" in said else wrong.problem_mark
    mark = mark or wrong.problem_mark or wrong.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    return Complaint(message=said.splitlines()[0], source=path, line=line, column=column)

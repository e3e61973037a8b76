"""Frozen dataclasses to JSON and back, by their type hints: how plans, events and messages travel.

A value that is None or an empty default is left out. Unknown keys are ignored, so that a newer writer can be read.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from phalanx.names import TaskId
from phalanx.tfconfig.model import Cluster

T = typing.TypeVar("T")

#: How the keys of a mapping are read back, where they are no text.
_KEYS: Mapping[Any, Callable[[str], Any]] = {int: int, TaskId: TaskId.parse}

#: Written into every plan; raised when an old reader could misread a new plan.
VERSION = 1


class WireError(ValueError):
    """A text that is no such message: says where and what was wanted."""


def to_wire(value: Any) -> Any:  # noqa: PLR0911 - one branch a type
    """Plain JSON data for any value made of frozen dataclasses, enums, TaskIds, tuples and mappings."""
    if isinstance(value, TaskId):
        return str(value)
    if isinstance(value, Cluster):
        return value.to_json()
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_wire(got)
            for field in dataclasses.fields(value)
            if not _is_default(field, got := getattr(value, field.name))
        }
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, tuple | list | frozenset):
        return [to_wire(item) for item in value]
    return value


def from_wire(kind: type[T], data: Any, where: str = "") -> T:
    """The value of type `kind` that `to_wire` wrote. Raises WireError naming the place."""
    return typing.cast("T", _read(kind, data, where or kind.__name__))


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(value == field.default and type(value) is type(field.default))
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return False


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Any, where: str) -> Any:  # noqa: C901, PLR0911, PLR0912 - one branch a type
    if kind is Any:
        return data
    if kind is TaskId:
        return TaskId.parse(_expect(str, data, where))
    if kind is Cluster:
        return _cluster(_expect(dict, data, where))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        try:
            return kind(data)
        except ValueError as wrong:
            raise WireError(f"{where}: {wrong}") from wrong
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type", kind), _expect(dict, data, where), where)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in args:
            return None
        return _read(next(arg for arg in args if arg is not type(None)), data, where)
    if origin is tuple:
        items = _expect(list, data, where)
        if len(args) == 2 and args[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
            return tuple(_read(args[0], item, f"{where}[{n}]") for n, item in enumerate(items))
        if len(items) != len(args):
            raise WireError(f"{where}: {len(args)} items wanted, {len(items)} found")
        return tuple(_read(arg, item, f"{where}[{n}]") for n, (arg, item) in enumerate(zip(args, items, strict=True)))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {
            (_KEYS[args[0]](key) if args[0] in _KEYS else key): _read(args[1], item, f"{where}.{key}")
            for key, item in _expect(dict, data, where).items()
        }
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    return _expect(kind, data, where)


def _dataclass(kind: type, data: dict[str, Any], where: str) -> Any:
    hints = _hints(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            values[field.name] = _read(hints[field.name], data[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WireError(f"{where}: no {field.name!r}")
    return kind(**values)


def _cluster(data: dict[str, Any]) -> Cluster:
    jobs = {
        kind: {int(i): a for i, a in (of.items() if isinstance(of, dict) else enumerate(of))}
        for kind, of in data.items()
    }
    return Cluster(jobs=jobs, sparse=frozenset(kind for kind, of in data.items() if isinstance(of, dict)))


def _expect(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, kind) or (kind in (int, float) and isinstance(data, bool)):
        raise WireError(f"{where}: {getattr(kind, '__name__', kind)} wanted, {data!r} found")
    return data

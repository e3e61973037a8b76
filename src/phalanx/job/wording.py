"""pydantic's complaints in plain words, with the nearest key or value that would have been right."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from phalanx.job.complaint import Loc, dotted
from phalanx.job.model import Job
from phalanx.job.nearest import nearest
from phalanx.names import KNOWN_TYPES
from phalanx.redact import redact

_KEY = "[key]"


def in_plain_words(error: Mapping[str, Any], written: Mapping[Loc, str], *, named: bool = True) -> tuple[Loc, str]:
    """Where one of pydantic's errors is, and what it means.

    `written`: the scalars as the file has them, if there is one. Without `named` the message leaves out the name of
    the field, for a reader who sees the flag before it.
    """
    loc: Loc = tuple(error["loc"])
    if loc[-1:] == (_KEY,):
        return loc[:-1], _bad_key(loc[:-1])
    if error["type"] == "extra_forbidden":
        return loc, unknown_key(loc)
    if error["type"] == "missing":
        return loc, f"`{loc[-1]}` is missing{_where(loc[:-1])}; {_EXAMPLES.get(str(loc[-1]), 'write it')}"
    said = _said(error, loc, written)
    colon = ":" if error["type"] in {"value_error", "literal_error"} else ""
    return loc, f"{dotted(loc) or 'the job'}{colon} {said}" if named else said


def unknown_key(loc: Loc) -> str:
    """The key `loc` ends with is none of its parent's: what was probably meant."""
    key = str(loc[-1])
    start = f"unknown key `{key}`{_where(loc[:-1])}"
    home = next((part for part in ("health", "restart", "grace", "placement") if key in _keys_at((part,))), None)
    if home and home not in loc:
        return f"{start}; it belongs under `{home}`"
    known = _keys_at(loc[:-1])
    if near := nearest(key, known):
        return f"{start}; did you mean `{near}`?"
    if len(loc) == 1 and (role := nearest(key.lower().removesuffix("s"), KNOWN_TYPES)):
        return f"{start}; did you mean roles: {{{role}: {{count: N}}}}?"
    return f"{start}; known are {', '.join(known)}"


_EXAMPLES = {
    "command": "say what each task runs: command: [python, train.py]",
    "from": "say where the value comes from: from: {env: NAME} or from: {file: PATH}",
    "env": "name the variable that the task finds it in",
    "name": "give it a name for logs and reports",
}

_WANTED = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
}


def _said(error: Mapping[str, Any], loc: Loc, written: Mapping[Loc, str]) -> str:  # noqa: PLR0911 - one row a kind
    kind, value, context = error["type"], error.get("input"), error.get("ctx", {})
    if kind in _WANTED:
        if _is_secret(loc, value):
            return f"{_WANTED[kind]}, and the value, which looks like a secret, is none"
        return f"{_WANTED[kind]}, not {_described(value)}{_remedy(kind, value, loc, written)}"
    if kind == "literal_error":
        choices = [word.strip("'") for word in str(context["expected"]).replace(" or ", ", ").split(", ")]
        near = nearest(value, choices) if isinstance(value, str) else None
        said = f"`{value}`" if isinstance(value, str) else _described(value)
        return f"{said} is none of {', '.join(choices)}" + (f"; did you mean {near}?" if near else "")
    if kind in {"greater_than_equal", "less_than_equal"}:
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return f"must be {bound}, not {value}"
    if kind in {"string_too_short", "too_short"}:
        return "must not be empty"
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters"
    if kind == "string_pattern_mismatch":
        return f"may not be {value!r}: {_FORMS.get(str(loc[-1]), 'it must match ' + str(context['pattern']))}"
    if kind == "value_error":
        return str(context["error"])
    return f"is wrong: {error['msg']}"


_FORMS = {
    "name": "lower-case letters, digits and dashes, starting with a letter and not ending in a dash, at most 40",
    "env": "a variable is named by letters, digits and underscores, not starting with a digit",
}


def _is_secret(loc: Loc, value: object) -> bool:
    """Whether a wrong value may not be repeated: under `secrets`, or one that its name gives away."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    assigned = f"{loc[-1]}={value}"
    return loc[0] == "secrets" or redact(assigned) != assigned


def _described(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {json.dumps(value if len(value) <= 40 else value[:37] + '…', ensure_ascii=False)}"  # noqa: PLR2004 - a line
    return "a list" if isinstance(value, list) else "a mapping"


def _remedy(kind: str, value: object, loc: Loc, written: Mapping[Loc, str]) -> str:
    if kind == "string_type" and isinstance(value, int | float):
        text = written.get(loc, str(value).lower() if isinstance(value, bool) else str(value))
        return f'; write it in quotes: "{text}"'
    if kind == "string_type" and isinstance(value, dict) and len(value) == 1:
        return f'; a word in braces needs quotes: "{{{next(iter(value))}}}"'
    if kind == "int_type" and isinstance(value, str) and value.strip().isdigit():
        return "; take the quotes away"
    if kind == "model_type" and loc[:1] == ("roles",) and isinstance(value, int):
        return f"; write {{count: {value}}}"
    if kind == "list_type" and isinstance(value, str):
        return f"; write [{value}]"
    return ""


def _bad_key(loc: Loc) -> str:
    key = str(loc[-1])
    if loc[:1] == ("roles",) and len(loc) == 2:  # noqa: PLR2004 - roles.NAME
        near = nearest(key, KNOWN_TYPES)
        return f"a role is named by lower-case letters, digits, - and _, unlike `{key}`" + (
            f"; did you mean `{near}`?" if near else ""
        )
    return (
        f"`{key}`{_where(loc[:-1])} is no variable's name: letters, digits and underscores, not starting with a digit"
    )


def _where(loc: Loc) -> str:
    return f" in {dotted(loc)}" if loc else ""


def _keys_at(loc: Loc) -> list[str]:
    """The keys a mapping at that place may have; none where they are free."""
    annotation: Any = Job
    for part in loc:
        if typing.get_origin(annotation) in (dict, list):  # a role by its name, a secret by its number
            annotation = typing.get_args(annotation)[-1]
            continue
        fields = _fields(annotation)
        annotation = next((field.annotation for name, field in fields.items() if part in (name, field.alias)), None)
    return [field.alias or name for name, field in _fields(annotation).items()]


def _fields(annotation: Any) -> Mapping[str, FieldInfo]:
    return annotation.model_fields if isinstance(annotation, type) and issubclass(annotation, BaseModel) else {}

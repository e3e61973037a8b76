"""The kinds of values that keys of job.yaml have: durations, sizes, switches, names, commands."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, StringConstraints, WithJsonSchema

from phalanx.job import units
from phalanx.job.nearest import nearest

_DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0, "maximum": units.LONGEST},
        {"type": "string", "pattern": units.DURATION_PATTERN},
    ]
}
_SIZE_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": units.SIZE_PATTERN}]}
_SWITCH_SCHEMA = {"anyOf": [{"type": "boolean"}, {"enum": ["on", "off"]}]}

#: What `command: server` of a role stands for, until the interpreter and the place of our program are known.
SERVER = ["phalanx:server"]

ROLE_COMMAND_SCHEMA = {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, {"const": "server"}]}


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("on", "off"):  # YAML 1.2 reads them as text
        return value == "on"
    message = f"{value!r} is neither on nor off"
    raise ValueError(message)


def _passable(value: str) -> str:
    if "\0" in value:
        message = "a zero byte cannot be passed to a program"
        raise ValueError(message)
    return value


def command_words(value: object) -> object:
    """For a validator: a list; a sentence that a shell would split is shown as one: guessing at quotes goes wrong."""
    if not isinstance(value, str):
        return value
    import json  # noqa: PLC0415 - for a mistake only
    import shlex  # noqa: PLC0415 - as above

    try:
        words = shlex.split(value)
    except ValueError:
        words = value.split()
    message = f"write the command as a list: {json.dumps(words, ensure_ascii=False)}"
    raise ValueError(message)


def role_command_words(value: object) -> object:
    """As `command_words`, and `server` is one word that is no mistake."""
    return list(SERVER) if value == "server" else command_words(value)


#: Words for where hosts are; anything else is the key of a label of nodes.
TOPOLOGIES = ("zone", "rack", "switch", "host")
_LABEL = r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"{_LABEL}\Z", re.ASCII)
_TOPOLOGY_SCHEMA = {"anyOf": [{"enum": list(TOPOLOGIES)}, {"type": "string", "pattern": f"^[^/]+/{_LABEL}$"}]}


def _topology(value: object) -> object:
    if value in TOPOLOGIES or not isinstance(value, str) or ("/" in value and _LABEL_KEY.match(value)):
        return value
    message = f"`{value}` is neither one of {', '.join(TOPOLOGIES)} nor the key of a label such as example.com/row"
    if near := nearest(value, TOPOLOGIES):
        message += f"; did you mean {near}?"
    raise ValueError(message)


Duration = Annotated[float, BeforeValidator(units.seconds), WithJsonSchema(_DURATION_SCHEMA)]
SomeTime = Annotated[float, BeforeValidator(units.some_seconds), WithJsonSchema(_DURATION_SCHEMA)]
Size = Annotated[int, BeforeValidator(units.size), WithJsonSchema(_SIZE_SCHEMA)]
Switch = Annotated[bool, BeforeValidator(_switch), WithJsonSchema(_SWITCH_SCHEMA)]
Word = Annotated[str, AfterValidator(_passable)]
Text = Annotated[str, StringConstraints(min_length=1)]
Topology = Annotated[str, BeforeValidator(_topology), WithJsonSchema(_TOPOLOGY_SCHEMA)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)]

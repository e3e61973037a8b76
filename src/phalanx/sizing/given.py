"""A model as a person gives it by flags, in place of a look at a script: `25M`, `10Mx64`, `10Gbit`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phalanx.errors import InputError
from phalanx.sizing.model import FLOAT, Model, Variable

_POWERS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9, "t": 10**12}
#: Numbers of a model at most, some ten times the largest there is: what is beyond is a slip.
_MOST = 10**14
_TABLE = "write 10Mx64 for ten million rows of 64 numbers"
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kmgbt]?)\Z", re.ASCII | re.IGNORECASE)
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(bit|b)(?:/s|ps)?\Z", re.ASCII | re.IGNORECASE)

#: Numbers that an optimizer keeps for each parameter, by the name it has in Keras.
OPTIMIZERS = {
    "sgd": 0,
    "momentum": 1,
    "adagrad": 1,
    "rmsprop": 1,
    "lion": 1,
    "ftrl": 2,
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "adamax": 2,
    "adadelta": 2,
}


def model(
    *,
    parameters: str | None,
    tables: Sequence[str],
    optimizer: str,
    batch: int,
    ids: int = 1,
) -> Model:
    """`parameters`: those of dense layers. `tables`: ROWSxCOLUMNS each; an example takes `ids` rows of each.

    Raises InputError naming the flag.
    """
    kept = slots_of(optimizer)
    variables = [_table(number, text, batch * ids) for number, text in enumerate(tables)]
    if parameters is not None:
        variables.append(Variable(name="dense", bytes=int(count("--parameters", parameters) * FLOAT)))
    if not variables:
        raise InputError("there is nothing to train", hint="name a script, or give --parameters 25M or --tables 10Mx64")
    return Model(variables=tuple(variables), slots=kept * sum(one.bytes for one in variables), batch=batch)


def slots_of(optimizer: str) -> int:
    """How many numbers it keeps for each parameter. Raises InputError for one that is not known."""
    if optimizer.lower() not in OPTIMIZERS:
        raise InputError(
            f"--optimizer {optimizer}: none of {', '.join(OPTIMIZERS)}", hint="take one that keeps as much"
        )
    return OPTIMIZERS[optimizer.lower()]


def count(flag: str, text: str) -> float:
    """`25M`, `1.5B`, `4000` → a number. Raises InputError."""
    hint = "write 25M, 1.5B or 4000000"
    number = _number(text)
    if number is None:
        raise InputError(f"{flag} {text}: not a number of parameters", hint=hint)
    if not 1 <= number <= _MOST:
        raise InputError(f"{flag} {text}: must be from 1 to 100T parameters", hint=hint)
    return number


def rate(flag: str, text: str) -> float:
    """`10Gbit`, `100Mbit`, `1.25GB` a second → bytes a second. Raises InputError."""
    found = _RATE.match(text.strip())
    if found is None or not 0 < float(found[1]) <= _MOST:
        raise InputError(f"{flag} {text}: not a bandwidth", hint="write 10Gbit, 100Mbit or 1.25GB (a second)")
    bits = found[3].lower() == "bit" or found[3] == "b"
    return float(found[1]) * _POWERS[found[2].lower()] / (8 if bits else 1)


def _table(number: int, text: str, touched: int) -> Variable:
    rows, _, columns = text.lower().partition("x")
    high, wide = _number(rows), _number(columns)
    if high is None or wide is None:
        raise InputError(f"--tables {text}: not ROWSxCOLUMNS", hint=_TABLE)
    if high < 1 or wide < 1 or high * wide > _MOST:
        raise InputError(f"--tables {text}: must have a row and a column, and at most 100T numbers", hint=_TABLE)
    return Variable(name=f"table {number}", bytes=int(high * wide * FLOAT), rows=int(high), touched=touched)


def _number(text: str) -> float | None:
    found = _COUNT.match(text.strip())
    return float(found[1]) * _POWERS[found[2].lower()] if found is not None else None

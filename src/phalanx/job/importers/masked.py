"""Values that look like secrets: never copied, so each stops the import."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phalanx.job.advise import looks_secret
from phalanx.job.importers.ledger import Ledger, Spot
from phalanx.redact import tells

_REFERENCE = re.compile(r"\$\(\w+\)|\$\{?\w+\}?")


def variable(ledger: Ledger, name: str, value: str, spot: Spot) -> bool:
    """Refuse a variable that holds a credential; whether it did. A reference to another variable is none."""
    if not looks_secret(name, value) or _REFERENCE.fullmatch(value):
        return False
    ledger.refuse(spot, f"the value of {name} looks like a secret and is not copied; {advice(name)}")
    return True


def advice(name: str) -> str:
    """How a value becomes a reference."""
    key = name.lower().replace("_", "-")
    return (
        f"keep it in a Secret (kubectl create secret generic {key} --from-literal={key}=…) and write "
        f"valueFrom: {{secretKeyRef: {{name: {key}, key: {key}}}}} in place of the value"
    )


def words(ledger: Ledger, command: Sequence[str], spot: Spot) -> None:
    """Refuse a command that holds a credential: in a word, or after an option."""
    pairs = [" ".join(command[at : at + 2]) for at in range(len(command)) if command[at].startswith("-")]
    if any(tells(text) for text in (*command, *pairs)):
        ledger.refuse(
            spot,
            "this command holds what looks like a secret, and is not copied; hand it over in a variable with "
            "valueFrom: {secretKeyRef: …}, and let the program read that",
        )


def below(ledger: Ledger, spot: Spot) -> None:
    """Refuse whatever looks like a credential anywhere below: by its shape, in variables by their names too."""
    value = spot.value
    if isinstance(value, str):
        if tells(value):
            ledger.refuse(spot, "this looks like a secret and is not copied; keep it in a Secret, and refer to that")
        return
    if isinstance(value, dict) and isinstance(name := value.get("name"), str) and isinstance(value.get("value"), str):
        variable(ledger, name, value["value"], spot.down("value"))
        return
    if isinstance(value, dict | list):
        for item in spot.items():
            below(ledger, item)

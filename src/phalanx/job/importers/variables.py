"""The environment of a container: literal values, references, and `$(NAME)`, which the kubelet fills in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from phalanx.job.importers import masked
from phalanx.job.importers.ledger import Ledger, Spot
from phalanx.job.importers.part import TASK, Part, Reference, Said
from phalanx.job.importers.shell import script_at

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OURS = re.compile(r"TF_GRPC_REUSE_PORT\Z|PHALANX_")
_FILLED = re.compile(r"\$\$|\$\(([-._A-Za-z][-._A-Za-z0-9]*)\)")
TF_CONFIG = "TF_CONFIG"


def read(ledger: Ledger, part: Part, env: Spot) -> None:
    """`env` of the container that trains → the role's env, secrets and overlay."""
    rest: list[tuple[Spot, object]] = []
    for item in ledger.sequence(env):
        name = ledger.text(item.down("name"))
        value, source = item.down("value"), item.down("valueFrom")
        if not name:
            ledger.refuse(item, "a variable needs a name")
        elif name == TF_CONFIG:
            part.tf_config = value if isinstance(value.value, str) else item
            part.by_hand = True
            ledger.change(item, "phalanx writes TF_CONFIG itself, over the pods that live; this one is left out")
        elif _OURS.match(name):
            ledger.drop(item, f"{name} is written by phalanx; it is left out")
        elif source.value is not None:
            if not _secret(ledger, part, name, item):
                rest.append((item, {"name": name, "valueFrom": source.value}))
        else:
            text = ledger.text(value)
            if masked.variable(ledger, name, text, value if value.value is not None else item):
                continue
            filled, left = fill(text, {one: said.value for one, said in part.env.items()}, _runtime(part, rest))
            if left or not _NAME.match(name):
                rest.append((item, {"name": name, "value": text if left else filled}))
                continue
            why = "$(…) is filled in: job.yaml takes values as they are" if filled != text else ""
            part.env[name] = Said(value=filled, spot=item, why=why)
    if rest:
        part.overlay[(*TASK, "env")] = Said(value=[one for _, one in rest], spot=env)


def fill(text: str, known: Mapping[str, str], runtime: Sequence[str]) -> tuple[str, bool]:
    """`$(NAME)` of known variables filled in, as the kubelet does; whether one is known in the pod only."""
    left = False

    def one(found: re.Match[str]) -> str:
        nonlocal left
        if found[0] == "$$":
            return "$"
        left = left or found[1] in runtime
        return known.get(found[1], found[0])

    return _FILLED.sub(one, text), left


def words(part: Part, command: Sequence[str]) -> tuple[list[str], str]:
    """A command with `$(NAME)` filled in, by a shell where only the pod knows it; and why, where it changed."""
    known = {name: said.value for name, said in part.env.items()}
    overlay = part.overlay.get((*TASK, "env"))
    runtime = [TF_CONFIG, *part.secrets, *(one["name"] for one in (overlay.value if overlay else ()))]
    filled = [fill(word, known, runtime) for word in command]
    if not any(left for _, left in filled):
        made = [word for word, _ in filled]
        return made, "$(…) is filled in: job.yaml takes words as they are" if made != list(command) else ""
    at = script_at(command)
    if at is not None:
        made = [_braced(word, runtime) for word, _ in filled]
    else:
        made = ["/bin/sh", "-c", "exec " + " ".join(_shelled(word, runtime) for word, _ in filled)]
    return made, "$(…) is known in the pod only; a shell fills it in"


def _braced(word: str, runtime: Sequence[str]) -> str:
    return _FILLED.sub(lambda found: f"${{{found[1]}}}" if found[1] in runtime else found[0], word)


def _shelled(word: str, runtime: Sequence[str]) -> str:
    made, end = "", 0
    for found in _FILLED.finditer(word):
        if found[1] in runtime:
            made += (shlex.quote(word[end : found.start()]) if word[end : found.start()] else "") + f'"${found[1]}"'
            end = found.end()
    rest = word[end:]
    return made + (shlex.quote(rest) if rest or not made else "")


def _runtime(part: Part, rest: Sequence[tuple[Spot, object]]) -> list[str]:
    return [TF_CONFIG, *part.secrets, *(str(one["name"]) for _, one in rest if isinstance(one, dict))]


def _secret(ledger: Ledger, part: Part, name: str, item: Spot) -> bool:
    """Whether it is a key of a Secret that `secrets` can name."""
    found = item.down("valueFrom", "secretKeyRef")
    secret, key = found.down("name").value, found.down("key").value
    if not (isinstance(secret, str) and isinstance(key, str) and secret and key and _NAME.match(name)):
        return False
    why = ""
    if ledger.truth(found.down("optional")):
        why = "optional has no counterpart: without that key the pod does not start"
    part.secrets[name] = Reference(secret=secret, key=key, spot=item, why=why)
    return True

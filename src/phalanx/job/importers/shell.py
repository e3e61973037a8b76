"""Scripts that write TF_CONFIG by hand before they train: what is left of them once phalanx writes it."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence

_SHELL = re.compile(r"(?:.*/)?(?:ba|da|a|z|k)?sh\Z")
_DASH_C = re.compile(r"-[a-z]*c\Z")
_TF_CONFIG = re.compile(r"\bTF_CONFIG\b")
#: A whole statement that sets one variable.
_SETS = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)=(.*)\Z", re.DOTALL)
_EXPORTS = re.compile(r"export(?:\s+[A-Za-z_]\w*)+\Z")
#: What only Volcano's plugins write into a pod.
VOLCANO = re.compile(r"/etc/volcano\b|\bV[CK]_TASK_INDEX\b|\bVC_\w+_(?:HOSTS|NUM)\b")
_TYPE = re.compile(r"""\\?["']?type\\?["']?\s*:\s*\\?["']?([A-Za-z]+)""")
#: Words of a script that is more than one statement after the other.
_CONTROL = re.compile(r"(?:^|[\s;])(?:if|for|while|until|case|function|select)\s|<<-?\s*['\"]?\w|\(\)\s*\{")
_META = re.compile(r"[$`|&;<>()*?\[\]{}~!#\n]")
#: Launchers of other kinds of training.
LAUNCHERS = re.compile(
    r"(?<![\w./-])(?:\S*/)?(mpiexec|mpirun|horovodrun|torchrun|deepspeed)(?=\s|\Z)|torch\.distributed\.(?:run|launch)"
)
#: Addresses and numbers that a command is given by hand.
FLAGS = re.compile(r"--(?:ps_hosts|worker_hosts|task_index|task_id|job_name|worker_replicas)\b")


def launcher_advice(name: str) -> str:
    """Why such a command is refused, and what to do instead."""
    return (
        f"`{name}` launches by itself, and not TensorFlow's strategies; MultiWorkerMirroredStrategy needs no MPI: let "
        "each worker run the script that builds it"
    )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A command that writes TF_CONFIG itself. `words` is what is left; None where it cannot be told apart."""

    words: tuple[str, ...] | None
    #: The type of task it says, where it says one.
    kind: str | None


def by_hand(words: Sequence[str]) -> Script | None:
    """What a shell's script is without its TF_CONFIG; None for a command that does not write one."""
    at = script_at(words)
    if at is None or not _TF_CONFIG.search(words[at]):
        return None
    script = words[at]
    kind = _TYPE.search(script)
    said = kind[1].lower() if kind else None
    if _CONTROL.search(script):
        return Script(words=None, kind=said)
    left = _without(_statements(script))
    if left is None or not left:
        return Script(words=None, kind=said)
    marks = {";": "; ", "&&": " && ", "": ""}
    text = "".join(f"{one}{marks[mark]}" for one, mark in left).strip().removesuffix(";").removesuffix("&&").strip()
    if len(left) == 1 and not _META.search(text):
        try:
            plain = shlex.split(text)
        except ValueError:
            plain = []
        if plain[:1] == ["exec"]:
            plain = plain[1:]
        if plain and "=" not in plain[0]:
            return Script(words=(*plain, *words[at + 2 :]) if len(words) > at + 1 else tuple(plain), kind=said)
    return Script(words=(*words[:at], text, *words[at + 1 :]), kind=said)


def script_at(words: Sequence[str]) -> int | None:
    """Where the script of `sh -c SCRIPT` stands among the words."""
    if not words or not _SHELL.match(words[0]):
        return None
    at, seen = 1, False
    while at < len(words) and words[at].startswith("-"):
        seen = seen or bool(_DASH_C.match(words[at]))
        at += 1
    return at if seen and at < len(words) else None


def _statements(script: str) -> list[tuple[str, str]]:
    """Statements one after the other, each with what ends it: `;`, `&&` or a line's end. Quotes are kept whole."""
    found: list[tuple[str, str]] = []
    now, quote, at = "", "", 0
    depth = 0
    while at < len(script):
        char = script[at]
        if char == "\\" and quote != "'":
            now += script[at : at + 2] if script[at : at + 2] != "\\\n" else " "
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif depth <= 0 and (char in ";\n" or script.startswith("&&", at)):
            mark = "&&" if char == "&" else ";"
            found.append((now.strip(), mark))
            now = ""
            at += len(mark)
            continue
        now += char
        at += 1
    found.append((now.strip(), ""))
    return [(one, mark) for one, mark in found if one and not one.startswith("#")]


def _without(statements: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """What remains when TF_CONFIG, and what only served it, is gone; None where something still needs it."""
    left: list[tuple[str, str]] = []
    gone: list[str] = []
    for one, mark in statements:
        name, _ = _assigned(one)
        shows = bool(_EXPORTS.match(one)) or one.startswith(("echo", "printf", "printenv"))
        if name == "TF_CONFIG" or (shows and _TF_CONFIG.search(one)):
            gone.append(one)
        else:
            left.append((one, mark))
    while True:
        idle = [
            (one, mark)
            for one, mark in left
            if (name := _assigned(one)[0])
            and not any(_uses(other, name) for other, _ in left if other != one)
            and (any(_uses(other, name) for other in gone) or VOLCANO.search(one))
        ]
        if not idle:
            break
        gone += [one for one, _ in idle]
        left = [pair for pair in left if pair not in idle]
    if any(_TF_CONFIG.search(one) for one, _ in left):
        return None
    return left


def _assigned(statement: str) -> tuple[str | None, str]:
    """The variable that a statement sets and does nothing beside, and its value."""
    found = _SETS.match(statement)
    if not found:
        return None, ""
    value, quote = found[2], ""
    depth = 0
    for at, char in enumerate(value):
        if quote:
            quote = "" if char == quote and value[at - 1 : at] != "\\" else quote
        elif char in "\"'`" and value[at - 1 : at] != "\\":
            quote = char
        elif char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char.isspace() and depth <= 0:
            return None, ""  # `NAME=value program`
    return found[1], value


def _uses(statement: str, name: str) -> bool:
    return re.search(rf"\$\{{?{re.escape(name)}\b", statement) is not None

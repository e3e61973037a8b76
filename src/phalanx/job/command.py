"""What the words of a command are: a Python script, a program, and what is wrong with them before anything starts."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from phalanx.agent.preflight.start import Start, start_of_module, start_of_script
from phalanx.agent.standby import interpreter_line
from phalanx.job.fields import SERVER
from phalanx.job.nearest import nearest_file
from phalanx.plan import own
from phalanx.plan.bind import PLACEHOLDERS

#: Python's own flags that take the next word: `-W error`, `-X dev`.
_VALUED = ("-W", "-X", "--check-hash-based-pycs")
_BARE = ("python", "python3")
_PYTHON = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)?)?\Z")
#: `-P`: a module is not looked for where the command starts.
_SAFE = re.compile(r"-[a-zA-Z]*P")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


def wants_interpreter(argv: Sequence[str]) -> bool:
    """Whether phalanx chooses its Python: `train.py …` and a bare `python …`; anything else runs as written."""
    return argv[0] in _BARE or argv[0].endswith(".py") or list(argv) == SERVER


def with_interpreter(argv: Sequence[str], python: str) -> tuple[str, ...]:
    """`train.py a` → `python train.py a`; `python -u train.py` → the same under the chosen one; else as written."""
    if list(argv) == SERVER:
        return (python, own.SERVER)
    if argv[0].endswith(".py"):
        return (python, *argv)
    return (python, *argv[1:]) if argv[0] in _BARE else tuple(argv)


def script_at(argv: Sequence[str]) -> int | None:
    """The index of the Python script; None for `-m`, `-c`, standard input and whatever is no Python."""
    if argv[0].endswith(".py"):
        return 0
    at = _program_at(argv)
    return None if at is None or argv[at][:1] == "-" else at


def start_of(argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str]) -> Start | None:
    """What Python begins with: the script, or the module of `-m` where that is the user's; None for all else.

    `cwd` and `environ` are those that the command will have. A word with a placeholder is not known yet.
    """
    at = script_at(argv)
    if at is not None:
        return None if placeholders([argv[at]]) else start_of_script(cwd / argv[at])
    line = interpreter_line(argv)
    if line is None or line.kind != "module":
        return None
    safe = any(_SAFE.match(word) for word in argv[1 : len(argv) - len(line.args)])
    return start_of_module(line.target, cwd=cwd, environ={**environ, "PYTHONSAFEPATH": "1"} if safe else environ)


def arguments_of(argv: Sequence[str]) -> tuple[str, ...]:
    """What the script or the module finds in sys.argv[1:]."""
    at = script_at(argv)
    if at is not None:
        return tuple(argv[at + 1 :])
    line = interpreter_line(argv)
    return line.args if line is not None else ()


def program_words(argv: Sequence[str]) -> str:
    """`train.py`, `-m package.train`: the program without its interpreter and its arguments."""
    at = script_at(argv)
    line = interpreter_line(argv) if at is None else None
    return argv[at] if at is not None else f"-m {line.target}" if line is not None else argv[0]


def shown(argv: Sequence[str], start: Start, cwd: Path) -> str:
    """The file as the user would name it: as written, or from `cwd`."""
    at = script_at(argv)
    if at is not None:
        return argv[at]
    return str(start.file.relative_to(cwd) if start.file.is_relative_to(cwd) else start.file)


def default_name(argv: Sequence[str]) -> str:
    """What the job is called when nobody says: the script, module or program, as every engine accepts it."""
    at, script = _program_at(argv), script_at(argv)
    stem = Path(argv[0]).name
    if script is not None:
        stem = Path(argv[script]).stem
    elif at is not None and argv[at] == "-m" and len(argv) > at + 1:
        stem = argv[at + 1].rpartition(".")[2]
    slug = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40].strip("-")
    return slug if slug[:1].isalpha() else f"job-{slug}".strip("-")[:40].strip("-")


def mistakes(argv: Sequence[str], *, cwd: Path, path: str) -> list[tuple[int, str]]:
    """What will not start, each with the word it is about: no such script, no such program, no program at all.

    `path`: the PATH that programs are looked up on. Looks at the disk; starts nothing.
    """
    if not argv[0]:
        return [(0, "the first word of a command is empty")]
    found = []
    if not wants_interpreter(argv) and (said := _seen(lambda: _no_program(argv[0], cwd, path))):
        found.append((0, said))
    at, script = _program_at(argv), script_at(argv)
    if script is not None:
        found += [(script, said)] if (said := _seen(lambda: _no_script(argv[script], cwd))) else []
    elif _PYTHON.match(argv[0]) and (at is None or argv[at] == "-"):
        found.append(
            (0, f"`{' '.join(argv)}` reads its program from standard input, which tasks do not have; name a script")
        )
    elif at is not None and len(argv) == at + 1 and argv[at] in ("-m", "-c"):
        found.append((at, f"`{argv[at]}` wants a word after it"))
    return found


def placeholders(words: Sequence[str]) -> frozenset[str]:
    """Which of {checkpoint} and its like the words use."""
    return frozenset(found for word in words for found in _PLACEHOLDER.findall(word))


def _program_at(argv: Sequence[str]) -> int | None:
    """After `python`: the index of the script, of `-m`, `-c` or `-`; None where nothing follows, or no Python leads."""
    if not _PYTHON.match(argv[0]):
        return None
    at = 1
    while at < len(argv):
        word = argv[at]
        if not word.startswith("-") or word == "-":
            return at
        if word[:2] in ("-m", "-c"):
            return at
        at += 2 if word in _VALUED else 1
    return None


def _seen(look: Callable[[], str | None]) -> str | None:
    """What looking at the disk says, also where the disk refuses: a name too long, a folder closed to us."""
    try:
        return look()
    except OSError as wrong:
        return (
            f"{str(wrong.filename)[:80]}: {(wrong.strerror or 'cannot be read').lower()}; name a file that `ls` finds"
        )


def _no_script(word: str, cwd: Path) -> str | None:
    if placeholders([word]):
        return None
    path = cwd / word
    if path.is_file() or (path.is_dir() and (path / "__main__.py").is_file()):
        return None if os.access(path, os.R_OK) else f"{word} cannot be read; ls -l {word} shows who may"
    if path.is_dir():
        return f"{word} is a folder without __main__.py; name the script in it"
    return f"no such file: {word}{_instead(word, cwd, lambda entry: entry.suffix == path.suffix)}"


def _no_program(word: str, cwd: Path, path: str) -> str | None:
    if placeholders([word]):
        return None
    full = cwd / word
    if "/" not in word:
        return None if shutil.which(word, path=path) else _not_on_path(word, cwd)
    if full.is_dir():
        return f"{word} is a folder; name the script in it"
    if not full.is_file():
        return f"no such file: {word}{_instead(word, cwd, lambda entry: entry.is_file())}"
    if os.access(full, os.X_OK):
        return None
    return f"{word} may not be executed; chmod +x {word}, or name its interpreter first"


def _not_on_path(word: str, cwd: Path) -> str:
    if (cwd / word).is_dir():
        return f"{word} is a folder; name the script in it"
    said = f"no program `{word}` on PATH"
    if (cwd / word).is_file():
        return f"{said}; for the file in this folder write ./{word}"
    if near := _near(word, cwd, lambda entry: entry.suffix == ".py"):
        return f"{said}; did you mean {near}?"
    return f"{said}; install it, or write its path (a Python script ends in .py)"


def _instead(word: str, cwd: Path, fits: Callable[[Path], bool]) -> str:
    """What to do about a file that is not there."""
    if near := _near(word, cwd, fits):
        return f"; did you mean {near}?"
    folder = (cwd / word).parent
    if not folder.is_dir():
        return f"; there is no folder {Path(word).parent} either: name the file by a path that `ls` finds"
    return "; `ls` that folder" if Path(word).is_absolute() else f" in {cwd}; name it by its path from there"


def _near(word: str, cwd: Path, fits: Callable[[Path], bool]) -> str | None:
    """A file of that folder whose name is a slip away, as the user would write it."""
    try:
        names = [entry.name for entry in (cwd / word).parent.iterdir() if fits(entry)]
    except OSError:
        return None
    found = nearest_file(Path(word).name, names)
    return f"{word.removesuffix(Path(word).name)}{found}" if found else None

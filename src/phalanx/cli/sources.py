"""The TF_CONFIGs a verb is asked about: the variable, files, standard input, folders with a file per node."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from phalanx.errors import InputError
from phalanx.tfconfig.quote import brief, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What findings call the environment variable and standard input.
VARIABLE = "$TF_CONFIG"
STDIN = "-"

#: No TF_CONFIG is larger: 10,000 tasks are some 300 kB. Protects from `phalanx check /dev/zero`.
_LIMIT = 64 * 1024 * 1024

#: Characters of a file's name that an error repeats.
_NAME = 200

#: A line as `phalanx generate --all` writes it.
_STREAM = re.compile(r"(?P<task>[a-z][a-z0-9_-]*:[0-9]+)\t(?P<text>\{.*)")

Inputs = Annotated[
    str,
    Parameter(
        name="INPUT",
        help="A file, `-` for standard input, or a folder with a file per node. Without any: $TF_CONFIG.",
        allow_leading_hyphen=True,  # else `-` is taken for an option
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One text and where it is from. `text` is None where the variable is not set, `file` where it is no whole file."""

    path: str
    text: str | None
    file: Path | None = None

    @property
    def live(self) -> bool:
        """Whether it is the environment's own, bound by the size limit of one variable."""
        return self.path == VARIABLE


def read(inputs: Sequence[str]) -> tuple[Source, ...]:
    """Every text named by `inputs`, in order; folders sorted by name, `worker_10` after `worker_9`.

    A file that holds the lines of `phalanx generate --all` gives a source per line. Raises InputError for what cannot
    be read at all: missing, not permitted, not text, too large, an empty folder, a script.
    """
    if not inputs:
        return (Source(path=VARIABLE, text=_variable()),)
    for name in inputs:
        if not name:
            raise InputError("an INPUT is empty", hint="is a variable of your shell unset? `.` is this folder")
        if name.startswith("-") and name != STDIN:
            raise InputError(
                f"unknown option {name}", hint="--help shows the options; a file of that name is ./" + name
            )
    if inputs.count(STDIN) > 1:
        raise InputError("`-` is given twice, but standard input can be read once")
    return tuple(source for name in inputs for source in _named(name))


def _variable() -> str | None:
    text = os.environ.get("TF_CONFIG")
    return None if text is None else _decode(os.fsencode(text), VARIABLE)


def _named(name: str) -> Iterator[Source]:
    if name == STDIN:
        yield from _split(STDIN, _stdin())
        return
    path = Path(name)
    try:
        files = _folder(path) if path.is_dir() else None
    except OSError as error:
        raise _unreadable(name, error) from error
    if files is not None:
        for file in files:
            yield from _split(str(file), _of_folder(file), file)
        return
    if path.suffix in {".py", ".ipynb"}:
        script = path.suffix == ".py"
        raise InputError(
            f"{printable(name)} is a {'script; this verb reads TF_CONFIG' if script else 'notebook'}",
            hint="phalanx check reads scripts; give a JSON file, a folder of them, or `-` for standard input"
            if script
            else "export it as a script: jupyter nbconvert --to script",
        )
    yield from _split(name, _file(path), path)


def _folder(path: Path) -> list[Path]:
    """Its `.json` files, else every file; hidden files and the copies `fix --in-place` leaves are no nodes."""
    files = [
        file for file in path.iterdir() if file.is_file() and not file.name.startswith(".") and file.suffix != ".bak"
    ]
    nodes = [file for file in files if file.suffix == ".json"]
    scripts = sorted(file for file in files if file.suffix == ".py")
    if scripts and not nodes:
        raise InputError(
            f"{printable(str(path))} holds scripts, and a folder is read as TF_CONFIG files",
            hint=f"phalanx check reads a script that is named: phalanx check {printable(str(scripts[0]))}",
        )
    files = nodes or files
    if not files:
        raise InputError(
            f"{printable(str(path))} holds no file", hint="a folder has one TF_CONFIG per node, such as worker_0.json"
        )
    return sorted(files, key=_natural)


def _of_folder(file: Path) -> str:
    """Its text. What cannot be read there was hardly meant: says what a folder is read as."""
    try:
        return _file(file)
    except InputError as error:
        raise InputError(
            str(error),
            hint=error.hint or "a folder is read as TF_CONFIG files; `phalanx check` reads a script that is named",
        ) from error


def _natural(file: Path) -> list[int | str]:
    return [int(part) if odd % 2 else part for odd, part in enumerate(re.split(r"([0-9]+)", file.name))]


def _file(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LIMIT + 1)
    except OSError as error:
        raise _unreadable(str(path), error) from error
    return _decode(data, printable(str(path)))


def _stdin() -> str:
    try:
        data = sys.stdin.buffer.read(_LIMIT + 1)
    except OSError as error:
        raise InputError(f"cannot read standard input: {error.strerror}") from error
    return _decode(data, "standard input")


def _unreadable(name: str, error: OSError) -> InputError:
    text = name.lstrip()[:1] in {"{", "["}
    if text:
        return InputError(f"cannot read the INPUT: {error.strerror}; to hand over the text itself, pipe it into `-`")
    return InputError(f"cannot read {brief(name, _NAME)}: {error.strerror}")


def _decode(data: bytes, name: str) -> str:
    """UTF-8, a byte order mark kept for `check` to find. Raises InputError on anything that is no text."""
    if len(data) > _LIMIT:
        raise InputError(f"{name} is larger than {_LIMIT // 1024 // 1024} MiB: that is no TF_CONFIG")
    if data[:4] in {b"\xff\xfe\0\0", b"\0\0\xfe\xff"}:
        raise InputError(f"{name} is written in UTF-32", hint=f"convert it: iconv -f UTF-32 -t UTF-8 {name}")
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise InputError(f"{name} is written in UTF-16", hint=f"convert it: iconv -f UTF-16 -t UTF-8 {name}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text: byte {error.start + 1} is no UTF-8") from error
    if "\0" in text:
        raise InputError(f"{name} is not text: byte {data.index(0) + 1} is zero")
    return text


def _split(path: str, text: str, file: Path | None = None) -> Iterator[Source]:
    found = [_STREAM.fullmatch(line) for line in text.splitlines()]
    if not found or None in found:
        yield Source(path=path, text=text, file=file)
        return
    seen: set[str] = set()
    for number, match in enumerate(filter(None, found), start=1):
        task = match["task"]
        yield Source(path=f"{task} (line {number})" if task in seen else task, text=match["text"])
        seen.add(task)

"""A job file → Job, or every mistake of it at once. Reads; never executes anything."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic

from phalanx.errors import InputError
from phalanx.job.advise import refusals
from phalanx.job.complaint import JobFileError
from phalanx.job.flags import SUFFIXES
from phalanx.job.model import Job
from phalanx.job.nearest import nearest_file
from phalanx.job.tree import Tree, read_tree
from phalanx.job.wording import in_plain_words

#: A job file is a page; a larger one is another file.
_LARGEST = 256 * 1024

_WRITE_ONE = "`phalanx init train.py` writes a job.yaml to start from"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JobFile:
    """A job and the tree it was read from, so that later complaints have a place too."""

    job: Job
    tree: Tree


def load(path: Path, *, shown: str | None = None) -> JobFile:
    """Read job.yaml or job.json. `shown`: what messages call it, the path as the user wrote it.

    Raises InputError where it cannot be read at all (missing, a folder, binary, too large), JobFileError with every
    mistake otherwise.
    """
    shown = shown or str(path)
    return parse(_read(path, shown), shown)


def parse(text: str, shown: str) -> JobFile:
    """The same for a text. `shown` ends in .json for JSON."""
    tree = read_tree(text, shown)
    if tree.value is None:
        raise InputError(f"{shown} is empty", hint=f"`phalanx init train.py -o {shown}` writes one to start from")
    if not isinstance(tree.value, dict):
        what = "a list" if isinstance(tree.value, list) else "one word"
        raise JobFileError(
            [tree.complaint((), f"a job is a mapping such as `command: [python, train.py]`; this is {what}")]
        )
    complaints = list(tree.complaints)
    try:
        job = Job.model_validate(tree.value)
    except pydantic.ValidationError as wrong:
        errors = wrong.errors(include_url=False)
        complaints += [tree.complaint(*in_plain_words(error, tree.written)) for error in errors]
        complaints += [tree.complaint(*said) for said in refusals(_without(errors, tree.value), None)]
        raise JobFileError(complaints) from wrong
    if complaints:
        raise JobFileError(complaints)
    return JobFile(job=job, tree=tree)


def _without(errors: Sequence[Any], value: dict[str, Any]) -> Job:
    """The job that is left when every wrong value is taken out, so that the rest of the advice comes at once too."""
    rest = copy.deepcopy(value)
    for error in errors:
        loc = [part for part in error["loc"] if part != "[key]"]
        cut = next((number for number, part in enumerate(loc) if isinstance(part, int)), len(loc))
        *parents, last = loc[:cut]
        found = rest
        for part in parents:
            found = found.get(part, {})
        found.pop(last, None)
    rest.setdefault("command", ["true"])
    try:
        return Job.model_validate(rest)
    except pydantic.ValidationError:
        return Job(command=["true"])  # what is left is wrong for want of what was taken: nothing to say about it


def _read(path: Path, shown: str) -> str:
    try:
        if path.is_dir():
            raise InputError(f"{shown} is a folder, not a job file", hint=f"name the file in it: {shown}/job.yaml")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError as wrong:
        raise InputError(f"no such file: {shown}", hint=_near(path)) from wrong
    except OSError as wrong:
        raise InputError(f"{shown} cannot be read: {wrong.strerror}", hint=f"ls -l {shown} shows who may") from wrong
    if len(data) > _LARGEST:
        raise InputError(f"{shown} is larger than {_LARGEST // 1024} KiB: this is no job file", hint=_WRITE_ONE)
    if b"\0" in data:
        raise InputError(f"{shown} is no text: it contains zero bytes", hint=_WRITE_ONE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise InputError(f"{shown}:{line}: not UTF-8; save the file as UTF-8") from wrong


def _near(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix in SUFFIXES]
    except OSError:
        names = []
    found = nearest_file(path.name, names)
    return f"did you mean {path.with_name(found)}?" if found else _WRITE_ONE

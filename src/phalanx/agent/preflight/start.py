"""What Python begins with: a script, or a module that `python -m` finds. Looks at names of files; runs nothing."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """The file that runs as `__main__`."""

    file: Path
    #: Where modules of the program's own are looked for, in this order.
    folders: tuple[Path, ...]
    #: The package that it is a module of; empty: a script, or a module of its own.
    package: str = ""

    @property
    def inside(self) -> str:
        """Its path as seen from the folder that its package lies in: the same on every host."""
        return str(Path(*self.file.parts[-1 - self.depth :]))

    @property
    def depth(self) -> int:
        """How many packages it lies in."""
        return len(self.package.split(".")) if self.package else 0

    def own(self, module: str) -> list[tuple[Path, str, str]]:
        """The files of the program's own that an import of `module` reads: each with its path in its folder, and its
        dotted name. None where the module is not there.
        """
        parts = module.split(".")
        # A package without __init__.py is only one where no other of its name is installed: so it is told by the name.
        bare = parts[0] == self.package.partition(".")[0]
        for folder in self.folders:
            if found := _below(folder, parts, bare=bare):
                return [(path, str(path.relative_to(folder)), dotted) for path, dotted in found]
        return []


def start_of_script(script: Path) -> Start:
    """A script, as `python script.py` runs it."""
    return Start(file=script, folders=(script.resolve().parent,))


def start_of_module(name: str, *, cwd: Path, environ: Mapping[str, str]) -> Start | None:
    """A module of the user's, as `python -m name` finds it from `cwd`; None where it lies in neither this folder nor
    one of PYTHONPATH, as an installed one does.
    """
    said = [cwd / folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    folders = (*(() if environ.get("PYTHONSAFEPATH") else (cwd,)), *said)
    parts = name.split(".")
    if not all(map(str.isidentifier, parts)):
        return None
    for folder in folders:
        top = folder / parts[0]
        if (top / "__init__.py").is_file() or top.with_suffix(".py").is_file():
            return _begin(folder, parts, folders)
    found = (_begin(folder, parts, folders) for folder in folders)  # packages without __init__.py come last
    return next((start for start in found if start is not None), None)


def _begin(folder: Path, parts: Sequence[str], folders: tuple[Path, ...]) -> Start | None:
    at = folder.joinpath(*parts)
    single, whole = at.with_name(f"{parts[-1]}.py"), at / "__main__.py"
    if single.is_file() and not (at / "__init__.py").is_file():
        return Start(file=single, folders=folders, package=".".join(parts[:-1]))
    return Start(file=whole, folders=folders, package=".".join(parts)) if whole.is_file() else None


def _below(folder: Path, parts: Sequence[str], *, bare: bool) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    at = folder
    for number, part in enumerate(parts, 1):
        dotted = ".".join(parts[:number])
        if (at / part / "__init__.py").is_file():
            found.append((at / part / "__init__.py", dotted))
        elif (at / f"{part}.py").is_file():
            return [*found, (at / f"{part}.py", dotted)]
        elif not (bare and (at / part).is_dir()):
            break
        at = at / part
    return found

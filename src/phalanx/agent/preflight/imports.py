"""What a script imports, by its syntax tree and those of the modules beside it. Nothing is imported or run."""

from __future__ import annotations

import ast
import dataclasses
import errno
import functools
import hashlib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from phalanx.agent.preflight.start import Start, start_of_script

#: Files of the script's own folder that are followed: a repository is no script.
_FILES = 200
#: Bytes of a file that is parsed. A longer one is no training script, and takes seconds and a gigabyte.
LONGEST = 1 << 20

#: Names in the source after which an import may mean anything.
_MOVES = ("sys.path", "sys.meta_path", "addsitedir", "path_hooks")
_CATCH_ALL = ("ImportError", "ModuleNotFoundError", "SyntaxError", "Exception", "BaseException")


@dataclasses.dataclass(frozen=True, eq=False)
class Source:
    """A file as it was read."""

    path: Path
    data: bytes
    #: How the program imports it; empty for what it begins with.
    name: str = ""
    #: The package that its relative imports start from; empty: it has none.
    package: str = ""

    @functools.cached_property
    def tree(self) -> ast.Module | None:
        """As of `parsed`; None too for what is too long."""
        return parsed(self.data) if len(self.data) <= LONGEST else None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What was read: top-level names of modules that are not the script's own, each with the file that wants it."""

    #: Imported whenever the script runs.
    sure: dict[str, str]
    #: Imported in a function, under a condition, or after the search path was changed.
    maybe: dict[str, str]
    #: Whether a TensorBoard callback is made whenever the script runs; None: none is made at all.
    tensorboard: bool | None
    #: SHA-256 over the script and the modules of its own that were followed.
    digest: str
    #: The files of its own that are read whenever the script runs, itself first.
    files: tuple[Source, ...] = ()
    #: Those that it may read besides.
    perhaps: tuple[Source, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class _Import:
    module: str
    sure: bool
    #: Whether it can be of the program's own package only.
    relative: bool = False


def read_script(script: Path) -> Reading:
    """Follow the script and the modules beside it. Raises OSError where the script itself cannot be read."""
    return read(start_of_script(script))


def read(start: Start) -> Reading:
    """Follow what Python begins with, and the modules of its own. Raises OSError where that file cannot be read."""
    file = start.file
    if file.exists() and not (file.is_file() or file.is_dir()):
        raise OSError(errno.EINVAL, "it is no regular file")  # a pipe would wait for a writer, and be empty afterwards
    source = Source(file, file.read_bytes(), package=start.package)
    reading = _follow(source, start.inside, start)
    return dataclasses.replace(reading, files=(source, *reading.files))


def read_text(source: str) -> Reading:
    """The same for a program given as text (`python -c`); nothing lies beside it."""
    return _follow(Source(Path("-c"), source.encode()), "-c", Start(file=Path("-c"), folders=()))


def absolute(statement: ast.ImportFrom, package: str) -> str | None:
    """The module that a statement of a file in this package imports from; None where it is relative to nothing."""
    if not statement.level:
        return statement.module
    above = package.split(".") if package else []
    if statement.level > len(above):
        return None
    return ".".join([*above[: len(above) - statement.level + 1], *filter(None, [statement.module])])


def parsed(data: bytes) -> ast.Module | None:
    """None for what is no Python of ours: the interpreter that runs it is asked."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None  # SystemError is what Python 3.11 makes of a tree too deep for the stack that is left


def _follow(source: Source, name: str, start: Start) -> Reading:
    sure: dict[str, str] = {}
    maybe: dict[str, str] = {}
    tensorboard: bool | None = None
    digest = hashlib.sha256()
    waiting = [(name, source, True)]
    seen: dict[Path, bool] = {}
    sources: dict[Path, Source] = {}
    while waiting and len(seen) < _FILES:
        shown, file, certain = waiting.pop(0)
        digest.update(shown.encode() + b"\0" + hashlib.sha256(file.data).digest())
        tree = file.tree
        if tree is None:
            continue
        certain = certain and not any(word in file.data.decode(errors="replace") for word in _MOVES)
        try:
            wanted = list(_wanted(file, tree, sure=certain, main=file is source))
        except RecursionError:
            continue  # nested too deep for us: as what is not parsed
        for found in wanted:
            own = start.own(found.module)
            for path, inside, dotted in own:
                if path in seen:
                    seen[path] = seen[path] or found.sure
                elif (beside := _read(path, dotted)) is not None:
                    seen[path], sources[path] = found.sure, beside
                    waiting.append((inside, beside, found.sure))
            if not own and not found.relative:
                (sure if found.sure else maybe).setdefault(found.module.partition(".")[0], shown)
        made = _makes_tensorboard(tree)
        if made is not None:
            tensorboard = bool(tensorboard) or (made and certain)
    return Reading(
        sure=sure,
        maybe={name: where for name, where in maybe.items() if name not in sure},
        tensorboard=tensorboard,
        digest=digest.hexdigest()[:16],
        files=tuple(sources[path] for path, certain in seen.items() if certain),
        perhaps=tuple(sources[path] for path, certain in seen.items() if not certain),
    )


def _read(path: Path, name: str) -> Source | None:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    try:
        return Source(path, path.read_bytes(), name, package) if path.stat().st_size <= LONGEST else None
    except OSError:
        return None


def _wanted(file: Source, tree: ast.Module, *, sure: bool, main: bool) -> Iterator[_Import]:
    if main and file.package:  # Python runs the packages around a module before itself
        yield _Import(file.package, sure=True, relative=True)
    yield from _imports(tree.body, sure=sure, main=main, package=file.package)


def _imports(body: Iterable[ast.stmt], *, sure: bool, main: bool, package: str) -> Iterator[_Import]:  # noqa: C901, PLR0912 - a table of statements
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from (_Import(name.name, sure) for name in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield _Import(module, sure)
                yield from (_Import(f"{module}.{name.name}", sure) for name in names if name.name != "*")
            case ast.ImportFrom(names=names) if (base := absolute(statement, package)) is not None:
                yield _Import(base, sure, relative=True)
                own = (f"{base}.{name.name}" for name in names if name.name != "*")
                yield from (_Import(name, sure, relative=True) for name in own)
            case ast.If(test=test, body=inner, orelse=other):
                if _is_main(test):
                    yield from _imports(inner if main else other, sure=sure, main=main, package=package)
                elif not _is_typing(test):
                    yield from _imports([*inner, *other], sure=False, main=main, package=package)
            case ast.Try(body=inner, handlers=handlers, orelse=other, finalbody=last):
                # Whoever catches it knows what to do without the module.
                if not any(_catches(handler) for handler in handlers):
                    yield from _imports([*inner, *other], sure=sure, main=main, package=package)
                yield from _imports(last, sure=sure, main=main, package=package)
            case ast.With(items=items, body=inner):
                if not any("suppress" in ast.dump(item) for item in items):
                    yield from _imports(inner, sure=sure, main=main, package=package)
            case ast.ClassDef(body=inner):
                yield from _imports(inner, sure=sure, main=main, package=package)
            case ast.FunctionDef(body=inner) | ast.AsyncFunctionDef(body=inner):
                yield from _imports(inner, sure=False, main=main, package=package)
            case ast.For(body=inner, orelse=other) | ast.While(body=inner, orelse=other):
                yield from _imports([*inner, *other], sure=False, main=main, package=package)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and "__name__" in ast.dump(test) and "__main__" in ast.dump(test)


def _is_typing(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in ast.dump(test)


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None
        or (isinstance(kind, ast.Name) and kind.id in _CATCH_ALL)
        or (isinstance(kind, ast.Attribute) and kind.attr in _CATCH_ALL)
        for kind in kinds
    )


def _makes_tensorboard(tree: ast.Module) -> bool | None:
    """Whether a call of `TensorBoard(...)` is under no condition; None where there is no such call."""
    found: bool | None = None
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, sure = waiting.pop()
        if isinstance(node, ast.Call) and _last_name(node.func) == "TensorBoard":
            found = bool(found) or sure
        branches = isinstance(node, ast.IfExp) or (isinstance(node, ast.If) and not _is_main(node.test))
        waiting += [(child, sure and not branches) for child in ast.iter_child_nodes(node)]
    return found


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""

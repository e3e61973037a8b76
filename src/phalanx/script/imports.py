"""The imports a script begins with: what a standby may do before it knows which task it is."""

from __future__ import annotations

import ast
import codecs
import itertools
import os
import re
import warnings
from collections.abc import Container, Sequence
from pathlib import Path

from phalanx.agent.preflight.imports import parsed
from phalanx.agent.standby import interpreter_line


def imports_of(argv: Sequence[str], cwd: Path) -> tuple[str, ...]:
    """`leading_imports` of the program that a command line of Python runs; () for what is no such line.

    A module (`-m`), a folder and a zip are left alone: their packages run code of the user before the program begins.
    Never raises: a script that cannot be read is Python's to complain about.
    """
    line = interpreter_line(argv)
    if line is None or line.kind == "module":
        return ()
    if line.kind == "command":
        return leading_imports(line.target, cwd)
    script = cwd / line.target
    try:
        if not script.is_file():
            return ()
        source = script.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ()
    return leading_imports(source, Path(os.path.realpath(script)).parent)


def leading_imports(source: str, folder: Path) -> tuple[str, ...]:
    """The import statements at the very beginning of `source`, each with all text before it; together its first bytes.

    A docstring and `from __future__` may come among them. The first statement of another kind ends them (what it does
    may decide what the next import means), and so does the first import of a module that lies in `folder`, where the
    script will look first. () where there are none, or `source` is no Python. Pure but for the listing of `folder`.
    """
    try:
        text = source.encode()
        own = {name.partition(".")[0] for name in os.listdir(folder)}  # noqa: PTH208 - names only
    except (ValueError, OSError):
        return ()
    tree = parsed(text)
    body = tree.body if tree is not None else []
    first = 1 if body and _is_docstring(body[0]) else 0
    head = list(itertools.takewhile(lambda statement: _is_installed(statement, own), body[first:]))
    ends = [_end(text, statement) for statement in head]
    if not ends or not _is_quiet(text[: ends[-1]], [*body[:first], *head]):
        return ()
    return tuple(text[start:end].decode() for start, end in itertools.pairwise([0, *ends]))


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _is_installed(statement: ast.stmt, own: Container[str]) -> bool:
    """Whether it imports, and nothing from the script's own folder. Python says later whether it is there at all."""
    match statement:
        case ast.Import(names=names):
            modules = [name.name for name in names]
        case ast.ImportFrom(module=str(module), level=0):
            modules = [module]
        case _:
            return False
    return not any(module.partition(".")[0] in own for module in modules)


def _end(text: bytes, statement: ast.stmt) -> int:
    """The offset of its end. Columns count bytes; a byte order mark is not counted."""
    assert statement.end_lineno is not None  # noqa: S101 - the parser fills both in
    assert statement.end_col_offset is not None  # noqa: S101 - as above
    starts = [len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0]
    starts += [newline.end() for newline in re.finditer(rb"\r\n|\r|\n", text)]
    return starts[statement.end_lineno - 1] + statement.end_col_offset


def _is_quiet(head: bytes, statements: list[ast.stmt]) -> bool:
    """Whether `head` is these statements and compiles without a warning, which Python would print twice."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compile(head, "head", "exec", dont_inherit=True)
            again = ast.parse(head).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return list(map(ast.dump, again)) == list(map(ast.dump, statements))

"""What a reviewer would otherwise have to look for in every file."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PYTHON = sorted(
    path
    for top in ("src", "tests", "bench", "docs", "examples")
    for path in (ROOT / top).rglob("*.py")
    if "_build" not in path.parts
)
#: Longest a module may get before its second noun is looked for.
LONGEST = 400


def kept_files() -> list[Path]:
    """Every file that is, or is about to be, in the repository."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def lines_with(pattern: str, files: list[Path]) -> list[str]:
    found = []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
            for number, line in enumerate(text.splitlines(), 1)
            if re.search(pattern, line)
        ]
    return found


def test_no_file_names_a_path_of_somebodys_machine():
    # Written in pieces, so that this file passes its own test. /home/me is nobody's.
    machine = r"(?<![\w./-])/(ro" r"ot/|Us" r"ers/[a-z]|ho" r"me/(?!me\b)[a-z]|wo" r"rk/(main|shared|\.)|mnt/us" r"er)"
    assert lines_with(machine, kept_files()) == []


def test_locked_requirements_name_no_index_and_carry_hashes():
    for lock in sorted((ROOT / "requirements").glob("*.txt")):
        text = lock.read_text(encoding="utf-8")
        assert not re.search(r"https?:|--(extra-)?index-url|--find-links|--trusted-host", text), lock
        pins = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert pins
        assert [pin.split()[0] for pin in pins if "--hash=sha256:" not in pin] == []


def test_no_file_names_a_package_index():
    assert not lines_with(
        r"(py" r"pi\.org|pythonhos" r"ted\.org|/sim" r"ple/?\"|index-u" r"rl *[=:] *http|npm" r"js\.(org|com))",
        kept_files(),
    )


def test_each_exception_from_a_rule_has_its_reason_beside_it():
    bare_noqa = r"#\s*no" r"qa(?!: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*\s+[#-]\s*[\w`])"
    bare_ignore = r"#\s*type:\s*ign" r"ore(?!\[[a-z-]+(, ?[a-z-]+)*\]\s+[#-]\s*[\w`])"
    assert lines_with(bare_noqa, PYTHON) == []
    assert lines_with(bare_ignore, PYTHON) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_one_noun(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert ast.get_docstring(ast.parse(text)), "a module says what it is for"


def test_each_folder_of_sources_is_a_package_that_says_what_belongs_in_it():
    folders = {path.parent for path in SOURCES}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []

"""What a script begins with, if it is imports of installed packages: so that doing them early changes nothing."""

# ruff: noqa: E501 - a program a line reads better than one that is cut

from __future__ import annotations

import ast
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.script.imports import imports_of, leading_imports


def head(source: str, folder: Path) -> list[str]:
    """The statements found, without what lies between them."""
    return [piece.strip().rpartition("\n")[2] for piece in leading_imports(source, folder)]


def test_the_leading_run_of_imports_is_found_in_order(tmp_path: Path) -> None:
    source = '"""Trains."""\n\n# comment\nfrom __future__ import annotations\nimport os, sys\nfrom a.b import c as d, e\nimport tensorflow as tf\nx = 1\nimport late\n'
    pieces = leading_imports(source, tmp_path)
    assert [piece.strip().rpartition("\n")[2] for piece in pieces] == [
        "from __future__ import annotations",
        "import os, sys",
        "from a.b import c as d, e",
        "import tensorflow as tf",
    ]
    assert source.startswith("".join(pieces))


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        ('os.environ["TF_USE_LEGACY_KERAS"] = "1"', "it decides what the next import means"),
        ("try:\n    import tensorflow\nexcept ImportError:\n    pass", "the script catches the failure"),
        ("if True:\n    import tensorflow", "the script decides"),
        ("with x:\n    import tensorflow", "the same"),
        ("'a string that is no docstring'", "not an import"),
        ("def f():\n    import tensorflow", "not run yet"),
        ("@decorator\nclass C: pass", "runs code"),
        ("from . import sibling", "its own package"),
        ("from .. import sibling", "its own package"),
        ("import json, own", "one of them is its own"),
        ("import own.part", "its own"),
        ("from own import x", "its own"),
        ("import mapped", "a folder of that name may be a package"),
        ("import built", "a compiled module"),
    ],
)
def test_the_head_ends_before(stop: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").touch()
    (tmp_path / "mapped").mkdir()
    (tmp_path / "built.cpython-311-x86_64-linux-gnu.so").touch()
    assert head(f"import os\n{stop}\nimport json\n", tmp_path) == ["import os"], why


@pytest.mark.parametrize(
    "source", ["", '"""Only words."""\n', "x = 1\nimport os\n", "import os\nx = = 1\n", "import os\n\0", "\udcff"]
)
def test_a_program_without_a_head_has_none(source: str, tmp_path: Path) -> None:
    assert leading_imports(source, tmp_path) == ()


def test_a_head_that_python_warns_of_is_left_alone_since_it_would_warn_twice(tmp_path: Path) -> None:
    assert leading_imports('"""A pattern \\d."""\nimport os\n', tmp_path) == ()
    assert head('"""A pattern."""\nimport os\ny = "\\d"\n', tmp_path) == ["import os"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_any_newline_and_a_byte_order_mark_are_counted_as_the_file_has_them(
    newline: str, mark: str, tmp_path: Path
) -> None:
    source = mark + '"""É."""\nimport os; import sys; x = 1\nimport json\n'.replace("\n", newline)
    pieces = leading_imports(source, tmp_path)
    assert "".join(pieces) == source[: source.index("; x")]
    assert pieces[1] == "; import sys"


def test_a_folder_that_cannot_be_listed_gives_no_head(tmp_path: Path) -> None:
    assert leading_imports("import os\n", tmp_path / "nowhere") == ()


STATEMENTS = st.sampled_from(
    ["import os", "import a.b as c", "from x import (\n    y,\n    z,\n)", "from q import *", "import é", "x = 1", "if x: import y", "'word'", "import own"]
)  # fmt: skip


@given(
    statements=st.lists(STATEMENTS, max_size=6),
    between=st.sampled_from(["\n", "\r\n", "\n\n# é\n", "; ", "\n\x0c"]),
    docstring=st.sampled_from(["", '"""é"""\n']),
)
def test_a_head_is_the_beginning_of_its_source_and_holds_imports_only(
    statements, between, docstring, tmp_path_factory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "with-own"
    folder.mkdir(exist_ok=True)
    (folder / "own.py").touch()
    source = docstring + between.join(statements)
    found = "".join(leading_imports(source, folder))
    body = ast.parse(found).body
    assert source.startswith(found)
    words = ast.get_docstring(ast.parse(found), clean=False) is not None
    assert all(isinstance(statement, ast.Import | ast.ImportFrom) for statement in body[words:])
    assert "own" not in found


def test_the_head_of_a_command_line_is_that_of_its_program(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.py").write_text("import os\nimport helper\n")
    (tmp_path / "jobs" / "helper.py").touch()
    (tmp_path / "os.py").touch()
    (tmp_path / "link.py").symlink_to("jobs/train.py")
    assert imports_of(["python", "-u", "jobs/train.py", "--epochs", "3"], tmp_path) == ("import os",)
    assert imports_of(["python", "link.py"], tmp_path) == ("import os",)
    assert imports_of(["python", "-c", "import sys; import os"], tmp_path) == ("import sys",)
    assert imports_of(["python", "-c", "import sys"], tmp_path / "nowhere") == ()


def test_what_is_no_script_that_can_be_read_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text("import os\n")
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nimport os  # é\n".encode("latin-1"))
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", "import os\n")
    for line in (
        "python -m train",
        "python folder",
        "python app.zip",
        "python none.py",
        "python latin.py",
        "./train.py",
        "python -S train.py",
    ):
        assert imports_of(line.split(), tmp_path) == (), line


def test_the_demo_begins_with_tensorflow_and_keras() -> None:
    digits = Path(__file__).parents[2] / "examples" / "custom_loop"
    found = "".join(imports_of([sys.executable, "train.py"], digits))
    assert "import tensorflow" in found
    assert "import keras" in found

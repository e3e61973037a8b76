"""The reader as a whole: what it shows, what silences it, and that it never fails nor cries wolf."""

from __future__ import annotations

import ast
import dataclasses
import os
import random
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phalanx.script.check import Around, check, judged, surroundings, without
from phalanx.script.program import Roles
from phalanx.script.walk import walk
from phalanx.tfconfig import formats
from phalanx.tfconfig.finding import Severity
from script.scripts import KERAS_3, MODEL, MWMS, TF, found, module, told

ROOT = Path(__file__).parents[2]
PACKAGES = sysconfig.get_path("purelib")
TWO = Roles(worker=2)

FULL_OF_FAULTS = """\
import json, os
import tensorflow as tf
from tensorflow import keras

def data():
    return tf.data.TFRecordDataset("größe.tfrecord").batch(10)

ds = data()
strategy = tf.distribute.MultiWorkerMirroredStrategy()
chief = strategy.cluster_resolver.task_type == "chief"
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(lr=0.1), loss="mse")
model.fit(ds, epochs=2, callbacks=[keras.callbacks.BackupAndRestore("backup")])
model.save("model")  # phalanx: ignore[shared-save-path]
if os.environ.get("OLD"):
    tf.Session()
"""


def test_findings_are_shown_as_those_on_a_tf_config(golden):
    findings = found(FULL_OF_FAULTS, roles=TWO)
    golden("script/check.txt", formats.as_text(findings, {"train.py": FULL_OF_FAULTS}))


def test_findings_as_json_have_line_consequence_fix_and_source(golden):
    golden("script/check.json", formats.as_json(found(FULL_OF_FAULTS, roles=TWO)))


@pytest.mark.parametrize(
    "line",
    [
        "model.save('m.keras')  # phalanx: ignore[shared-save-path]",
        "model.save(  # why: phalanx: ignore[ shared-save-path , keras3-lr ]\n    'm.keras')",
        "model.save(\n    'm.keras')  # phalanx: ignore[shared-save-path]",
    ],
)
def test_a_comment_on_its_lines_silences_a_rule(line):
    assert told(MWMS + MODEL + "model.save('m.keras')\n") == [("shared-save-path", 6, "warning")]
    assert told(MWMS + MODEL + line + "\n") == []


@pytest.mark.parametrize(
    "comment", ["phalanx: ignore[keras3-lr]", "ignore[shared-save-path]", "phalanx: ignore", "noqa"]
)
def test_a_comment_that_names_another_rule_silences_nothing(comment):
    assert ("shared-save-path", 6, "warning") in told(MWMS + MODEL + f"model.save('m.keras')  # {comment}\n")


def test_a_comment_in_a_text_is_no_comment():
    assert told(MWMS + MODEL + "model.save('# phalanx: ignore[shared-save-path]')\n") != []


def test_rules_may_be_left_out():
    findings = found(FULL_OF_FAULTS)
    kept = without(findings, {"keras3-optimizer-lr"})
    assert {one.id for one in findings} - {one.id for one in kept} == {"keras3-optimizer-lr"}


def test_columns_are_characters():
    [finding] = found(TF + "s = 'ü'; tf.Session()\n")
    assert (finding.place.line, finding.place.column, finding.place.length) == (3, 10, len("tf.Session"))


@pytest.mark.parametrize(
    "data", [b"def f(:", b"\0", b"\xff\xfe", b"# coding: nonsense\n", b"(" * 5000, b"x" * (1 << 20)]
)
def test_what_is_no_python_is_left_to_the_interpreter(tmp_path, data):
    script = tmp_path / "train.py"
    script.write_bytes(data)
    assert check(script, Around()) == ()


def test_a_script_is_read_with_the_modules_beside_it(tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "__init__.py").touch()
    (tmp_path / "net" / "data.py").write_text("import tensorflow as tf\nX = tf.zeros([1])\n")
    (tmp_path / "train.py").write_text("from net import data\n" + MWMS)
    [finding] = check(tmp_path / "train.py", Around(interpreter=KERAS_3), shown="here/train.py")
    assert (finding.id, finding.path) == ("context-before-strategy", "here/net/data.py")


def test_a_script_is_never_run(tmp_path):
    (tmp_path / "train.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\nraise SystemExit\n")
    check(tmp_path / "train.py", Around(interpreter=KERAS_3))
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_the_installed_packages_say_which_names_there_are():
    text = (
        TF + "tf.keras.layers.experimental\ntf.keras.layers.Dense\ntf.data.Options\ntf.data.Nothing\ntf.no_such_name\n"
    )
    assert told(text, folders=(PACKAGES,)) == [
        ("keras3-name-gone", 3, "error"),
        ("tensorflow-name-gone", 6, "error"),
        ("tensorflow-name-gone", 7, "error"),
    ]


def test_a_callback_whose_package_is_missing_is_told(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    text = TF + "c = tf.keras.callbacks.TensorBoard('logs')\n"
    assert told(text, folders=(str(tmp_path),)) == [("callback-package", 3, "error")]
    (tmp_path / "tensorboard").mkdir()
    assert told(text, folders=(str(tmp_path),)) == []
    (tmp_path / "tensorboard").rmdir()
    (tmp_path / "__editable___mine_finder.py").touch()  # it may be anywhere
    assert told(text, folders=(str(tmp_path),)) == []


def test_a_module_that_is_missing_is_told(tmp_path):
    """R52."""
    (tmp_path / "tensorflow").mkdir()
    text = (
        TF
        + "import json, absent.thing\nfrom beside import x\ntry:\n    import perhaps\nexcept ImportError:\n    pass\n"
    )
    found_here = told(text, folders=(str(tmp_path),), beside={"beside": "import other\nx = 1\n"})
    assert found_here == [("module-missing", 3, "error"), ("module-missing", 1, "error")]
    (tmp_path / "absent").mkdir()
    (tmp_path / "other.py").touch()
    assert told(text, folders=(str(tmp_path),), beside={"beside": "import other\nx = 1\n"}) == []
    assert told(TF + "import sys\nsys.path.append('lib')\nimport mine\n", folders=(str(tmp_path),)) == []


def test_a_package_that_the_script_is_in_is_no_missing_module(tmp_path):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "site" / "tensorflow").mkdir(parents=True)
    script = tmp_path / "trainer" / "task.py"
    script.write_text(TF + "from trainer.model import build\n")
    [finding] = check(script, Around(interpreter=KERAS_3, folders=(str(tmp_path / "site"),)))
    assert (finding.id, finding.severity) == ("module-missing", Severity.WARNING)
    assert "python -m trainer.task" in finding.fix


def test_what_is_no_python_of_the_interpreters_version_is_told_with_its_line(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import os\nif os:\nprint()\n")
    ours = dataclasses.replace(KERAS_3, version=".".join(map(str, sys.version_info[:3])))
    [finding] = check(script, Around(interpreter=ours), shown="train.py")
    assert (finding.id, finding.path, finding.place.line) == ("script-syntax", "train.py", 3)
    assert check(script, Around(interpreter=dataclasses.replace(KERAS_3, version="3.99.1"))) == ()
    assert check(script, Around()) == ()


DEEP = {
    "elif": "import sys\nif sys.argv == 0:\n    x = 0\n"
    + "".join(f"elif sys.argv == {n}:\n    x = {n}\n" for n in range(1, 1200)),
    "chain": TF + "ds = tf.data.Dataset.range(1)" + ".map(str)" * 600 + "\n",
    "sum": "x = " + " + ".join(["1"] * 900) + "\n",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_script_that_is_nested_too_deep_is_said_to_be_unread_and_no_more(tmp_path, text):
    (tmp_path / "train.py").write_text(text)
    ours = dataclasses.replace(KERAS_3, version=".".join(map(str, sys.version_info[:3])))
    findings = check(tmp_path / "train.py", Around(interpreter=ours), shown="train.py")
    assert {(one.id, one.severity) for one in findings} <= {("script-unread", Severity.INFO)}
    assert all("it is nested too deep" in one.message for one in findings)
    assert findings or text is DEEP["sum"]  # some walks are short enough


def test_a_script_of_megabytes_is_said_to_be_unread(tmp_path):
    (tmp_path / "train.py").write_text("x = [1, 2, 3]\n" * 120_000)
    [finding] = check(tmp_path / "train.py", Around(), shown="train.py")
    assert (finding.id, finding.severity) == ("script-unread", Severity.INFO)
    assert "was not read: it is 1.7 MB long" in finding.message


def test_a_pipe_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "train.py")
    with pytest.raises(OSError, match="no regular file"):
        check(tmp_path / "train.py", Around())


def _scripts_of_the_tests():
    """Programs that the tests and benches write, as far as they train with TensorFlow."""
    for file in sorted([*ROOT.glob("tests/*/*.py"), *ROOT.glob("bench/*.py")]):
        if file.parent.name == "script" or file.name == "test_check_script.py":
            continue  # faulty on purpose
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import tensorflow" in node.value:
                yield file.name, node.value


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*/*.py")), ids=lambda path: "/".join(path.parts[-2:]))
def test_the_examples_give_nothing_to_say(example):
    sizes = [Roles(worker=1), Roles(worker=3), Roles(chief=1, worker=2)]
    if "ParameterServerStrategy" in example.read_text():
        sizes = [Roles(chief=1, worker=2, ps=1), Roles(chief=1, worker=1, ps=2)]
    for roles in (None, *sizes):
        around = Around(interpreter=KERAS_3, folders=(PACKAGES,), roles=roles, mends=True)
        assert check(example, around) == (), roles


def test_no_program_of_the_tests_that_trains_is_called_broken():
    programs = list(_scripts_of_the_tests())
    # One of them is a chief's, whose workers and ps are given `command: server`.
    around = Around(interpreter=KERAS_3, folders=(PACKAGES,), roles=dataclasses.replace(TWO, serves=False))
    modules = [(name, module(text, name)) for name, text in programs]
    assert len([read for _, read in modules if read is not None]) >= 5
    broken = [
        (name, finding.id)
        for name, read in modules
        if read is not None
        for finding in judged(read, (), around)
        if finding.severity is Severity.ERROR
    ]
    assert broken == []


def _library():
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")) + sorted(Path(PACKAGES, "keras/src").rglob("*.py"))


@pytest.mark.parametrize("seed", range(3))
def test_the_reader_never_fails_and_finds_nothing_in_libraries(seed):
    around = Around(interpreter=KERAS_3, folders=(PACKAGES,))
    for file in random.Random(seed).sample(_library(), 15):  # noqa: S311 - a sample
        read = module(file.read_bytes(), file.name)
        told_of = () if read is None else without(judged(read, (), around), {"module-missing"})  # others' backends
        assert told_of == (), file


@pytest.mark.soak
def test_the_reader_never_fails_on_files_of_the_installed_packages():
    around = Around(interpreter=KERAS_3, folders=(PACKAGES,))
    for file in sorted(Path(PACKAGES).rglob("*.py"))[::20]:
        read = module(file.read_bytes(), file.name)
        assert read is None or isinstance(judged(read, (), around), tuple)


#: Pieces that touch what the rules look at, put together in any way that parses.
_PIECES = [
    *("tf.constant(1)", "s = tf.distribute.MultiWorkerMirroredStrategy()", "model.fit(*a, **k)", "model = model.fit()"),
    *("os.environ['TF_CONFIG'] = x", "del os.environ['TF_CONFIG']", "x = json.dumps({**x, 'a': x})", "x = x"),
    *("def f(a=tf.constant(1)): return f(a)", "f()", "class C(C): pass", "C().x()", "x += 1", "global x", "return"),
    *("import tensorflow as tf", "import os, json", "from . import y", "from .. import *", "x = f'{x}{x!r:>{x}}'"),
    *("c = tf.train.CheckpointManager(*x)", "os.environ.update({**x})", "tf = tf.keras = tf", "x: int", "lambda: x"),
    *("while True: break", "for x in x: x()", "with x as (y, *z): pass", "try: x\nexcept* E: pass", "raise"),
    *("tf.keras.optimizers.Adam(lr=1).lr = 2", "os.environ.pop()", "match x:\n  case _: f()"),
    "tf.data.TFRecordDataset().batch()",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=12), st.sampled_from(["", "def f():\n", "if x:\n", "class C:\n"]))
def test_the_reader_never_fails_on_pieces_in_any_order(pieces, head):
    indent = "  " if head else ""
    body = "".join(f"{indent}{line}\n" for piece in pieces for line in piece.split("\n")) or f"{indent}pass\n"
    read = module("import tensorflow as tf, os, json\n" + head + body)
    if read is not None:
        judged(read, (), Around(interpreter=KERAS_3, roles=TWO, arguments=("--x",)))


def test_a_script_that_calls_itself_ends():
    text = "".join(f"def f{n}():\n    f{(n + 1) % 60}()\n    f{(n + 7) % 60}()\n" for n in range(60)) + "f0()\n"
    read = module(text)
    assert read is not None
    assert len(walk(read, ()).steps) <= 5000


def test_a_script_of_thousands_of_lines_is_read_in_seconds():
    """Each function hands others on, and each name may lead to one: all are looked at once, not once for each."""
    functions = "".join(
        f"def use_{n}(x_{n}):\n    y_{n} = x_{n}.a_{n}(b_{n}, c_{n}=d_{n})\n    return map(use_{n + 1}, y_{n}.e_{n})\n"
        for n in range(1000)
    )
    began = time.process_time()
    made = "def made():\n    return tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel = made()\n"
    assert [finding.id for finding in found(MWMS + functions + made + "model.fit(use_0(1))\n")] == [
        "model-outside-scope"
    ]
    assert time.process_time() - began < 20


def test_values_that_name_each_other_over_and_over_have_an_end():
    chain = "".join(f"x{n} = [x{(n + 1) % 40}, x{(n + 1) % 40}]\n" for n in range(40))
    assert told(MWMS + chain + "os.environ['TF_CONFIG'] = json.dumps([x0, x0])\nopen(x0)\n") == [
        ("tf-config-too-late", 44, "warning")
    ]


def test_what_surrounds_a_script_without_an_interpreter_is_nothing(tmp_path):
    around = surroundings(None, environ={}, cwd=tmp_path, arguments=["--x"])
    assert (around.interpreter, around.folders, around.arguments) == (None, (), ("--x",))

"""What the task's own interpreter says of itself: real ones, and folders that look installed."""

from __future__ import annotations

import importlib.util
import json
import marshal
import stat
import sys
import zipfile

import pytest

from phalanx.agent.preflight import versions
from phalanx.agent.preflight.asked import Answer

pytestmark = pytest.mark.real


def look(asked, **more):
    answer = Answer()
    versions.check(asked(**more), answer)
    return answer


def faults(answer):
    return {fault.check: fault.words for fault in answer.faults}


def facts(answer):
    return {fact.name: fact.value for fact in answer.facts}


def installed(folder, *names):
    """Distributions and packages as pip leaves them, for PYTHONPATH."""
    site = folder / "site"
    for name in names:
        (site / f"{name}.dist-info").mkdir(parents=True)
        package = site / name.partition("-")[0]
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    return {"PYTHONPATH": str(site)}


@pytest.fixture
def script(tmp_path):
    def write(text):
        (tmp_path / "train.py").write_text(text)

    return write


def test_a_healthy_script_has_facts_and_no_faults(asked, script):
    script("import json, os\n")
    answer = look(asked)
    assert faults(answer) == {}
    assert facts(answer)["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert {"program-found", "same-script", "modules-found"} <= set(answer.looked)


def test_a_module_that_the_interpreter_does_not_find_is_named_with_the_file(asked, script):
    """R52."""
    script("import no_such_module_here\n")
    assert faults(look(asked))["modules-found"].startswith("train.py imports no_such_module_here, which ")
    script("def later():\n    import no_such_module_here\n")
    assert set(faults(look(asked))) == {"modules-maybe"}


def test_a_module_beside_the_script_is_found_whatever_the_working_folder(asked, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper").mkdir()  # a folder without __init__: Python takes it all the same
    (tmp_path / "sub" / "train.py").write_text("import helper\n")
    assert faults(look(asked, argv=(sys.executable, "sub/train.py"))) == {}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("/no/such/python", "train.py"), "no program /no/such/python"),
        ((sys.executable, "no-such.py"), "cannot be read"),
        (("no-such-program",), "no program no-such-program"),
    ],
)
def test_what_cannot_be_started_is_said(asked, script, argv, words):
    """R52: a host without the environment."""
    script("")
    assert words in faults(look(asked, argv=argv))["program-found"]


def test_an_interpreter_that_is_none_is_said(asked, script, tmp_path):
    script("")
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    assert "out of order" in faults(look(asked, argv=(str(fake), "train.py")))["program-found"]


def test_what_the_users_own_sitecustomize_prints_is_no_answer_and_no_fault(asked, script, tmp_path):
    script("import json\n")
    (tmp_path / "site").mkdir()
    noisy = "import atexit\nprint('hello')\natexit.register(print, 'bye')\n"
    (tmp_path / "site" / "sitecustomize.py").write_text(noisy)
    answer = look(asked, environ={"PYTHONPATH": str(tmp_path / "site")})
    assert faults(answer) == {}
    assert facts(answer)["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"


BROKEN = "import os\n\ndef main(:\n    pass\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (BROKEN, "train.py:3:10: invalid syntax, says "),
        ("if True:\nx = 1\n", "train.py:2:1: expected an indented block"),
        ("total = (1,\n", "train.py:1:9: '(' was never closed"),
        ("return 3\n", "train.py:1:1: 'return' outside function"),
        ("x = 1\0\n", "null bytes"),
        (b"x = '\xff'\n", "utf-8"),
    ],
)
def test_a_script_that_is_no_python_is_told_with_the_line_and_its_text(asked, tmp_path, source, words):
    (tmp_path / "train.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    answer = look(asked)
    assert words in faults(answer)["script-parses"]
    assert "script-parses" in answer.looked
    if source is BROKEN:
        assert faults(answer)["script-parses"].endswith("): def main(:")
        assert f"(Python {sys.version_info[0]}.{sys.version_info[1]}." in faults(answer)["script-parses"]


def test_the_modules_beside_the_script_are_compiled_where_they_are_sure_to_be_imported(asked, script, tmp_path):
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text(BROKEN)
    script("from net import model\n")
    assert faults(look(asked))["script-parses"].startswith("net/model.py:3:10: ")
    for guarded in (
        "def later():\n    from net import model\n",
        "import sys\nif sys.version_info > (4,):\n    from net import model\n",
        "try:\n    from net import model\nexcept SyntaxError:\n    model = None\n",
    ):
        script(guarded)
        assert faults(look(asked)) == {}, guarded


def test_a_program_given_as_text_is_compiled_too(asked):
    assert faults(look(asked, argv=(sys.executable, "-c", BROKEN)))["script-parses"].startswith("-c:3:10: ")


@pytest.mark.parametrize("warn", ["", "error"])
def test_compiling_says_nothing_and_leaves_nothing_behind(asked, script, tmp_path, warn):
    """A SyntaxWarning is no error, whatever PYTHONWARNINGS would make of it; and nothing is run or cached."""
    (tmp_path / "model.py").write_text("print('imported')\nopen('ran', 'w')\n")
    script("import model\nword = 'a\\d'\nassert (word is 'a', 'b')\n")
    assert faults(look(asked, environ={"PYTHONWARNINGS": warn})) == {}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.py", "train.py"]


def test_archives_and_compiled_files_are_no_source(asked, tmp_path):
    with zipfile.ZipFile(tmp_path / "train.pyz", "w") as archive:
        archive.writestr("__main__.py", "print('ran')\n")
    (tmp_path / "train").write_bytes(
        importlib.util.MAGIC_NUMBER + b"\0" * 12 + marshal.dumps(compile("1", "x", "exec"))
    )
    for name in ("train.pyz", "train"):
        assert faults(look(asked, argv=(sys.executable, name))) == {}


ANSWER = {"python": "3.8.1", "versions": {}, "packages": "0, x", "missing": [], "tensorflow": ""}


@pytest.mark.parametrize("broken", [[], [["train.py", 2, 5, "invalid syntax", "match x:"]]])
def test_the_tasks_own_interpreter_is_the_judge_and_not_the_agents(asked, script, tmp_path, broken):
    """What is Python to one version is none to another."""
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps(ANSWER | {'broken': broken})}'\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    script("x = 1\n" if broken else "no Python: of ours\n")
    told = faults(look(asked, argv=(str(fake), "train.py")))
    words = {"script-parses": f"train.py:2:5: invalid syntax, says {fake} (Python 3.8.1): match x:"}
    assert told == (words if broken else {})


def test_a_command_that_is_no_python_needs_only_its_program(asked):
    assert look(asked, argv=("sleep", "1")).looked == ["program-found"]
    assert faults(look(asked, argv=("sleep", "1"))) == {}


def test_versions_are_read_from_metadata(asked, script, tmp_path):
    """R63, R91."""
    script("")
    environ = installed(tmp_path, "tensorflow-2.16.1", "keras-3.4.0")
    told = facts(look(asked, environ=environ))
    assert told["tensorflow"] == "2.16.1"
    assert told["keras"].startswith("keras 3.4.0, ")


def test_a_tensorboard_callback_without_tensorboard_is_fatal(asked, script, tmp_path):
    """TensorFlow 2.21 no longer brings it: fit dies at the end of its first epoch."""
    script("from keras.callbacks import TensorBoard\ncallbacks = [TensorBoard('logs')]\n")
    base = {"PYTHONHOME": "", **installed(tmp_path, "keras-3.4.0")}
    argv = (getattr(sys, "_base_executable", sys.executable), "-s", "train.py")
    assert (
        "no tensorboard"
        in faults(look(asked, argv=argv, environ=base | {"PYTHONHOME": sys.base_prefix}))["tensorboard-found"]
    )
    more = installed(tmp_path, "tensorboard-2.20.0")
    assert "tensorboard-found" not in faults(look(asked, environ=more))


def test_a_cudnn_older_than_the_one_it_was_built_with_is_named_with_its_place(asked, script, tmp_path):
    """R90."""
    script("")
    environ = installed(tmp_path, "tensorflow-2.18.0", "nvidia_cudnn_cu12-9.3.0.75")
    build = tmp_path / "site" / "tensorflow" / "python" / "platform"
    build.mkdir(parents=True)
    (build / "build_info.py").write_text('build_info = {"cudnn_version": "9.3", "cuda_version": "12.5.1"}\n')
    assert "cudnn-skew" not in faults(look(asked, environ=environ))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudnn.so.9.1.0").touch()
    words = faults(look(asked, environ=environ | {"LD_LIBRARY_PATH": str(tmp_path / "lib")}))["cudnn-skew"]
    assert "built with cuDNN 9.3" in words
    assert f"9.1.0 from {tmp_path / 'lib'}" in words


def test_a_module_is_looked_at_with_its_package_as_python_would_start_it(asked, tmp_path):
    (tmp_path / "pkg" / "data").mkdir(parents=True)
    (tmp_path / "pkg" / "train.py").write_text("from . import common, data\nimport pkg.data\nimport beside\n")
    (tmp_path / "pkg" / "common.py").write_text("import no_such_module\n")
    (tmp_path / "beside.py").touch()
    answer = look(asked, argv=(sys.executable, "-m", "pkg.train"))
    assert list(faults(answer)) == ["modules-found"]
    assert "pkg/common.py imports no_such_module" in faults(answer)["modules-found"]
    assert {"same-script", "script-parses"} <= set(answer.looked)


def test_an_installed_module_is_left_to_python(asked):
    answer = look(asked, argv=(sys.executable, "-m", "json.tool"))
    assert (faults(answer), "same-script" in answer.looked) == ({}, False)

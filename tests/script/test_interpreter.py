"""Which Python runs the script: read from the disk, the first that has TensorFlow."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from environments import environment
from phalanx.errors import InputError
from phalanx.script import probe
from phalanx.script.interpreter import choose, nearby


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_active_environment_is_read_without_being_started(tmp_path):
    active = environment(tmp_path / "v", has=("tensorflow_cpu-2.21.0", "keras-3.15.1", "numpy-2.4.6"))
    found = choose(None, environ={"VIRTUAL_ENV": str(active), "PATH": ""}, cwd=tmp_path)
    assert (found.path, found.version) == (str(active / "bin" / "python"), "3.11.7")
    assert (found.tensorflow, found.keras, found.chosen_by) == ("2.21.0", "3.15.1", "$VIRTUAL_ENV")


def test_uvs_environments_are_read_too(tmp_path):
    active = environment(tmp_path / "v", has=("tensorflow-2.21.0",))
    (active / "pyvenv.cfg").write_text("home = /x\nimplementation = CPython\nuv = 0.13.9\nversion_info = 3.11.7\n")
    assert choose(None, environ={"VIRTUAL_ENV": str(active)}, cwd=tmp_path).tensorflow == "2.21.0"


@pytest.mark.parametrize(
    ("distribution", "version"),
    [
        ("tensorflow-2.21.0", "2.21.0"),
        ("tensorflow_cpu-2.16.1", "2.16.1"),
        ("tensorflow_intel-2.15.0", "2.15.0"),
        ("tf_nightly-2.22.0.dev20261101", "2.22.0.dev20261101"),
        ("intel_tensorflow-2.14.0", "2.14.0"),
        ("tensorflow_datasets-4.9.9", ""),
        ("tensorflow_io_gcs_filesystem-0.37.1", ""),
        ("tensorflow_estimator-2.15.0", ""),
        ("tensorflow_probability-0.25.0", ""),
    ],
)
def test_tensorflow_is_known_by_every_name_it_is_sold_under(tmp_path, distribution, version):
    active = environment(tmp_path / "v", has=(distribution,))
    assert choose(str(active), environ={}, cwd=tmp_path).tensorflow == version


def test_the_first_candidate_with_tensorflow_wins(tmp_path):
    active = environment(tmp_path / "active")
    onpath = environment(tmp_path / "onpath", has=("tensorflow-2.21.0",))
    found = choose(None, environ={"VIRTUAL_ENV": str(active), "PATH": str(onpath / "bin")}, cwd=tmp_path)
    assert (found.path, found.chosen_by) == (str(onpath / "bin" / "python"), "PATH")


def test_where_none_has_tensorflow_the_first_is_taken_and_says_so(tmp_path, monkeypatch):
    active = environment(tmp_path / "active")
    other = environment(tmp_path / "other")
    monkeypatch.setattr(sys, "executable", str(other / "bin" / "python"))
    found = choose(None, environ={"VIRTUAL_ENV": str(active), "PATH": ""}, cwd=tmp_path)
    assert (found.path, found.tensorflow) == (str(active / "bin" / "python"), "")


def test_an_interpreter_that_is_asked_for_is_taken_whatever_it_has(tmp_path):
    environment(tmp_path / "bare")
    active = environment(tmp_path / "active", has=("tensorflow-2.21.0",))
    found = choose("bare/bin/python", environ={"VIRTUAL_ENV": str(active)}, cwd=tmp_path)
    assert (found.path, found.tensorflow, found.chosen_by) == (str(tmp_path / "bare/bin/python"), "", "--python")


def test_pythonpath_may_bring_tensorflow(tmp_path):
    """Module systems of clusters work by it."""
    modules = tmp_path / "modules"
    (modules / "tensorflow-2.21.0.dist-info").mkdir(parents=True)
    active = environment(tmp_path / "v")
    found = choose(None, environ={"VIRTUAL_ENV": str(active), "PYTHONPATH": str(modules)}, cwd=tmp_path)
    assert found.tensorflow == "2.21.0"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("/nope/python", "/nope/python is no program"),
        ("nopython", "no such program on PATH"),
        ("folder", "folder/bin/python is no program"),
    ],
)
def test_an_interpreter_that_is_not_there_is_the_users_mistake(tmp_path, asked, said):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=f"--python {asked}: .*{said}"):
        choose(asked, environ={"PATH": ""}, cwd=tmp_path)


def test_a_program_that_is_no_python_is_the_users_mistake(tmp_path):
    asked = program(tmp_path / "python", "#!/bin/sh\necho hello\n")
    with pytest.raises(InputError, match="does not run as a Python interpreter"):
        choose(str(asked), environ={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)


@pytest.mark.real
def test_another_interpreter_is_asked_once_and_remembered(tmp_path, home, monkeypatch):
    del home
    base = os.path.realpath(sys.executable)
    environ = {**os.environ, "PATH": str(Path(base).parent)}
    first = choose(base, environ=environ, cwd=tmp_path)
    assert first.version == ".".join(map(str, sys.version_info[:3]))
    monkeypatch.setattr(probe.subprocess, "run", lambda *_, **__: pytest.fail("started twice"))
    assert choose(base, environ=environ, cwd=tmp_path) == first


def test_a_changed_interpreter_is_asked_again(tmp_path):
    python = tmp_path / "python"
    python.write_bytes(b"\x7fELF")
    before = probe._entry(str(python), {"HOME": "/home/me"})
    os.utime(python, (1, 1))
    after = probe._entry(str(python), {"HOME": "/home/me"})
    assert before.parent == after.parent == Path("/home/me/.cache/phalanx/interpreters")
    assert before != after


@pytest.mark.real
def test_a_program_that_fails_is_not_remembered(tmp_path, home):
    assert probe.probe("/bin/false", environ=dict(os.environ), cwd=tmp_path) is None
    assert not (home / ".cache" / "phalanx").exists()


@pytest.mark.real
def test_a_wrapper_script_is_asked_each_time_and_its_own_python_is_the_answer(tmp_path, home):
    del home
    wrapper = program(tmp_path / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    found = choose(str(wrapper), environ=dict(os.environ), cwd=tmp_path)
    assert found.path == sys.executable
    wrapper.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(InputError):
        choose(str(wrapper), environ=dict(os.environ), cwd=tmp_path)


@pytest.mark.real
def test_an_interpreter_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "_PATIENCE", 0.2)
    sleeper = program(tmp_path / "python", "#!/bin/sh\nexec sleep 60\n")
    assert probe.probe(str(sleeper), environ=dict(os.environ), cwd=tmp_path) is None


def pyenv(root: Path, **versions: tuple[str, ...]) -> Path:
    for name, has in versions.items():
        environment(root / "versions" / name, has=has)
    program(root / "shims" / "python", '#!/usr/bin/env bash\nexec "/x/pyenv" exec "$program" "$@"\n')
    return root


@pytest.mark.parametrize(
    ("environ", "local", "chosen"),
    [
        ({"PYENV_VERSION": "a"}, "b", "a"),
        ({}, "b", "b"),
        ({}, None, "c"),
        ({"PYENV_VERSION": "missing-here:b"}, None, None),
    ],
)
def test_a_pyenv_shim_is_seen_through_without_starting_a_shell(tmp_path, environ, local, chosen):
    root = pyenv(tmp_path / "pyenv", a=("tensorflow-2.21.0",), b=("tensorflow-2.21.0",), c=("tensorflow-2.21.0",))
    (root / "version").write_text("c\n")
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    if local:
        (tmp_path / "project" / ".python-version").write_text(f"# chosen\n{local}\n")
    environ = {**environ, "PATH": str(root / "shims")}
    found = choose(None, environ=environ, cwd=inner)
    if chosen:
        assert found.path == str(root / "versions" / chosen / "bin" / "python")
    else:
        assert not found.path.startswith(str(root)), (
            "what only pyenv knows is asked of the shim, and this one knows nothing"
        )


def test_an_environment_beside_the_script_is_offered(tmp_path):
    environment(tmp_path / ".venv", has=("tensorflow-2.21.0",))
    found = nearby(tmp_path, environ={})
    assert found is not None
    assert found.path == str(tmp_path / ".venv" / "bin" / "python")


def test_no_environment_beside_the_script_is_no_offer(tmp_path):
    environment(tmp_path / ".venv")
    assert nearby(tmp_path, environ={}) is None


def test_a_virtual_environment_takes_less_than_15_milliseconds(tmp_path):
    packages = tuple(f"package_{number}-1.0" for number in range(300))
    active = environment(tmp_path / "v", has=(*packages, "tensorflow-2.21.0"))
    took = []
    for _ in range(5):
        start = time.perf_counter()
        found = choose(None, environ={"VIRTUAL_ENV": str(active)}, cwd=tmp_path)
        took.append(time.perf_counter() - start)
    assert found.tensorflow == "2.21.0"
    assert min(took) < 0.015

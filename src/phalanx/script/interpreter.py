"""Which Python runs `x.py`: the first of the candidates that has TensorFlow, read from its metadata on the disk.

Nothing is imported to find out. A virtual environment is not even started; other interpreters are asked once for
their search path, and the answer is kept.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from phalanx.errors import InputError
from phalanx.plan.outline import Interpreter
from phalanx.script.probe import Probed, probe
from phalanx.script.shim import behind

#: Distributions that bring the package `tensorflow`.
_TENSORFLOW = re.compile(
    r"(?:intel_)?(?:tensorflow|tf_nightly)(?:_(?:cpu|gpu|intel|macos|rocm|cpu_aws|base))?-(?P<version>\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info\Z",
    re.IGNORECASE,
)
_KERAS, _TF_KERAS = (
    re.compile(name + r"-(?P<version>\d[^-]*)(?:-py[\d.]+)?\.(?:dist|egg)-info\Z", re.IGNORECASE)
    for name in ("keras", "tf_keras")
)


def choose(python: str | None, *, environ: Mapping[str, str], cwd: Path) -> Interpreter:
    """The interpreter for Python commands, with what is installed in it.

    `python` (a path, a name on PATH, or the folder of an environment) is taken whatever it has. Without it: the first
    of `$VIRTUAL_ENV`, `python` and `python3` on PATH and phalanx's own that has TensorFlow; where none has, the first.
    Raises InputError where `python` names nothing that runs.
    """
    if python is not None:
        return _asked_for(python, environ=environ, cwd=cwd)
    first: Interpreter | None = None
    for path, why in _candidates(environ):
        found = _described(path, why, environ=environ, cwd=cwd)
        if found is None:
            continue
        if found.tensorflow:
            return found
        first = first or found
    return first or Interpreter(path=sys.executable, version=_own_version(), chosen_by="phalanx's own")


def folders_of(interpreter: Interpreter, *, environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Where it looks for packages; () where it does not say."""
    probed = _environment_of(Path(interpreter.path), environ) or probe(interpreter.path, environ=environ, cwd=cwd)
    return probed.folders if probed is not None else ()


def nearby(cwd: Path, *, environ: Mapping[str, str]) -> Interpreter | None:
    """An environment of the folder that has TensorFlow and was not switched on, for advice."""
    for name in (".venv", "venv", "env"):
        python = cwd / name / "bin" / "python"
        if (
            os.access(python, os.X_OK)
            and (found := _described(str(python), name, environ=environ, cwd=cwd))
            and found.tensorflow
        ):
            return found
    return None


def _asked_for(python: str, *, environ: Mapping[str, str], cwd: Path) -> Interpreter:
    place = cwd / Path(python).expanduser()
    if os.path.isdir(place):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        path: str | None = str(place / "bin" / "python")
    else:
        path = str(place) if "/" in python else shutil.which(python, path=environ.get("PATH", os.defpath))
    if path is None or not os.access(path, os.X_OK):
        what = f"{path} is no program" if path else "no such program on PATH"
        raise InputError(
            f"--python {python}: {what}", hint="name an interpreter, or the folder of a virtual environment"
        )
    found = _described(path, "--python", environ=environ, cwd=cwd)
    if found is None:
        raise InputError(
            f"--python {python}: {path} does not run as a Python interpreter", hint=f"try: {path} --version"
        )
    return found


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    seen = set()
    search = environ.get("PATH", os.defpath)
    active = environ.get("VIRTUAL_ENV")
    named = [(str(Path(active) / "bin" / "python"), "$VIRTUAL_ENV")] if active else []
    named += [(found, "PATH") for name in ("python", "python3") if (found := shutil.which(name, path=search))]
    for path, why in [*named, (sys.executable, "phalanx's own")]:
        if path not in seen and os.access(path, os.X_OK):
            seen.add(path)
            yield path, why


def _described(path: str, why: str, *, environ: Mapping[str, str], cwd: Path) -> Interpreter | None:
    path = behind(path, environ=environ, cwd=cwd) or path
    probed = _environment_of(Path(path), environ) or probe(path, environ=environ, cwd=cwd)
    if probed is None:
        return None
    tensorflow = keras = tf_keras = ""
    for folder in probed.folders:
        names = _names_in(folder)
        tensorflow = tensorflow or _version(_TENSORFLOW, names)
        keras = keras or _version(_KERAS, names)
        tf_keras = tf_keras or _version(_TF_KERAS, names)
    return Interpreter(
        path=probed.executable,
        version=probed.version,
        tensorflow=tensorflow,
        keras=keras,
        tf_keras=tf_keras,
        chosen_by=why,
    )


def _environment_of(python: Path, environ: Mapping[str, str]) -> Probed | None:
    """A virtual environment, read from its pyvenv.cfg; None where that says too little."""
    prefix = python.parent.parent
    try:
        text = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    said = {key.strip().lower(): value.strip() for key, _, value in (line.partition("=") for line in text.splitlines())}
    version = re.match(r"(\d+)\.(\d+)(?:\.\d+)?", said.get("version", "") or said.get("version_info", ""))
    if version is None or said.get("include-system-site-packages", "").lower() == "true":
        return None
    below = f"python{version[1]}.{version[2]}/site-packages"
    folders = [str(prefix / lib / below) for lib in ("lib", "lib64")]
    extra = [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    return Probed(executable=str(python), version=version[0], folders=(*extra, *dict.fromkeys(folders)))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names only; a site-packages has hundreds
    except OSError:
        return []


def _version(wanted: re.Pattern[str], names: list[str]) -> str:
    found = [match["version"] for name in names if (match := wanted.match(name))]
    return max(found, default="")


def _own_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))

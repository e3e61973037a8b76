"""What the task's own interpreter has installed, asked by one short start of it. TensorFlow is never imported."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phalanx.agent.preflight import imports
from phalanx.agent.preflight.asked import Answer, Asked
from phalanx.agent.preflight.programs import Program, executable

#: Seconds for the interpreter to answer: a cold network disk is slow.
_PATIENCE = 45.0

#: Runs under Python 3.7 and newer. `-c` puts the working folder first; a script puts its own there.
_QUESTION = r"""
import hashlib, json, os, sys
ask = json.loads(sys.stdin.read())
if ask["folder"]:
    sys.path[:1] = [ask["folder"]]
from importlib.util import find_spec
def there(name):
    try:
        return find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return name in sys.modules
versions, every = {}, []
for folder in sys.path:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        continue
    for name in names:
        stem, kind = os.path.splitext(name)
        if kind in (".dist-info", ".egg-info"):
            parts = stem.split("-")
            if len(parts) > 1 and versions.setdefault(parts[0].lower().replace("-", "_"), parts[1]) == parts[1]:
                every.append(parts[0].lower() + "=" + parts[1])
place = ""
try:
    spec = find_spec("tensorflow")
    place = list(spec.submodule_search_locations)[0] if spec and spec.submodule_search_locations else ""
except (ImportError, AttributeError, ValueError):
    pass
wanted = [name for name in versions if name in ask["versions"] or name.startswith(("nvidia_cudnn", "nvidia_nccl"))]
print(json.dumps({
    "python": ".".join(map(str, sys.version_info[:3])),
    "versions": {name: versions[name] for name in wanted},
    "packages": "%d, %s" % (len(set(every)), hashlib.sha256("\n".join(sorted(set(every))).encode()).hexdigest()[:8]),
    "missing": [name for name in ask["modules"] if not there(name)],
    "tensorflow": place,
}))
"""

_TENSORFLOW = ("tensorflow", "tensorflow_cpu", "tensorflow_intel", "tf_nightly", "tf_nightly_cpu", "tensorflow_rocm")
_BUILT = re.compile(r"[\"']cudnn_version[\"']\s*:\s*[\"']([\d.]+)")
_LIBRARY = re.compile(r"libcudnn\.so\.(\d+(?:\.\d+)+)\Z")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """An interpreter's answer."""

    python: str
    versions: Mapping[str, str]
    #: How many distributions there are, and a hash over their names and versions.
    packages: str
    missing: tuple[str, ...]
    #: Where the package tensorflow lies; empty: nowhere.
    tensorflow: str


def check(asked: Asked, answer: Answer) -> None:
    """One program after the other: is it there, what does it import, what does its interpreter have."""
    for program in asked.programs:
        answer.look("program-found")
        path = executable(program)
        if path is None:
            answer.fault("program-found", f"there is no program {program.argv[0]} to start")
        elif program.line is not None:
            _look(program, path, answer)


def _look(program: Program, path: str, answer: Answer) -> None:
    reading, script = None, program.script
    try:
        if script is not None:
            reading = imports.read_script(script)
        elif program.line is not None and program.line.kind == "command":
            reading = imports.read_text(program.line.target)
    except OSError as wrong:
        answer.fault("program-found", f"the script {script} cannot be read: {wrong.strerror}")
        return
    modules = [*reading.sure, *reading.maybe] if reading else []
    installed = ask(path, program, [*modules, "tensorboard"])
    if isinstance(installed, str):
        answer.fault("program-found", installed)
        return
    if script is not None and reading is not None:
        answer.look("same-script")
        answer.fact("script", reading.digest, of=str(script))
    if program.serving:
        _facts(program, installed, answer)
    if reading is not None:
        _modules(reading, installed, path, answer)


def _facts(program: Program, installed: Installed, answer: Answer) -> None:
    answer.look("same-python", "same-packages")
    answer.fact("python", ".".join(installed.python.split(".")[:2]))
    answer.fact("packages", installed.packages)
    tensorflow = next((installed.versions[name] for name in _TENSORFLOW if name in installed.versions), "")
    if not tensorflow:
        return
    answer.look("same-tensorflow", "same-keras")
    answer.fact("tensorflow", tensorflow)
    keras, legacy = installed.versions.get("keras", "none"), installed.versions.get("tf_keras", "none")
    answer.fact("keras", f"keras {keras}, tf_keras {legacy}")
    _cudnn(program, installed, answer)


def _modules(reading: imports.Reading, installed: Installed, path: str, answer: Answer) -> None:
    answer.look("modules-found", "modules-maybe")
    missing = frozenset(installed.missing)
    for check, wanted in (("modules-found", reading.sure), ("modules-maybe", reading.maybe)):
        for name, where in wanted.items():
            if name in missing:
                answer.fault(check, f"{where} imports {name}, which {path} does not find")
    if reading.tensorboard is None:
        return
    answer.look("tensorboard-found")
    if "tensorboard" in missing:
        check = "tensorboard-found" if reading.tensorboard else "modules-maybe"
        answer.fault(check, f"the script makes a TensorBoard callback, and {path} has no tensorboard: fit would fail")


def _cudnn(program: Program, installed: Installed, answer: Answer) -> None:
    """R90: the same major version as it was built with, and no older; a copy on LD_LIBRARY_PATH wins."""
    loaded, where = _loaded(program.environ, installed.versions)
    if not loaded:
        return
    answer.look("cudnn-skew")
    answer.fact("cudnn", f"{loaded} ({where})")
    try:
        text = Path(installed.tensorflow, "python", "platform", "build_info.py").read_text(encoding="utf-8")
    except OSError:
        return
    built = _BUILT.search(text)
    if built and _too_old(built[1], loaded):
        words = f"TensorFlow was built with cuDNN {built[1]} and would load {loaded} from {where}"
        answer.fault("cudnn-skew", words)


def _loaded(environ: Mapping[str, str], versions: Mapping[str, str]) -> tuple[str, str]:
    for folder in environ.get("LD_LIBRARY_PATH", "").split(":"):
        try:
            names = [name.name for name in Path(folder).iterdir()] if folder else []
        except OSError:
            continue
        found = max((match[1] for name in names if (match := _LIBRARY.match(name))), default="")
        if found:
            return found, folder
    return next(((value, name) for name, value in versions.items() if name.startswith("nvidia_cudnn")), ("", ""))


def _too_old(built: str, loaded: str) -> bool:
    wanted, found = ([int(part) for part in text.split(".")[:2]] for text in (built, loaded))
    return wanted[0] != found[0] or (len(wanted) > 1 and len(found) > 1 and found[1] < wanted[1])


def ask(path: str, program: Program, modules: list[str]) -> Installed | str:
    """Start the interpreter once; a sentence where that fails."""
    script = program.script
    question = {
        "folder": str(script.resolve().parent) if script is not None else "",
        "modules": modules,
        "versions": [*_TENSORFLOW, "keras", "tf_keras"],
    }
    try:
        done = subprocess.run(
            [path, "-c", _QUESTION],
            env=dict(program.environ),
            cwd=program.cwd,
            input=json.dumps(question).encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{path} has not answered within {_PATIENCE:g} s"
    except OSError as wrong:
        return f"{path} cannot be started: {wrong.strerror}"
    try:
        return _read(json.loads(done.stdout.rpartition(b"\n{")[2] if b"\n{" in done.stdout else done.stdout))
    except (ValueError, KeyError, TypeError):
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return f"{path} does not run a Python program: {said[-1] if said else 'it says nothing'}"


def _read(data: Any) -> Installed:
    return Installed(
        python=str(data["python"]),
        versions={str(name): str(value) for name, value in data["versions"].items()},
        packages=str(data["packages"]),
        missing=tuple(map(str, data["missing"])),
        tensorflow=str(data["tensorflow"]),
    )

"""What each program is, what it imports and what its interpreter has. TensorFlow is never imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from phalanx.agent.preflight import imports
from phalanx.agent.preflight.asked import Answer, Asked
from phalanx.agent.preflight.interpreter import TENSORFLOW, Broken, Installed, ask
from phalanx.agent.preflight.programs import Program, executable

_BUILT = re.compile(r"[\"']cudnn_version[\"']\s*:\s*[\"']([\d.]+)")
_LIBRARY = re.compile(r"libcudnn\.so\.(\d+(?:\.\d+)+)\Z")
#: Characters of a line that is no Python which are shown.
_SHOWN = 80


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
    reading, script, module = None, program.script, program.module
    try:
        if script is not None:
            reading = imports.read_script(script)
        elif module is not None:
            reading, script = imports.read(module), module.file
        elif program.line is not None and program.line.kind == "command":
            reading = imports.read_text(program.line.target)
    except OSError as wrong:
        answer.fault("program-found", f"the script {script} cannot be read: {wrong.strerror}")
        return
    modules = [*reading.sure, *reading.maybe] if reading else []
    files = [file.path for file in reading.files] if reading else []
    installed = ask(path, program, [*modules, "tensorboard"], files)
    if isinstance(installed, str):
        answer.fault("program-found", installed)
        return
    if script is not None and reading is not None:
        answer.look("same-script")
        answer.fact("script", reading.digest, of=str(script))
    if program.serving:
        _facts(program, installed, answer)
    if reading is not None:
        answer.look("script-parses")
        for broken in installed.broken:
            answer.fault("script-parses", _where_it_breaks(broken, installed, program, path))
        _modules(reading, installed, path, answer)


def _where_it_breaks(broken: Broken, installed: Installed, program: Program, path: str) -> str:
    file, text = Path(broken.path), " ".join(broken.text.split())
    shown = file.relative_to(program.cwd) if file.is_relative_to(program.cwd) else file
    said = f"{shown}:{broken.line}:{broken.column}: {broken.why}, says {path} (Python {installed.python})"
    return f"{said}: {text[:_SHOWN]}" if text else said


def _facts(program: Program, installed: Installed, answer: Answer) -> None:
    answer.look("same-python", "same-packages")
    answer.fact("python", ".".join(installed.python.split(".")[:2]))
    answer.fact("packages", installed.packages)
    tensorflow = next((installed.versions[name] for name in TENSORFLOW if name in installed.versions), "")
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

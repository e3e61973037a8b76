"""One short start of the task's own interpreter: what it has installed, finds and compiles. Nothing is imported."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.agent.preflight.programs import Program

#: Seconds for the interpreter to answer: a cold network disk is slow.
_PATIENCE = 45.0
#: Seconds after which it begins to compile no further file: some 50,000 lines. The script's own comes first.
_COMPILING = 0.25
#: Runs under Python 3.7 and newer. `-c` puts the working folder first; a script puts its own there.
_QUESTION = r"""
import hashlib, json, os, sys, time, warnings
ask = json.loads(sys.stdin.read())
if ask["folder"]:
    sys.path[:1] = [ask["folder"]]
from importlib.util import MAGIC_NUMBER, find_spec
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
broken, until = [], time.monotonic() + ask["patience"]
warnings.simplefilter("ignore")
for path, source in ask["sources"]:
    try:
        if source is None:
            with open(path, "rb") as file:
                source = file.read()
            if path.endswith(".pyc") or source[:4] == MAGIC_NUMBER or b"PK" in source[-65557:]:
                continue
        compile(source, path, "exec", 0, True)
    except SyntaxError as wrong:
        broken.append((path, wrong.lineno or 1, wrong.offset or 1, wrong.msg, wrong.text or ""))
    except ValueError as wrong:
        broken.append((path, 1, 1, str(wrong), ""))
    except (OSError, RecursionError, MemoryError):
        pass
    if time.monotonic() > until:
        break
wanted = [name for name in versions if name in ask["versions"] or name.startswith(("nvidia_cudnn", "nvidia_nccl"))]
print(json.dumps({
    "python": ".".join(map(str, sys.version_info[:3])),
    "versions": {name: versions[name] for name in wanted},
    "packages": "%d, %s" % (len(set(every)), hashlib.sha256("\n".join(sorted(set(every))).encode()).hexdigest()[:8]),
    "missing": [name for name in ask["modules"] if not there(name)],
    "tensorflow": place,
    "broken": broken,
}))
"""

#: The distributions that bring TensorFlow.
TENSORFLOW = ("tensorflow", "tensorflow_cpu", "tensorflow_intel", "tf_nightly", "tf_nightly_cpu", "tensorflow_rocm")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """Where the interpreter stopped reading a file, and why; the column counts from 1."""

    path: str
    line: int
    column: int
    why: str
    text: str


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
    #: The program's own files that it does not compile.
    broken: tuple[Broken, ...]


def ask(path: str, program: Program, modules: list[str], files: Sequence[Path] = ()) -> Installed | str:
    """Start the interpreter once; a sentence where that fails. It compiles `files`, else the program's text."""
    script, line = program.script, program.line
    sources: list[tuple[str, str | None]] = [(str(file), None) for file in files]
    if line is not None and line.kind == "command":
        sources = [("-c", line.target)]
    question = {
        "sources": sources,
        "patience": _COMPILING,
        "folder": str(script.resolve().parent) if script is not None else "",
        "modules": modules,
        "versions": [*TENSORFLOW, "keras", "tf_keras"],
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
        # What a sitecustomize, or an exit handler, prints beside it is not ours.
        [*_, answer] = [line for line in done.stdout.splitlines() if line.startswith(b"{")]
        return _read(json.loads(answer))
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
        broken=tuple(
            Broken(path=str(file), line=int(line), column=int(column), why=str(why), text=str(text))
            for file, line, column, why, text in data["broken"]
        ),
    )

"""A look at a script: it runs under its own interpreter until it would train, and what its first step holds is told.

This executes the user's code, so nothing but `phalanx advise` and `phalanx bench` does it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from phalanx.decide.strayed import strayed
from phalanx.errors import InputError
from phalanx.plan.bind import PLACEHOLDERS, fill
from phalanx.runtime.boot import phalanx_hooks
from phalanx.scratch import scratch
from phalanx.sizing import inside
from phalanx.sizing.inside.sitecustomize import ANSWER
from phalanx.sizing.model import Model, Operation, Step, Variable
from phalanx.sizing.place import Core

#: Lines of what the script has printed that an error repeats.
_TAIL = 3
#: What to give where a script cannot be looked at.
FLAGS = "say it by flags: --parameters 25M --tables 10Mx64 --optimizer adam --batch 256"


class LookError(InputError):
    """The model of this script cannot be built without training. `phalanx advise --parameters …` goes by flags."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the look has found."""

    model: Model
    core: Core


def look(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    strategy: str,
    patience: float,
    flags: Collection[str] = (),
) -> Seen:
    """Run `argv` (an interpreter, its script, its arguments) until its first training step. Raises LookError.

    Nothing is trained and no checkpoint written: saving does nothing there, and callbacks of `fit` are left out.
    `strategy`: "ps" gives it a cluster of a chief, a worker and a ps in its own process; else it gets no TF_CONFIG.
    `flags`: those of the verb, for the hint where the script refuses one as its own.
    """
    with scratch("phalanx-advise-") as folder:
        answer, output = folder / "answer.json", folder / "output"
        env = _environ(folder, environ, answer, strategy)
        with output.open("wb") as file:
            try:
                ended = _run(_filled(argv, folder), cwd=cwd, env=env, file=file, patience=patience)
            except OSError as wrong:
                raise LookError(f"{argv[0]} cannot be started: {wrong.strerror}", hint=FLAGS) from wrong
        try:
            told = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            lines = _said(output)
            raise LookError(_why(ended, patience, lines), hint=strayed(lines, flags) or FLAGS) from None
    if "wrong" in told:
        raise LookError(f"what the first step holds could not be read: {told['wrong']}", hint=FLAGS)
    return seen(told)


def seen(told: Mapping[str, Any]) -> Seen:
    """From what `phalanx_look` writes."""
    variables = tuple(
        Variable(
            name=one["name"],
            bytes=int(one["bytes"]),
            rows=int(one["shape"][0]) if one["shape"] else 1,
            touched=None if one["rows"] is None else int(one["rows"]),
        )
        for one in told["variables"]
    )
    machine = told["machine"]
    return Seen(
        model=Model(
            variables=variables,
            slots=int(told["slots"]),
            batch=int(told["batch"]),
            spread=told["spread"] or "global",
            kind=told["kind"],
            reductions=int(told["reductions"]),
            resident=int(told["resident"]),
            highest=int(told["highest"]),
            step=_step(told["step"]),
        ),
        core=Core(**machine),
    )


def _step(told: Mapping[str, Any] | None) -> Step | None:
    if told is None:
        return None
    return Step(
        operations=tuple(
            Operation(flops=row[0], flops_each=row[1], moved=row[2], moved_each=row[3], count=int(row[4]))
            for row in told["operations"]
        ),
        peak=told["peak"][0],
        peak_each=told["peak"][1],
        loops=bool(told["loops"]),
    )


def _filled(argv: Sequence[str], folder: Path) -> list[str]:
    """What a run fills in leads into the folder that is thrown away."""
    filled = {name: str(folder / name) for name in PLACEHOLDERS} | {"run": "advise", "generation": "1"}
    return [fill(word, filled) for word in argv]


def _environ(folder: Path, environ: Mapping[str, str], answer: Path, strategy: str) -> dict[str, str]:
    inner = folder / "inside"
    inner.mkdir()
    own = Path(inside.__file__).parent
    files = [
        own / f"{name}.py" for name in ("sitecustomize", "phalanx_look", "phalanx_cost", "phalanx_core", "phalanx_ring")
    ]
    for file in (*files, Path(phalanx_hooks.__file__)):
        shutil.copyfile(file, inner / file.name)
    path = os.pathsep.join(filter(None, [str(inner), environ.get("PYTHONPATH", "")]))
    env = {**environ, "PYTHONPATH": path, ANSWER: str(answer), "CUDA_VISIBLE_DEVICES": ""}
    env.pop("TF_CONFIG", None)
    if strategy == "ps":
        with _ports(3) as ports:
            cluster = {job: [f"127.0.0.1:{port}"] for job, port in zip(("chief", "worker", "ps"), ports, strict=True)}
        env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    return env


def _run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], file: Any, patience: float) -> int | None:
    """Its exit code; None where its time was over. What it has started ends with it."""
    process = subprocess.Popen(
        list(argv), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
    )
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _said(output: Path) -> list[str]:
    return [line for line in output.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]


def _why(ended: int | None, patience: float, lines: Sequence[str]) -> str:
    if ended is None:
        return f"the script did not come to a training step within {patience:g} s"
    said = f"; its last lines were: {' | '.join(lines[-_TAIL:])}" if lines else ""
    if ended:
        return f"the script failed before a training step (exit {ended}){said}"
    return f"the script ended without a training step{said}"


@contextlib.contextmanager
def _ports(count: int) -> Iterator[list[int]]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        yield [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()

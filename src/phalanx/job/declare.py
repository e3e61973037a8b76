"""From the words of a command line to an Outline: what `run` and `plan` both call."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from phalanx.agent import facts
from phalanx.errors import InputError
from phalanx.job import advise, command, keras
from phalanx.job.complaint import Complaint, JobFileError, Loc
from phalanx.job.dump import to_yaml
from phalanx.job.flags import SUFFIXES, Flags, apply, named
from phalanx.job.load import JobFile, load
from phalanx.job.model import Job
from phalanx.job.origin import Origin
from phalanx.job.reading import read_scripts
from phalanx.job.resolve import absolute, resolve
from phalanx.plan.outline import Interpreter, Outline, Strategy
from phalanx.plan.placement import place
from phalanx.plan.preview import preview_hosts
from phalanx.script.interpreter import choose, nearby
from phalanx.script.strategy import strategy_of
from phalanx.tfconfig.finding import Finding, Severity
from phalanx.tfconfig.quote import shown

#: How much of a replaced TF_CONFIG is repeated: enough to know it again, too little to give anything away.
_SHOWN = 60


class Declared(NamedTuple):
    """An outline, the job.yaml that says the same wherever it lies, and what the user should know (no errors)."""

    outline: Outline
    text: str
    notes: tuple[Finding, ...]


def declare(tokens: tuple[str, ...], flags: Flags, *, cwd: Path, environ: Mapping[str, str]) -> Declared:
    """Read `job.yaml`, or `train.py args…`, lay the flags over it, and resolve it.

    One token that ends in .yaml, .yml or .json is a job file; anything else is the command. What a job file says is
    relative to its own folder, what flags and commands say to `cwd`. Reads files and asks interpreters for their search
    path; changes nothing. Raises InputError (JobFileError with every mistake at once, ScriptError for a script that
    cannot work).
    """
    if not tokens:
        raise InputError("nothing to run", hint="name a script or a job.yaml: phalanx run --workers 2 train.py")
    file = job_file(tokens, cwd)
    here = _folder(file, cwd, environ)
    job = apply(file.job if file else None, _from_here(flags, cwd, here, environ), () if file else tokens)
    # A flag that does not exist in the file still has a name to complain under.
    origin = Origin(tree=file.tree if file else None, flags={**named(flags), ("--on",): f"--on {flags.on}"})
    complaints = [origin.complaint(*said) for said in (*advise.refusals(job, flags.on), *advise.mistakes(job))]
    complaints += [origin.complaint(*said) for said in _out_of_reach(job)]
    complaints += _programs(job, origin, cwd=here, path=environ.get("PATH", ""))
    if complaints:
        raise JobFileError(_once(complaints), hint=_hint(tokens, file))
    replaced = _inherited(environ, override=flags.override)
    outline = resolve(
        job,
        cwd=str(here),
        interpreter=_interpreter(job, environ=environ, cwd=here),
        environ=environ,
        machine=socket.gethostname().partition(".")[0] or "localhost",
        has=facts.this_machine(environ),
    )
    if refused := keras.mistake(job, outline.interpreter, environ=environ, cwd=here):
        raise JobFileError([origin.complaint(("keras",), refused)])
    named_by_script = strategy_of_script(job, outline, environ)
    outline = dataclasses.replace(outline, must_listen=must_listen(outline, named_by_script))
    notes = [origin.finding(*said) for said in advise.warnings(job, flags.on)]
    notes += [*replaced, *_about(outline, environ=environ), *_script_says(job, outline, named_by_script)]
    notes += read_scripts(job, outline, environ)
    text = to_yaml(job.model_copy(update={"folder": str(here)}))
    return Declared(outline=outline, text=text, notes=tuple(notes))


def job_file(tokens: tuple[str, ...], cwd: Path) -> JobFile | None:
    """The job file that the only word names; None for a command. Raises InputError."""
    if tokens[0] == "-":
        raise InputError(
            "a job is not read from standard input", hint="name a script or a job.yaml: phalanx run job.yaml"
        )
    if not tokens[0].endswith(SUFFIXES):
        return None
    if len(tokens) > 1:
        raise InputError(
            f"{tokens[0]} says the whole command; {' '.join(tokens[1:])} has no place after it",
            hint="after a job.yaml come flags of phalanx; the script's arguments belong in its `command:`",
        )
    return load(cwd / tokens[0], shown=tokens[0])


def _folder(file: JobFile | None, cwd: Path, environ: Mapping[str, str]) -> Path:
    """Where the commands start: as Compose does, the folder of the file, unless the file names another."""
    if file is None:
        return cwd
    beside = Path(os.path.realpath((cwd / file.tree.path).parent))
    return Path(absolute(file.job.folder, str(beside), environ)) if file.job.folder else beside


def _from_here(flags: Flags, cwd: Path, here: Path, environ: Mapping[str, str]) -> Flags:
    """Paths in flags are the user's own, so they stay what they are where the job's paths begin elsewhere."""
    if here == cwd:
        return flags
    python, checkpoint = flags.python, flags.checkpoint
    if python and ("/" in python or (cwd / python).is_dir()):
        python = absolute(python, str(cwd), environ)
    if checkpoint:
        checkpoint = absolute(checkpoint, str(cwd), environ)
    return dataclasses.replace(flags, python=python, checkpoint=checkpoint)


def _programs(job: Job, origin: Origin, *, cwd: Path, path: str) -> list[Complaint]:
    commands: list[tuple[Loc, list[str]]] = [(("command",), job.command)]
    commands += [(("roles", name, "command"), role.command) for name, role in job.roles.items() if role.command]
    if not cwd.is_dir():
        return [origin.complaint(("folder",), f"there is no folder {cwd}; make it, or name another")]
    return [
        origin.complaint((*loc, number), said)
        for loc, words in commands
        for number, said in command.mistakes(words, cwd=cwd, path=path)
    ]


def _out_of_reach(job: Job) -> Iterator[tuple[Loc, str]]:
    for number, secret in enumerate(job.secrets):
        if secret.source.secret:
            what = f"the Secret {secret.source.secret} is in a cluster"
            yield (
                ("secrets", number, "from"),
                f"{what}; on this machine say from: {{env: NAME}} or from: {{file: PATH}}",
            )


def _once(complaints: list[Complaint]) -> list[Complaint]:
    return list(dict.fromkeys(complaints))


def _hint(tokens: tuple[str, ...], file: JobFile | None) -> str | None:
    """Flags after the script are the script's; who wrote them there may have meant ours."""
    if file is None and tokens[0].startswith("-"):
        return "flags of phalanx come before the script: phalanx run --workers 2 train.py"
    return None


def _inherited(environ: Mapping[str, str], *, override: bool) -> list[Finding]:
    """A TF_CONFIG of the user's own would be replaced task by task, so somebody has to say that this is meant."""
    value = environ.get("TF_CONFIG")
    if value is None:
        return []
    if not value.strip():
        message = "TF_CONFIG is empty in your environment: that counts as not set"
        return [Finding(id="job-tf-config-empty", severity=Severity.INFO, message=message, path="$TF_CONFIG")]
    told = shown(value, _SHOWN + 1)
    if not override:
        raise InputError(
            f"TF_CONFIG is set in your environment already: {told}", hint="unset TF_CONFIG, or say --override"
        )
    message = f"the TF_CONFIG of your environment is replaced: {told}"
    return [Finding(id="job-tf-config-replaced", severity=Severity.INFO, message=message, path="$TF_CONFIG")]


def _interpreter(job: Job, *, environ: Mapping[str, str], cwd: Path) -> Interpreter | None:
    commands = [job.command, *(role.command for role in job.roles.values() if role.command)]
    if not any(command.wants_interpreter(words) for words in commands):
        return None
    return choose(job.python, environ=environ, cwd=cwd)


def _about(outline: Outline, *, environ: Mapping[str, str]) -> list[Finding]:
    notes = []
    found = outline.interpreter
    if found is not None and not found.tensorflow:
        other = nearby(Path(outline.cwd), environ=environ)
        notes.append(
            Finding(
                id="job-no-tensorflow",
                severity=Severity.WARNING,
                message=f"no TensorFlow found in {found.path} ({found.chosen_by})",
                fix=f"--python {other.path} has TensorFlow {other.tensorflow}"
                if other
                else "name one that has it: --python PATH",
            ),
        )
    if len(outline.tasks()) == 1 and not outline.force_tf_config:
        message = "a job of one task gets no TF_CONFIG"
        fix = "--force-tf-config gives it one, for a script that reads it"
        notes.append(Finding(id="job-one-task", severity=Severity.INFO, message=message, fix=fix))
    used = len({host.id for host in place(outline, preview_hosts(outline)).values()})
    if used < outline.hosts:
        idle = outline.hosts - used
        message = f"{idle} of {outline.hosts} hosts {'stays' if idle == 1 else 'stay'} idle: there are too few tasks"
        fix = f"--hosts {used} is enough, or raise --workers"
        notes.append(Finding(id="job-idle-host", severity=Severity.WARNING, message=message, fix=fix))
    return notes


def strategy_of_script(job: Job, outline: Outline, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The strategy that the script names: its kind, and the name itself; None where it names none."""
    start = command.start_of(job.command, cwd=Path(outline.cwd), environ={**environ, **job.env})
    return None if start is None else strategy_of(start)  # a folder with __main__.py: nothing to read here


def must_listen(outline: Outline, found: tuple[str, str] | None) -> bool:
    """A group whose member never listens waits for ever (R20); but a script may do without TensorFlow altogether."""
    if outline.strategy not in (Strategy.MWMS, Strategy.PS):
        return False
    return outline.strategy_declared or (found is not None and found[0] == outline.strategy.value)


def _script_says(job: Job, outline: Outline, found: tuple[str, str] | None) -> list[Finding]:
    """Where nobody named a strategy and the script names the other one, the roles are probably wrong."""
    if found is None or outline.strategy_declared:
        return []
    script = command.program_words(job.command)
    kind, name = found
    has_ps = outline.strategy is Strategy.PS
    if (kind == "ps") == has_ps or (kind == "estimator" and has_ps):
        return []
    fix = "--ps 1 adds a parameter server and a chief" if kind == "ps" else "leave out the ps, or say --strategy ps"
    message = f"the script names {name}, and the job has {'a' if has_ps else 'no'} ps"
    return [Finding(id="job-strategy-differs", severity=Severity.WARNING, message=message, fix=fix, path=str(script))]

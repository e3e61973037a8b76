"""Which Keras a job's tasks train with, and whether Keras 3 is mended for them: the key `keras`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from phalanx.agent.standby import can_stand_by
from phalanx.job.model import Job
from phalanx.plan.outline import Interpreter, Outline, Strategy
from phalanx.script.check import version
from phalanx.script.installed import Installed
from phalanx.script.interpreter import folders_of

_LEGACY = {"TF_USE_LEGACY_KERAS": "1"}
#: Read by the runtime when several workers begin to train.
_OFF = {"PHALANX_KERAS": "off"}


def meant(job: Job) -> str:
    """`auto`, `legacy` or `off`: nothing is mended from inside where nothing of ours is inside."""
    return "off" if job.keras == "auto" and not job.runtime else job.keras


def variables(job: Job) -> dict[str, str]:
    """What every task finds in its environment for it."""
    if job.keras == "legacy":
        return dict(_LEGACY)
    return dict(_OFF) if job.keras == "off" and job.runtime else {}


def mistake(job: Job, interpreter: Interpreter | None, *, environ: Mapping[str, str], cwd: Path) -> str | None:
    """Why `keras: legacy` cannot be had: TensorFlow would say so in every task, after the start."""
    if job.keras != "legacy" or interpreter is None or not interpreter.tensorflow or not _is_three(interpreter):
        return None
    if Installed(folders=folders_of(interpreter, environ=environ, cwd=cwd)).has("tf_keras") is not False:
        return None
    wants = f'{interpreter.path} -m pip install "tf_keras~={".".join(interpreter.tensorflow.split(".")[:2])}.0"'
    return f"legacy Keras is the package tf_keras, which {interpreter.path} does not have; {wants}, or say auto"


def mends(outline: Outline, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether the mended `fit` reaches a task with this command: the runtime must be able to ride in it."""
    return outline.runtime and outline.keras == "auto" and can_stand_by(argv, environ, outline.cwd)


def in_words(outline: Outline) -> str | None:
    """For `phalanx plan`; None where there is nothing to tell."""
    found = outline.interpreter
    match outline.keras:
        case "legacy":
            has = f"tf_keras {found.tf_keras}" if found is not None and found.tf_keras else "tf_keras"
            return f"legacy: {has} in place of Keras 3 (TF_USE_LEGACY_KERAS=1)"
        case "off":
            return "off: as it is installed"
    if found is None or not _is_three(found) or outline.strategy is not Strategy.MWMS or outline.is_alone():
        return None
    return "auto: Keras 3's fit is mended in memory where it fails with several workers (keras: off leaves it)"


def _is_three(interpreter: Interpreter) -> bool:
    return (version(interpreter.keras) or (0,)) >= (3,)

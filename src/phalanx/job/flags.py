"""What the command line says about a job. Flags override the file, through the same checks and in the same words."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phalanx.job.complaint import Loc
    from phalanx.job.model import Job

#: A first word that ends so is a job file; anything else is a command.
SUFFIXES = (".yaml", ".yml", ".json")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Flags:
    """`None` everywhere: the flag was not given. Durations and ranges are the user's text; the model reads them."""

    workers: int | None = None
    min_workers: int | None = None
    max_workers: int | None = None
    ps: int | None = None
    #: True `--chief`, False `--no-chief`.
    chief: bool | None = None
    evaluator: bool = False
    workers_per_host: int | None = None
    gpus_per_worker: int | None = None
    strategy: str | None = None
    name: str | None = None
    image: str | None = None
    python: str | None = None
    keras: str | None = None
    checkpoint: str | None = None
    #: `A-B`.
    ports: str | None = None
    hosts: int | None = None
    on: str | None = None
    max_restarts: int | None = None
    standbys: int | None = None
    silence: str | None = None
    start_timeout: str | None = None
    #: False `--no-preflight`.
    preflight: bool | None = None
    ignore_check: tuple[str, ...] = ()
    #: False `--no-pin`.
    pin: bool | None = None
    gpu_growth: bool | None = None
    hang: str | None = None
    finish: str | None = None
    #: Replace a TF_CONFIG of the user's environment.
    override: bool = False
    #: Give a one-task job a TF_CONFIG too.
    force_tf_config: bool = False


#: Where each flag's value goes. `chief` and `evaluator` are switches of a role's count.
_PLACES: Mapping[str, tuple[str, ...]] = {
    "workers": ("roles", "worker", "count"),
    "min_workers": ("roles", "worker", "min"),
    "max_workers": ("roles", "worker", "max"),
    "ps": ("roles", "ps", "count"),
    "chief": ("roles", "chief", "count"),
    "evaluator": ("roles", "evaluator", "count"),
    "workers_per_host": ("roles", "worker", "per_host"),
    "gpus_per_worker": ("roles", "worker", "gpus"),
    "strategy": ("strategy",),
    "name": ("name",),
    "image": ("image",),
    "python": ("python",),
    "keras": ("keras",),
    "checkpoint": ("checkpoint",),
    "ports": ("ports",),
    "hosts": ("hosts",),
    "max_restarts": ("restart", "max"),
    "standbys": ("restart", "standbys"),
    "silence": ("health", "silence"),
    "start_timeout": ("health", "start"),
    "hang": ("health", "hang"),
    "finish": ("health", "finish"),
    "force_tf_config": ("force_tf_config",),
    "preflight": ("preflight", "run"),
    "ignore_check": ("preflight", "ignore"),
    "pin": ("placement", "pin"),
    "gpu_growth": ("placement", "gpu_growth"),
}

#: Switches with a `--no-` of their own.
_SAYS_NO = frozenset({"chief", "preflight", "pin", "gpu_growth"})


def named(flags: Flags) -> dict[Loc, str]:
    """The values that come from flags, each with its flag as the user wrote it."""
    return {
        loc: f"--{'no-' if getattr(flags, name) is False else ''}{name.replace('_', '-')}"
        for name, loc in _PLACES.items()
        if _given(name, getattr(flags, name))
    }


def apply(job: Job | None, flags: Flags, command: tuple[str, ...] = ()) -> Job:
    """The job with the flags over it; a command replaces the file's. Raises JobFileError naming each wrong flag."""
    import pydantic  # noqa: PLC0415 - `phalanx --help` reads the flags without it

    from phalanx.job.complaint import Complaint, JobFileError  # noqa: PLC0415 - as above
    from phalanx.job.model import Job  # noqa: PLC0415 - as above
    from phalanx.job.wording import in_plain_words  # noqa: PLC0415 - as above

    data: dict[str, Any] = job.model_dump(exclude_unset=True, by_alias=True) if job is not None else {}
    for name, loc in _PLACES.items():
        value = getattr(flags, name)
        if _given(name, value):
            _put(data, loc, _value(name, value))
    if command:
        data["command"] = list(command)
    try:
        return Job.model_validate(data)
    except pydantic.ValidationError as wrong:
        sources = named(flags)
        complaints = []
        for error in wrong.errors(include_url=False):
            at, message = in_plain_words(error, {}, named=tuple(error["loc"]) not in sources)
            complaints.append(Complaint(message=message, source=sources.get(at, "")))
        raise JobFileError(complaints) from wrong


def _given(name: str, value: object) -> bool:
    """A switch that is off was not given, but `--no-chief` says something."""
    return value is not None and value != () and (value is not False or name in _SAYS_NO)


def _value(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return int(bool(value)) if name in {"chief", "evaluator"} else value


def _put(data: dict[str, Any], loc: tuple[str, ...], value: object) -> None:
    *parents, last = loc
    for part in parents:
        data = data.setdefault(part, {})
    data[last] = value

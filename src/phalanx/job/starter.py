"""A job.yaml to start from: what a script needs filled in, everything else as a comment with its default."""

from __future__ import annotations

from collections.abc import Sequence

from phalanx.job.command import default_name
from phalanx.job.dump import flow

_WORDS = {
    "mwms": "two or more workers",
    "ps": "workers, a chief and parameter servers",
    "estimator": "a chief and workers",
}


def starter(words: Sequence[str], *, strategy: tuple[str, str] | None, folder: str = ".") -> str:
    """The file's text.

    `words` is the command; `strategy` what the script names (`script.strategy.strategy_of`); `folder` where the command
    starts, as seen from the file's own folder.
    """
    kind, built = strategy or ("", "")
    seen = (
        f"the script names {built}: {_WORDS[kind]}"
        if kind
        else "auto: ps where there is a ps role, else mwms for two or more"
    )
    return f"""\
# What to run, how many, and how patiently. Lines that begin with "# " and a key show what holds without them.
#   phalanx plan job.yaml    shows what would start        phalanx run job.yaml    starts it
#   phalanx schema           says every field, its unit, its default and why

name: {default_name(words)}
command: {flow(list(words))}   # also {{checkpoint}} {{run}} {{task_dir}} {{generation}}, in quotes
{"# " if folder == "." else ""}folder: {flow(folder)}   # where it starts, and relative paths too; default: this file's

strategy: {kind or "auto"}   # {seen}
roles:
{_roles(kind)}
# env: {{TF_CPP_MIN_LOG_LEVEL: "1"}}   # for every task, beside your own environment; quote numbers
# secrets: [{{name: s3-key, env: AWS_SECRET_ACCESS_KEY, from: {{env: AWS_SECRET_ACCESS_KEY}}}}]   # never values

# checkpoint: /mnt/ckpt/{default_name(words)}   # one folder for all tasks; {{checkpoint}} in the command
# outputs: [model.keras]   # files the report looks for at the end

# health: {{start: 5m, finish: 10m, evaluator: 1m}}   # to listen; after the first end; to score a checkpoint
# grace: {{stop: 10s, failure: 0.5s}}   # between TERM and KILL: a stop you asked for; another task's failure

# hosts: 1   # on one machine more are simulated
# ports: 22000-22099   # default: phalanx's own pool
# python: .venv/bin/python   # default: the first with TensorFlow; `phalanx plan` shows which
# runtime: on   # off: nothing of phalanx inside the process

# image: registry.example.com/{default_name(words)}@sha256:0123   # Kubernetes: with the script and TensorFlow in it
# on: {{kubernetes: {{namespace: ml}}}}   # `phalanx render job.yaml` writes manifests; this machine does not read it
"""


def _roles(kind: str) -> str:
    lines = ["  worker: {count: 2}   # also cpus, gpus, memory, per_host, command, env"]
    chief = "  chief: {count: 1}"
    if kind == "ps":
        lines += [f"{chief}   # drives the workers", "  ps: {count: 1}"]
    elif kind == "estimator":
        lines += [chief]
    else:
        lines += [f"  # {chief.strip()}   # without one, worker 0 is the chief"]
    lines += ["  # evaluator: {count: 1}"]
    return "".join(f"{line}\n" for line in lines)

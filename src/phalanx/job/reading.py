"""What the scripts of a job say before it starts: advice as notes, and a refusal of what cannot work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phalanx.errors import InputError
from phalanx.job import command, keras
from phalanx.job.model import Job
from phalanx.names import KNOWN_TYPES
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.script.check import OF_HOSTS, check, surroundings, without
from phalanx.script.program import Roles
from phalanx.tfconfig.finding import Finding, Severity
from phalanx.tfconfig.quote import printable

#: Errors that a refusal prints; the rest are counted.
_MOST = 5


class ScriptError(InputError):
    """The script cannot work in this job. Carries every finding."""

    def __init__(self, findings: list[Finding], script: str, words: str) -> None:
        """At least one finding, each printed with its place and what to do; `words`: what `check` calls the script."""
        self.findings = tuple(findings)
        lines = [f"{script} cannot work in this job"]
        lines += [_line(finding) for finding in findings[:_MOST]]
        if len(findings) > _MOST:
            lines.append(f"and {len(findings) - _MOST} more")
        ids = " ".join(f"--ignore-check {one}" for one in dict.fromkeys(finding.id for finding in findings))
        super().__init__("\n".join(lines), hint=f"phalanx check {words} shows more; to start all the same: {ids}")


def _line(finding: Finding) -> str:
    place = f"{finding.path}:{finding.place.line}:{finding.place.column}"
    return printable(f"{place}: {finding.message} [{finding.id}]: {finding.consequence} Fix: {finding.fix}")


def read_scripts(job: Job, outline: Outline, environ: Mapping[str, str]) -> list[Finding]:
    """The findings about each script that some role runs, each script once. Raises ScriptError for what cannot work.

    A script that cannot be read or parsed is left to the interpreter. What the job's preflight ignores is left out.
    """
    if not job.preflight.run:
        return []
    found: list[Finding] = []
    for words, roles in _commands(job, outline).items():
        cwd = Path(outline.cwd)
        env = {**environ, **{name: value for role in roles for name, value in role.env.items()}}
        start = command.start_of(words, cwd=cwd, environ=env)
        if start is None:
            continue
        name = command.shown(words, start, cwd)
        around = surroundings(
            outline.interpreter,
            environ=env,
            cwd=cwd,
            roles=_counts(outline, roles),
            arguments=command.arguments_of(words),
            mends=all(keras.mends(outline, role.command, env) for role in roles),
        )
        try:
            told = check(start, around, shown=name)
        except OSError:
            continue
        told = without(told, {*job.preflight.ignore, *OF_HOSTS})
        if errors := [finding for finding in told if finding.severity is Severity.ERROR]:
            raise ScriptError(errors, name, command.program_words(words))
        found += told
    return found


def _commands(job: Job, outline: Outline) -> dict[tuple[str, ...], list[Role]]:
    """Each command as the user wrote it, with the roles that run it."""
    found: dict[tuple[str, ...], list[Role]] = {}
    for role in outline.roles:
        said = job.roles.get(role.type)
        found.setdefault(tuple((said.command if said else None) or job.command), []).append(role)
    return found


def _counts(outline: Outline, roles: list[Role]) -> Roles:
    """How many tasks run it as one cluster; tasks that get no TF_CONFIG are each alone."""
    if outline.strategy is Strategy.NONE or (outline.is_alone() and not outline.force_tf_config):
        return Roles(worker=1)
    counts = {role.type: role.count for role in roles if role.type in KNOWN_TYPES}
    # Who else is in the cluster matters, whatever it runs.
    counts |= {role.type: role.count for role in outline.roles if role.type in ("chief", "ps")}
    return Roles(**counts, serves=any(role.type in ("worker", "ps") for role in roles))

"""What a job for Kubernetes may not hold: values of secrets, where only references to them belong."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.job import templates
from phalanx.job.advise import environments, looks_secret
from phalanx.job.complaint import Loc
from phalanx.job.model import Job
from phalanx.redact import redact, tells

Said = tuple[Loc, str]


def mistakes(job: Job) -> Iterator[Said]:
    """Sources that no pod can reach, and values that look like secrets; the values are not repeated."""
    yield from _sources(job)
    yield from _credentials(job)
    yield from _in_templates(job)


def _sources(job: Job) -> Iterator[Said]:
    taken: set[str] = set()
    for number, secret in enumerate(job.secrets):
        if not secret.source.secret:
            yield (
                ("secrets", number, "from"),
                (
                    "a pod cannot see your environment or your files; name a Secret: from: {secret: NAME, key: KEY} "
                    "(kubectl create secret generic NAME --from-file=KEY=FILE)"
                ),
            )
        if secret.path and (secret.path.startswith("/phalanx/") or secret.path in taken):
            why = "is phalanx's own place" if secret.path.startswith("/phalanx/") else "holds another secret"
            yield ("secrets", number, "path"), f"{secret.path} {why}; choose another"
        taken.add(secret.path or "")


def _credentials(job: Job) -> Iterator[Said]:
    """Manifests are read by many and kept in Git: what looks like a secret is refused, never written there."""
    advice = "make it a Secret and refer to it: secrets: [{name: …, env: …, from: {secret: NAME, key: KEY}}]"
    for loc, env in environments(job):
        for variable, value in env.items():
            if looks_secret(variable, value):
                yield (*loc, variable), f"the value of {variable} looks like a secret; {advice}"
    commands: list[tuple[Loc, list[str]]] = [(("command",), job.command)]
    commands += [(("roles", name, "command"), role.command) for name, role in job.roles.items() if role.command]
    for loc, words in commands:
        if tells(" ".join(words)):
            yield loc, f"a word of the command looks like a secret; {advice}"


def _in_templates(job: Job) -> Iterator[Said]:
    for loc, template in templates.overlays(job):
        for where in _shapes(loc, template):
            yield where, "this text looks like a secret; keep it in a Secret, and write valueFrom or a volume"
        for at, container in templates.containers(template):
            for number, entry in enumerate(templates.mappings(container.get("env"))):
                name, given = str(entry.get("name", "")), entry.get("value")
                where = (*loc, "spec", *at, "env", number)
                if name == "TF_CONFIG":
                    yield where, "TF_CONFIG is written by phalanx; leave it out"
                elif isinstance(given, str) and looks_secret(name, given):
                    yield where, f"the value of {name} looks like a secret; write valueFrom: {{secretKeyRef: …}}"


def _shapes(loc: Loc, value: object) -> Iterator[Loc]:
    """Where a text inside looks like a credential by its shape, whatever it is called."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _shapes((*loc, key), inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _shapes((*loc, number), inner)
    elif isinstance(value, str) and redact(value) != value:
        yield loc

"""How many workers an elastic job runs with, by how many hosts live and what was asked for."""

from __future__ import annotations

import dataclasses

from phalanx.errors import InputError
from phalanx.plan.outline import Outline, Strategy


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Elastic:
    """The range of an elastic job's workers, and what one host takes. Not elastic: fewest = most."""

    #: As declared: the size to begin with.
    count: int
    fewest: int
    most: int
    #: Workers on one host; None: as many as the declared hosts need for the size that is asked for.
    per_host: int | None
    #: Hosts as declared.
    hosts: int

    def size(self, living: int, asked: int | None = None) -> int | None:
        """Workers for `living` hosts; None where they do not suffice.

        `asked` is what somebody has scaled to: never more than that. Without it a host beyond the declared ones makes
        the job grow, up to `most`.
        """
        found = min(self.most if asked is None else asked, living * self.room(asked or self.count))
        return found if found >= self.fewest else None

    def room(self, workers: int) -> int:
        """How many a host takes where there are so many in all."""
        return self.per_host or -(-workers // self.hosts)


def check_size(elastic: Elastic | None, workers: int) -> None:
    """Raises InputError where the job does not take so many workers."""
    if elastic is None:
        raise InputError(
            "only workers of MultiWorkerMirroredStrategy can be scaled", hint="start it again in the size you want"
        )
    if not elastic.fewest <= workers <= elastic.most:
        raise InputError(
            f"{workers} workers: this job takes {elastic.fewest} to {elastic.most}",
            hint="the range is fixed when a run starts: --min-workers, --max-workers",
        )


def elastic_of(outline: Outline) -> Elastic | None:
    """The range of the outline's workers; None where nobody may change their number (facts §3: MWMS alone resumes)."""
    if outline.strategy is not Strategy.MWMS or not any(role.type == "worker" for role in outline.roles):
        return None
    role = outline.role("worker")
    return Elastic(
        count=role.count,
        fewest=role.min or role.count,
        most=role.max or role.count,
        per_host=role.per_host,
        hosts=outline.hosts,
    )


def resized(outline: Outline, workers: int) -> Outline:
    """The same job with so many workers."""
    roles = tuple(
        dataclasses.replace(role, count=workers, min=role.min or role.count, max=role.max or role.count)
        if role.type == "worker"
        else role
        for role in outline.roles
    )
    return dataclasses.replace(outline, roles=roles)


def at_its_largest(outline: Outline) -> Outline:
    """For whoever keeps room: ports are held for as many workers as there may ever be."""
    elastic = elastic_of(outline)
    return resized(outline, max(elastic.most, elastic.count)) if elastic else outline

"""What every object of a run is called, and whether Kubernetes takes it (R33, R34).

A name that is one character too long is refused by whatever meets it first, often long after the start: so all are
made and measured before anything is applied.
"""

from __future__ import annotations

import dataclasses
import re

from phalanx.errors import InputError
from phalanx.plan.outline import Outline

#: DNS labels, and values of labels.
LONGEST = 63
#: What the Job controller, or JobSet's, hangs on a pod's name.
_RANDOM = "-xxxxx"
#: A Service's name begins with a letter (DNS-1035).
_LABEL = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z", re.ASCII)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """Of one run."""

    run: str
    #: JobSet puts the number of the Job, always 0 here, between role and index.
    jobset: bool = False

    @property
    def service(self) -> str:
        """The headless Service, and the domain of its pods."""
        return self.run

    @property
    def outline(self) -> str:
        """The ConfigMap of outline.json and pod.json."""
        return f"{self.run}-outline"

    @property
    def key(self) -> str:
        """The Secret of the run key; also the account whose token becomes it, where no client makes one."""
        return f"{self.run}-key"

    @property
    def lead(self) -> str:
        """ServiceAccount, Role and RoleBinding of who may lead."""
        return f"{self.run}-lead"

    @property
    def report(self) -> str:
        """The ConfigMap that the lead writes its report into."""
        return f"{self.run}-report"

    @property
    def cluster(self) -> str:
        """The ConfigMap of a static cluster's TF_CONFIGs."""
        return f"{self.run}-cluster"

    def agent(self, piece: int) -> str:
        """The ConfigMap of one piece of the agent."""
        return f"{self.run}-agent-{piece}"

    def job(self, role: str) -> str:
        """The Job of a role, as its pods see it."""
        return f"{self.run}-{role}-0" if self.jobset else f"{self.run}-{role}"

    def host(self, role: str, index: int | str) -> str:
        """The host name of a pod; `index` may be a reference such as `$(PHALANX_POD_INDEX)`."""
        return f"{self.job(role)}-{index}"

    def address(self, role: str, index: int | str) -> str:
        """The name under which the others find it, whatever the cluster's domain is (R35)."""
        return f"{self.host(role, index)}.{self.service}"


def check(names: Names, outline: Outline) -> None:
    """Raises InputError where a name of some object of the run would be refused, before there is one."""
    if not _LABEL.match(names.run):
        raise InputError(
            f"{names.run!r} cannot be the name of a run on Kubernetes: lower-case letters, digits and dashes, "
            "beginning with a letter and not ending in a dash",
            hint="say --name, or name: in job.yaml",
        )
    made = [
        names.host(role.type, max(role.count, role.max or 0) - 1) + (_RANDOM if names.jobset else "")
        for role in outline.roles
    ]
    longest = max([names.run, *made], key=len)
    if len(longest) > LONGEST:
        room = len(names.run) - (len(longest) - LONGEST)
        raise InputError(
            f"{longest} has {len(longest)} characters, and Kubernetes takes {LONGEST} for a pod's name",
            hint=f"a run may be called by {room} characters here, {names.run} has {len(names.run)}: say --name"
            if room > 0
            else "give the role a shorter name",
        )

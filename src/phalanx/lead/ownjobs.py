"""What a lead changes in its cluster: the sizes of its Jobs, its report; and how a client asks it by them to stop."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Mapping
from typing import Any

from phalanx.apiwatch import ApiRefusedError
from phalanx.decide.podfields import host_number
from phalanx.lead.inpod import InPod
from phalanx.plan.marks import STOP
from phalanx.records.folder import RunFolder
from phalanx.records.gist import gist

#: Bytes of a report that a ConfigMap takes, and of the same for people.
_REPORT, _GIST = 700_000, 16_000

#: Seconds between two looks for the report.
_LOOK = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What `pod.json` says of the run's pods."""

    run: str
    #: Each role with the number of its first host.
    roles: tuple[tuple[str, int], ...]
    #: The Job of the lead's role.
    lead_job: str

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> Facts:
        """From the JSON."""
        roles = tuple((str(role), int(first)) for role, first, *_ in pod["roles"])
        return cls(run=str(pod["run"]), roles=roles, lead_job=str(pod["lead"]).partition(".")[0].rpartition("-")[0])

    def host(self, pod: Mapping[str, Any]) -> int | None:
        """The number of the host that a pod is."""
        return host_number(pod, self.roles)

    def name(self, host: int) -> str:
        """`worker-2`, as its pod is called after the run."""
        role, first = max((one for one in self.roles if one[1] <= host), key=lambda one: one[1])
        return f"{role}-{host - first}"

    def job(self, role: str) -> str:
        """The Job of a role."""
        own = self.roles[0][0]
        return self.lead_job[: -len(own)] + role if self.lead_job.endswith(own) else f"{self.run}-{role}"


class Jobs:
    """The run's own objects, by name. Everything may take seconds, and raises ApiRefusedError."""

    def __init__(self, facts: Facts, api: InPod) -> None:
        """Asks nothing yet."""
        self._facts, self._api = facts, api

    def resize(self, role: str, count: int) -> None:
        """The Job makes, or takes away, the pods of the highest indexes."""
        change = {"spec": {"completions": count, "parallelism": count}}
        self._merge(self._job(self._facts.job(role)), change)

    def stop_asked(self) -> str:
        """Who has asked the run to stop by way of its Job; empty where nobody has."""
        job = self._api.get(self._job(self._facts.lead_job), {})
        by = ((job.get("metadata") or {}).get("annotations") or {}).get(STOP)
        return str(by) if by and (job.get("spec") or {}).get("suspend") else ""

    def publish(self, report: Mapping[str, str]) -> None:
        """Into the ConfigMap that outlives the pods; what is too large for it is left out."""
        data = {name: text for name, text in report.items() if len(text.encode()) < _REPORT}
        self._merge(f"/api/v1/namespaces/{self._api.namespace}/configmaps/{self._facts.run}-report", {"data": data})

    def release(self) -> None:
        """The run has ended, and not well: no Job makes a new pod, and pods that have not begun go.

        The others' deadlines are over at once. Our own ends with this pod, which then stays, with its log.
        """
        jobs = [self._facts.job(role) for role, _ in self._facts.roles]
        for job in jobs:
            if job != self._facts.lead_job:
                self._merge(self._job(job), {"spec": {"activeDeadlineSeconds": 1}})
        self._merge(self._job(self._facts.lead_job), {"spec": {"backoffLimit": 0}})

    def _job(self, name: str) -> str:
        return f"/apis/batch/v1/namespaces/{self._api.namespace}/jobs/{name}"

    def _merge(self, path: str, change: Mapping[str, Any]) -> None:
        """With a second and a third try where the API does not answer."""
        for delay in (0.5, 1.0, 0.0):
            try:
                self._api.merge(path, change)
            except ApiRefusedError as wrong:
                if not wrong.passing or not delay:
                    raise
                time.sleep(max(delay, min(wrong.retry_after, 2.0)))
            else:
                return


async def published(folder: RunFolder, *, patience: float = 3.0) -> dict[str, str]:
    """The report as a ConfigMap has it: in a few sentences, and whole. It is written beside us: waits for it."""
    end = time.monotonic() + patience
    while not folder.report.exists() and time.monotonic() < end:  # noqa: ASYNC110 - a file tells nobody when it comes
        await asyncio.sleep(_LOOK)
    try:
        text = folder.report.read_text(encoding="utf-8")
        return {"report.txt": gist(json.loads(text), _GIST), "report.json": text}
    except (OSError, ValueError):
        return {}

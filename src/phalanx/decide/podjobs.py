"""What a Job of the cluster says of the pods that it cannot make: quota, admission, suspension, its own end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.decide.exits import Kind
from phalanx.decide.podfields import event_message, text, true_condition
from phalanx.decide.seen import Seen, Standing

#: `Error creating: pods "ctr-worker-0-x7k" is forbidden: exceeded quota: …`.
_CREATING = re.compile(r"\AError creating: (?:pods \"[^\"]*\" is forbidden: )?")

#: What the API refuses a pod for, and what to do; the first that matches wins.
_REFUSALS: tuple[tuple[re.Pattern[str], str, Kind, str, str], ...] = (
    (
        re.compile(r"exceeded quota"),
        "quota",
        Kind.INFRASTRUCTURE,
        "waits for quota",
        "lower what the roles ask for, or have the namespace's quota raised: `kubectl describe quota`",
    ),
    (
        re.compile(r"violates PodSecurity"),
        "security",
        Kind.USER,
        "is refused by the namespace's Pod Security profile",
        "leave `restricted` on, and take what the message names out of the pod template",
    ),
    (
        re.compile(r"serviceaccount|service account"),
        "account",
        Kind.USER,
        "waits for its service account",
        "create it, or say `rbac: none`",
    ),
    (re.compile(r"priorityclass|PriorityClass"), "priority", Kind.USER, "is refused", "correct on.kubernetes.priority"),
    (
        re.compile(r"(?:minimum|maximum) \w+ usage per"),
        "limits",
        Kind.USER,
        "is refused by the namespace's limits",
        "`kubectl describe limitrange` shows them",
    ),
)

#: By the reason of a Job's condition Failed.
_ENDS = {
    "DeadlineExceeded": (Kind.USER, "its deadline is over (on.kubernetes.deadline)"),
    "PodFailurePolicy": (Kind.USER, "a pod of it has failed for good"),
    "BackoffLimitExceeded": (Kind.INFRASTRUCTURE, "its pods have failed too often"),
    "FailedIndexes": (Kind.INFRASTRUCTURE, "pods of it have failed too often"),
    "MaxFailedIndexesExceeded": (Kind.INFRASTRUCTURE, "pods of it have failed too often"),
}


def see_job(job: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> Seen | None:
    """What is to be said of a Job beyond its pods; None where it has made them, or has ended well."""
    status = job.get("status") or {}
    failed = true_condition(status, "Failed") or true_condition(status, "FailureTarget")
    if failed is not None:
        reason, message = text(failed.get("reason")), text(failed.get("message"))
        kind, why = _ENDS.get(reason, (Kind.INFRASTRUCTURE, reason or "nobody says why"))
        return Seen(
            cause="job-failed",
            kind=kind,
            standing=Standing.GONE,
            says=f"has failed: {why}" + (f" ({message})" if message else ""),
        )
    if (job.get("spec") or {}).get("suspend") is True:
        return Seen(
            cause="suspended",
            kind=Kind.PREEMPTION,
            standing=Standing.WAITS,
            says="is suspended: a queue has not admitted it yet, or somebody has suspended it",
            advice="`kubectl get workloads` shows the queue, where there is one",
        )
    missing = _count((job.get("spec") or {}).get("parallelism")) - _count(status.get("active"))
    if missing <= _count(status.get("succeeded")) or status.get("completionTime"):
        return None
    message = event_message(events, "FailedCreate", job)
    return _refused(message) if message else None


def _refused(message: str) -> Seen:
    words = " ".join(_CREATING.sub("", message).split())
    for pattern, cause, kind, says, advice in _REFUSALS:
        if pattern.search(words):
            return Seen(cause=cause, kind=kind, standing=Standing.WAITS, says=f"{says}: {words}", advice=advice)
    return Seen(
        cause="refused", kind=Kind.INFRASTRUCTURE, standing=Standing.WAITS, says=f"its pods cannot be made: {words}"
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0

"""What a pod's state means: whether it waits, ails or is gone, whose failure that is, in which words, and what to do.

Pure, over the JSON of the API, so that the lead in its pod and a client from outside say the same. What nobody here
knows is passed on in the API's own words. What each form looks like was seen on Kubernetes 1.34.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.decide.exits import Kind
from phalanx.decide.podcontainers import containers
from phalanx.decide.podfields import conditions, event_message, own_status, text, true_condition
from phalanx.decide.seen import Seen, Standing, at_node, detail, end_or_ails, found, short


def see(pod: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = ()) -> Seen | None:
    """What is to be said of this pod; None where it runs, or has ended well. `events` are those about it, any order."""
    status = pod.get("status") or {}
    phase = text(status.get("phase"))
    if phase == "Succeeded":
        return None
    return (
        _disrupted(pod, status)
        or _by_reason(pod, status)
        or _deleted(pod, status)
        or containers(pod, status)
        or (_pending(pod, status, events) if phase == "Pending" else None)
        or _node_silent(pod, status)
        or _unknown(status, phase)
    )


# It is taken away -------------------------------------------------------------------------------------------------

#: By the reason of the condition DisruptionTarget.
_DISRUPTIONS: dict[str, tuple[str, Kind, str, str]] = {
    "PreemptionByScheduler": (
        "preempted",
        Kind.PREEMPTION,
        "was preempted: the scheduler gives its place to a pod of higher priority",
        "give the job a higher `priority`, or wait: it goes on when there is room",
    ),
    "EvictionByEvictionAPI": (
        "evicted",
        Kind.PREEMPTION,
        "was evicted through the API, as `kubectl drain` or an autoscaler does",
        "",
    ),
    "DeletionByTaintManager": (
        "tainted",
        Kind.INFRASTRUCTURE,
        "was deleted from its node, which is not ready, unreachable or tainted NoExecute",
        "look at that node: `kubectl describe node`",
    ),
    "DeletionByPodGC": (
        "node-gone",
        Kind.INFRASTRUCTURE,
        "was deleted since its node is gone",
        "look at the cluster's nodes: `kubectl get nodes`",
    ),
    "TerminationByKubelet": (
        "ended-by-node",
        Kind.INFRASTRUCTURE,
        "was ended by its node",
        "look at that node: `kubectl describe node`",
    ),
}


def _disrupted(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    condition = true_condition(status, "DisruptionTarget")
    if condition is None:
        return None
    reason = text(condition.get("reason"))
    own = text(status.get("reason"))
    if reason == "TerminationByKubelet" and own:
        return _by_reason(pod, status)
    if reason not in _DISRUPTIONS:
        said = short(text(condition.get("message")) or reason)
        return found("disrupted", Kind.PREEMPTION, end_or_ails(status), f"is taken away: {said}")
    cause, kind, says, advice = _DISRUPTIONS[reason]
    message = short(text(condition.get("message")))
    detail = f" ({message})" if message else ""
    return found(cause, kind, end_or_ails(status), f"{_there(says, pod)}{detail}", advice)


def _deleted(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """How its container ended says nothing then, but where it was out of memory before."""
    if not (pod.get("metadata") or {}).get("deletionTimestamp"):
        return None
    ended = containers(pod, status)
    if ended is not None and ended.cause == "oom":
        return ended
    standing = end_or_ails(status)
    was = "was" if standing is Standing.GONE else "is being"
    says = f"{was} deleted: by hand, or since its Job was suspended, scaled down or deleted"
    return found("deleted", Kind.PREEMPTION, standing, says)


# What the pod itself gives as the reason ---------------------------------------------------------------------------

#: By `status.reason`; the message of the API comes after the words.
_REASONS: dict[str, tuple[str, Kind, str, str]] = {
    "Evicted": (
        "evicted",
        Kind.INFRASTRUCTURE,
        "was evicted by its node",
        "ask for as much memory and ephemeral storage as the task uses, so that the node does not run short",
    ),
    "DeadlineExceeded": (
        "deadline",
        Kind.USER,
        "ran longer than its Job may (`deadline`)",
        "raise on.kubernetes.deadline",
    ),
    "NodeLost": ("node-lost", Kind.INFRASTRUCTURE, "is on a node that no longer answers", "look at that node"),
    "NodeShutdown": ("node-shutdown", Kind.PREEMPTION, "was ended since its node shuts down", ""),
    "Shutdown": ("node-shutdown", Kind.PREEMPTION, "was ended since its node shuts down", ""),
    "Terminated": ("node-shutdown", Kind.PREEMPTION, "was ended since its node shuts down", ""),
    "Preempting": ("preempted", Kind.PREEMPTION, "was preempted on its node by a pod of higher priority", ""),
    "UnexpectedAdmissionError": (
        "refused-by-node",
        Kind.INFRASTRUCTURE,
        "was refused by its node",
        "a device of that node is taken or broken: `kubectl describe node`",
    ),
    "NodeAffinity": (
        "refused-by-node",
        Kind.INFRASTRUCTURE,
        "was refused by its node, whose labels have changed",
        "",
    ),
}
_OUT_OF = re.compile(r"Out[oO]f(?P<what>.+)\Z")


def _by_reason(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    reason = text(status.get("reason"))
    if not reason:
        return None
    message = short(text(status.get("message")))
    detail = f": {message}" if message else ""
    if lacks := _OUT_OF.match(reason):
        return found(
            "refused-by-node",
            Kind.INFRASTRUCTURE,
            Standing.GONE,
            f"was refused by its node{at_node(pod)}, which has no {lacks['what']} left{detail}",
        )
    cause, kind, says, advice = _REASONS.get(reason, ("other", Kind.INFRASTRUCTURE, f"has ended: {reason}", ""))
    return found(cause, kind, end_or_ails(status), f"{_there(says, pod)}{detail}", advice)


# It has not begun --------------------------------------------------------------------------------------------------

#: What the scheduler adds about preempting others is no reason.
_PREEMPTION = re.compile(r"\s*(?:preemption: |no new claims to deallocate).*\Z", re.DOTALL)


def _pending(pod: Mapping[str, Any], status: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> Seen | None:
    for condition in conditions(status, "PodScheduled"):
        if condition.get("status") == "False":
            return _unscheduled(condition)
    for reason in ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"):
        if message := event_message(events, reason, pod):
            return _not_made(reason, message)
    return None


def _unscheduled(condition: Mapping[str, Any]) -> Seen:
    reason = text(condition.get("reason"))
    message = short(_PREEMPTION.sub("", text(condition.get("message"))).rstrip(". "))
    if reason == "SchedulingGated":
        return found("gated", Kind.INFRASTRUCTURE, Standing.WAITS, "waits for admission: a queue holds it back", "")
    if "unbound immediate PersistentVolumeClaims" in message:
        advice = "`kubectl get pvc`: is there a volume, or a storage class that makes one?"
        return found("volume", Kind.USER, Standing.WAITS, f"waits for a volume: {message}", advice)
    if "persistentvolumeclaim" in message.lower() and "not found" in message:
        return found(
            "volume",
            Kind.USER,
            Standing.WAITS,
            f"waits for a volume: {message}",
            "create the claim, or correct its name in job.yaml",
        )
    advice = "lower what the roles ask for, or wait for room: `kubectl describe nodes` shows what is taken"
    if "Insufficient" not in message and ("affinity" in message or "selector" in message or "taint" in message):
        advice = "no node is as `placement` and the pod template want it: `kubectl get nodes --show-labels`"
    return found("unschedulable", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits for a node: {message or reason}", advice)


def _not_made(reason: str, message: str) -> Seen:
    message = short(message)
    if reason == "FailedCreatePodSandBox":
        return found(
            "sandbox", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits: its node cannot make its network: {message}"
        )
    missing = re.search(r'(secret|configmap|persistentvolumeclaim) "[^"]+" not found', message)
    if missing:
        return found(
            "volume", Kind.USER, Standing.WAITS, f"waits for a volume: {missing[0]}", "create it, or correct its name"
        )
    return found("volume", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits for a volume: {message}")


# It runs, or nobody can tell ---------------------------------------------------------------------------------------


def _node_silent(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """The node controller says that a pod is not ready, though its containers were when their node last spoke."""
    ready = [one for one in conditions(status, "Ready") if one.get("status") == "False"]
    if not ready or status.get("phase") != "Running" or not own_status(pod).get("ready"):
        return None
    says = f"is on a node{at_node(pod)} that has not been heard of for a while"
    return found("node-silent", Kind.INFRASTRUCTURE, Standing.AILS, says, "look at that node: `kubectl get nodes`")


def _unknown(status: Mapping[str, Any], phase: str) -> Seen | None:
    if phase in ("", "Pending", "Running"):
        return None
    message = short(text(status.get("message")))
    if phase == "Failed":
        return found("failed", Kind.INFRASTRUCTURE, Standing.GONE, f"has failed{detail(message)}")
    return found("other", Kind.INFRASTRUCTURE, Standing.AILS, f"is {phase}{detail(message)}")


def _there(says: str, pod: Mapping[str, Any]) -> str:
    """With the node's name where it is spoken of; at the end where it is not."""
    if "its node" in says:
        return says.replace("its node", f"its node{at_node(pod)}", 1)
    return says.replace("a node", f"node{at_node(pod)}", 1)

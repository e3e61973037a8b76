"""What a pod's state means: whether it waits, ails or is gone, whose failure that is, in which words, and what to do.

Pure, over the JSON of the API, so that the lead in its pod and a client from outside say the same. What nobody here
knows is passed on in the API's own words. What each form looks like was seen on Kubernetes 1.34.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any

from phalanx.decide.exits import Kind, by_code
from phalanx.decide.podfields import conditions, entries, event_message, text, true_condition
from phalanx.decide.podimage import image_trouble

#: The container in which the agent is; all others are sidecars.
CONTAINER = "task"

#: Characters of the API's own words that a sentence takes.
_WORDS = 400


class Standing(enum.Enum):
    """What a finding means for the host that the pod is."""

    WAITS = "waits"  # it has not begun, and the reason is one that people should know
    AILS = "ails"  # it began, and may not be heard of again: it is being ended, or its node is silent
    GONE = "gone"  # its container has ended, or can never begin


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One finding about one pod, or about a Job that has no pods."""

    #: Which one, in one word: `unschedulable`, `oom`, `image`, `evicted`; the same for the same reason.
    cause: str
    kind: Kind
    standing: Standing
    #: As said after the pod's name: `waits: 0/3 nodes are available: 3 Insufficient cpu`.
    says: str
    advice: str = ""


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
        or _containers(pod, status)
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
        said = _short(text(condition.get("message")) or reason)
        return _found("disrupted", Kind.PREEMPTION, _end_or_ails(status), f"is taken away: {said}")
    cause, kind, says, advice = _DISRUPTIONS[reason]
    message = _short(text(condition.get("message")))
    detail = f" ({message})" if message else ""
    return _found(cause, kind, _end_or_ails(status), f"{says}{_at(pod)}{detail}", advice)


def _deleted(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """How its container ended says nothing then, but where it was out of memory before."""
    if not (pod.get("metadata") or {}).get("deletionTimestamp"):
        return None
    ended = _containers(pod, status)
    if ended is not None and ended.cause == "oom":
        return ended
    standing = _end_or_ails(status)
    was = "was" if standing is Standing.GONE else "is being"
    says = f"{was} deleted: by hand, or since its Job was suspended, scaled down or deleted"
    return _found("deleted", Kind.PREEMPTION, standing, says)


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
#: What the agent, whose exit code is the container's, means by its own.
_OUR_CODES: dict[int, tuple[Kind, str]] = {
    1: (Kind.USER, "the job has failed"),
    2: (Kind.USER, "its input is wrong"),
    3: (Kind.INFRASTRUCTURE, "the place has failed"),
    4: (Kind.PREEMPTION, "stopped on request"),
}
_OUT_OF = re.compile(r"Out[oO]f(?P<what>.+)\Z")


def _by_reason(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    reason = text(status.get("reason"))
    if not reason:
        return None
    message = _short(text(status.get("message")))
    detail = f": {message}" if message else ""
    if lacks := _OUT_OF.match(reason):
        return _found(
            "refused-by-node",
            Kind.INFRASTRUCTURE,
            Standing.GONE,
            f"was refused by its node{_at(pod)}, which has no {lacks['what']} left{detail}",
        )
    cause, kind, says, advice = _REASONS.get(reason, ("other", Kind.INFRASTRUCTURE, f"has ended: {reason}", ""))
    return _found(cause, kind, _end_or_ails(status), f"{says}{_at(pod)}{detail}", advice)


# What its containers tell ------------------------------------------------------------------------------------------


def _containers(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """The first trouble: of what runs before the task, of the task, of what runs beside it."""
    found = entries(status, "containerStatuses")
    ours = [one for one in found if one.get("name") == CONTAINER]
    others = [one for one in found if one.get("name") != CONTAINER]
    for one in (*entries(status, "initContainerStatuses"), *ours, *others):
        seen = _container(pod, one)
        if seen is not None:
            return seen
    return None


def _container(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    state = status.get("state") or {}
    waiting, ended = state.get("waiting"), state.get("terminated")
    if isinstance(waiting, Mapping):
        return _held_up(pod, status, waiting)
    if isinstance(ended, Mapping) and ended.get("exitCode") != 0:
        return _ended(pod, status, ended)
    return None


def _held_up(  # noqa: PLR0911 - one return a reason
    pod: Mapping[str, Any], status: Mapping[str, Any], waiting: Mapping[str, Any]
) -> Seen | None:
    reason, message = text(waiting.get("reason")), _short(text(waiting.get("message")))
    image = text(status.get("image"))
    if reason in ("", "ContainerCreating", "PodInitializing"):
        return None
    if trouble := image_trouble(reason, image, message):
        says, advice = trouble
        return _found("image", Kind.USER, Standing.WAITS, says, advice)
    if reason == "CreateContainerConfigError":
        return _config(message)
    if reason in ("CreateContainerError", "RunContainerError"):
        return _cannot_run(reason, message)
    if reason == "CrashLoopBackOff":
        last = (status.get("lastState") or {}).get("terminated")
        if isinstance(last, Mapping):
            seen = _ended(pod, status, last)
            times = status.get("restartCount", 0)
            return dataclasses.replace(seen, cause="crash-loop", says=f"{seen.says}, {times} times by now")
        return _found("crash-loop", Kind.USER, Standing.GONE, f"ends again and again{_detail(message)}")
    return _found("other", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits: {reason}{_detail(message)}")


_MISSING = re.compile(r'(?P<what>secret|configmap) "(?P<name>[^"]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<what>Secret|ConfigMap) (?P<name>\S+)")


def _config(message: str) -> Seen:
    """Something is missing that the container is to be started with."""
    if missing := _MISSING.search(message):
        what = {"secret": "Secret", "configmap": "ConfigMap"}[missing["what"]]
        says = f"cannot start: the {what} {missing['name']!r} does not exist in its namespace"
        return _found(
            "config",
            Kind.USER,
            Standing.WAITS,
            says,
            f"create it, or correct its name in job.yaml: {what}s are not copied",
        )
    if lacks := _NO_KEY.search(message):
        says = f"cannot start: the {lacks['what']} {lacks['name']} has no key {lacks['key']!r}"
        return _found("config", Kind.USER, Standing.WAITS, says, "correct the key in job.yaml, or add it there")
    if "runAsNonRoot" in message:
        advice = (
            "say which user it runs as with on.kubernetes.user, or `restricted: off` where the namespace allows root"
        )
        return _found("config", Kind.USER, Standing.WAITS, f"cannot start: {message}", advice)
    return _found("config", Kind.USER, Standing.WAITS, f"cannot start: {message or 'its configuration is wrong'}")


def _cannot_run(reason: str, message: str) -> Seen:
    advice = ""
    if "executable file not found" in message or "no such file or directory" in message:
        advice = "the image lacks that program: it needs /bin/sh and a Python of at least 3.11"
    return _found("cannot-run", Kind.USER, Standing.WAITS, f"cannot start{_detail(message or reason)}", advice)


def _ended(pod: Mapping[str, Any], status: Mapping[str, Any], ended: Mapping[str, Any]) -> Seen:
    name, reason = text(status.get("name")), text(ended.get("reason"))
    code = ended.get("exitCode")
    code = code if isinstance(code, int) else 0
    message = _short(text(ended.get("message")))
    whose = "" if name == CONTAINER else f"'s container {name!r}"
    if reason == "OOMKilled":
        limit = _memory_limit(pod, name)
        of = f"its limit of {limit}" if limit else "what its node had left"
        advice = "raise the role's `memory`, or lower the batch size" if limit else "give the role a `memory`"
        return _found(
            "oom",
            Kind.INFRASTRUCTURE,
            Standing.GONE,
            f"{whose} was OOMKilled: it used more memory than {of}".strip(),
            advice,
        )
    if reason in ("ContainerCannotRun", "StartError"):
        return dataclasses.replace(_cannot_run(reason, message), standing=Standing.GONE)
    if reason == "ContainerStatusUnknown":
        says = f"{whose} was lost with its node{_at(pod)}".strip()
        return _found(
            "node-lost", Kind.INFRASTRUCTURE, Standing.GONE, says, "look at that node: `kubectl describe node`"
        )
    if reason == "DeadlineExceeded":
        return _found(
            "deadline",
            Kind.USER,
            Standing.GONE,
            "ran longer than its Job may (`deadline`)",
            "raise on.kubernetes.deadline",
        )
    kind, why = _OUR_CODES.get(code) or by_code(code) if name == CONTAINER else by_code(code)
    signal = ended.get("signal")
    said = f"exited with code {code}" + (f" by signal {signal}" if isinstance(signal, int) and signal else "")
    because = f" ({why})" if why and name == CONTAINER else ""
    return _found("exited", kind, Standing.GONE, f"{whose} {said}{because}{_detail(message)}".strip())


def _memory_limit(pod: Mapping[str, Any], name: str) -> str:
    for one in entries(pod.get("spec") or {}, "containers"):
        if one.get("name") == name:
            return text(((one.get("resources") or {}).get("limits") or {}).get("memory"))
    return ""


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
    message = _short(_PREEMPTION.sub("", text(condition.get("message"))).rstrip(". "))
    if reason == "SchedulingGated":
        return _found("gated", Kind.INFRASTRUCTURE, Standing.WAITS, "waits for admission: a queue holds it back", "")
    if "unbound immediate PersistentVolumeClaims" in message:
        advice = "`kubectl get pvc`: is there a volume, or a storage class that makes one?"
        return _found("volume", Kind.USER, Standing.WAITS, f"waits for a volume: {message}", advice)
    if "persistentvolumeclaim" in message.lower() and "not found" in message:
        return _found(
            "volume",
            Kind.USER,
            Standing.WAITS,
            f"waits for a volume: {message}",
            "create the claim, or correct its name in job.yaml",
        )
    advice = "lower what the roles ask for, or wait for room: `kubectl describe nodes` shows what is taken"
    if "Insufficient" not in message and ("affinity" in message or "selector" in message or "taint" in message):
        advice = "no node is as `placement` and the pod template want it: `kubectl get nodes --show-labels`"
    return _found(
        "unschedulable", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits for a node: {message or reason}", advice
    )


def _not_made(reason: str, message: str) -> Seen:
    message = _short(message)
    if reason == "FailedCreatePodSandBox":
        return _found(
            "sandbox", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits: its node cannot make its network: {message}"
        )
    missing = re.search(r'(secret|configmap|persistentvolumeclaim) "[^"]+" not found', message)
    if missing:
        return _found(
            "volume", Kind.USER, Standing.WAITS, f"waits for a volume: {missing[0]}", "create it, or correct its name"
        )
    return _found("volume", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits for a volume: {message}")


# It runs, or nobody can tell ---------------------------------------------------------------------------------------


def _node_silent(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """The node controller says that a pod is not ready, though its containers were when their node last spoke."""
    ready = [one for one in conditions(status, "Ready") if one.get("status") == "False"]
    ours = [one for one in entries(status, "containerStatuses") if one.get("name") == CONTAINER]
    if not ready or status.get("phase") != "Running" or not all(one.get("ready") for one in ours) or not ours:
        return None
    says = f"is on a node{_at(pod)} that has not been heard of for a while"
    return _found("node-silent", Kind.INFRASTRUCTURE, Standing.AILS, says, "look at that node: `kubectl get nodes`")


def _unknown(status: Mapping[str, Any], phase: str) -> Seen | None:
    if phase in ("", "Pending", "Running"):
        return None
    message = _short(text(status.get("message")))
    if phase == "Failed":
        return _found("failed", Kind.INFRASTRUCTURE, Standing.GONE, f"has failed{_detail(message)}")
    return _found("other", Kind.INFRASTRUCTURE, Standing.AILS, f"is {phase}{_detail(message)}")


# Words -------------------------------------------------------------------------------------------------------------


def _found(cause: str, kind: Kind, standing: Standing, says: str, advice: str = "") -> Seen:
    return Seen(cause=cause, kind=kind, standing=standing, says=says, advice=advice)


def _end_or_ails(status: Mapping[str, Any]) -> Standing:
    """A pod that is on its way out may still save; one whose phase is over has ended."""
    return Standing.GONE if status.get("phase") == "Failed" else Standing.AILS


def _at(pod: Mapping[str, Any]) -> str:
    node = text((pod.get("spec") or {}).get("nodeName"))
    return f" {node}" if node else ""


def _detail(message: str) -> str:
    return f": {message}" if message else ""


def _short(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _WORDS else f"{line[:_WORDS]}…"

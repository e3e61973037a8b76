"""What the containers of a pod tell: what holds them up before they begin, and how they ended."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from phalanx.decide.exits import Kind, by_code
from phalanx.decide.podfields import entries, text
from phalanx.decide.podimage import image_trouble
from phalanx.decide.seen import Seen, Standing, at_node, detail, found, short
from phalanx.plan.marks import CONTAINER

#: What the agent, whose exit code is the container's, means by its own.
_OUR_CODES: dict[int, tuple[Kind, str]] = {
    1: (Kind.USER, "the job has failed"),
    2: (Kind.USER, "its input is wrong"),
    3: (Kind.INFRASTRUCTURE, "the place has failed"),
    4: (Kind.PREEMPTION, "stopped on request"),
    5: (Kind.INFRASTRUCTURE, "the run has ended for want of a place"),
}


def containers(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Seen | None:
    """The first trouble: of what runs before the task, of the task, of what runs beside it."""
    told = entries(status, "containerStatuses")
    ours = [one for one in told if one.get("name") == CONTAINER]
    others = [one for one in told if one.get("name") != CONTAINER]
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
    reason, message = text(waiting.get("reason")), short(text(waiting.get("message")))
    image = text(status.get("image"))
    if reason in ("", "ContainerCreating", "PodInitializing"):
        return None
    if trouble := image_trouble(reason, image, message):
        says, advice = trouble
        return found("image", Kind.USER, Standing.WAITS, says, advice)
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
        return found("crash-loop", Kind.USER, Standing.GONE, f"ends again and again{detail(message)}")
    return found("other", Kind.INFRASTRUCTURE, Standing.WAITS, f"waits: {reason}{detail(message)}")


_MISSING = re.compile(r'(?P<what>secret|configmap) "(?P<name>[^"]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in (?P<what>Secret|ConfigMap) (?P<name>\S+)")


def _config(message: str) -> Seen:
    """Something is missing that the container is to be started with."""
    if missing := _MISSING.search(message):
        what = {"secret": "Secret", "configmap": "ConfigMap"}[missing["what"]]
        says = f"cannot start: the {what} {missing['name']!r} does not exist in its namespace"
        return found(
            "config",
            Kind.USER,
            Standing.WAITS,
            says,
            f"create it, or correct its name in job.yaml: {what}s are not copied",
        )
    if lacks := _NO_KEY.search(message):
        says = f"cannot start: the {lacks['what']} {lacks['name']} has no key {lacks['key']!r}"
        return found("config", Kind.USER, Standing.WAITS, says, "correct the key in job.yaml, or add it there")
    if "runAsNonRoot" in message:
        advice = (
            "say which user it runs as with on.kubernetes.user, or `restricted: off` where the namespace allows root"
        )
        return found("config", Kind.USER, Standing.WAITS, f"cannot start: {message}", advice)
    return found("config", Kind.USER, Standing.WAITS, f"cannot start: {message or 'its configuration is wrong'}")


def _cannot_run(reason: str, message: str) -> Seen:
    advice = ""
    if "executable file not found" in message or "no such file or directory" in message:
        advice = "the image lacks that program: it needs /bin/sh and a Python of at least 3.11"
    return found("cannot-run", Kind.USER, Standing.WAITS, f"cannot start{detail(message or reason)}", advice)


def _ended(pod: Mapping[str, Any], status: Mapping[str, Any], ended: Mapping[str, Any]) -> Seen:
    name, reason = text(status.get("name")), text(ended.get("reason"))
    code = ended.get("exitCode")
    code = code if isinstance(code, int) else 0
    message = short(text(ended.get("message")))
    whose = "" if name == CONTAINER else f"'s container {name!r}"
    if reason == "OOMKilled":
        limit = _memory_limit(pod, name)
        of = f"its limit of {limit}" if limit else "what its node had left"
        advice = "raise the role's `memory`, or lower the batch size" if limit else "give the role a `memory`"
        return found(
            "oom",
            Kind.INFRASTRUCTURE,
            Standing.GONE,
            f"{whose} was OOMKilled: it used more memory than {of}".strip(),
            advice,
        )
    if reason in ("ContainerCannotRun", "StartError"):
        return dataclasses.replace(_cannot_run(reason, message), standing=Standing.GONE)
    if reason == "ContainerStatusUnknown":
        says = f"{whose} was lost with its node{at_node(pod)}".strip()
        return found(
            "node-lost", Kind.INFRASTRUCTURE, Standing.GONE, says, "look at that node: `kubectl describe node`"
        )
    if reason == "DeadlineExceeded":
        return found(
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
    return found("exited", kind, Standing.GONE, f"{whose} {said}{because}{detail(message)}".strip())


def _memory_limit(pod: Mapping[str, Any], name: str) -> str:
    for one in entries(pod.get("spec") or {}, "containers"):
        if one.get("name") == name:
            return text(((one.get("resources") or {}).get("limits") or {}).get("memory"))
    return ""

"""What surrounds the tasks: proxies, GPUs, the allocation's end, the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping

from phalanx.agent.gpus import chosen, installed
from phalanx.agent.preflight import limits
from phalanx.agent.preflight.asked import Answer, Asked

#: In the order gRPC looks at them.
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")

#: Seconds an allocation should have left.
_LEFT = 600.0


def proxies(asked: Asked, answer: Answer) -> None:
    """R46: said, and fatal where a task's own exceptions would not hold for the cluster."""
    environs = [asked.environ, *(program.environ for program in asked.programs)]
    used = next((name for name in PROXIES for one in environs if one.get(name)), None)
    answer.look("proxy", "proxy-bypassed")
    if used is None:
        return
    answer.fault("proxy", f"{used} is set, and gRPC obeys it; every host of the cluster is in the tasks' no_proxy")
    addresses = [peer.address for peer in asked.list.peers]
    for program in asked.programs:
        if program.serving and (caught := [one for one in addresses if not exempt(one, program.environ)]):
            source = "no_grpc_proxy" if program.environ.get("no_grpc_proxy") else "no_proxy"
            answer.fault("proxy-bypassed", f"{used} would be asked for {caught[0]}: {source} of the tasks lacks it")


def exempt(address: str, environ: Mapping[str, str]) -> bool:
    """Whether gRPC goes to the address itself: `no_grpc_proxy`, else `no_proxy`, holds it or the end of it."""
    text = environ.get("no_grpc_proxy") or environ.get("no_proxy") or ""
    return any(address.endswith(part.strip()) for part in text.split(",") if part.strip())


def gpus(asked: Asked, answer: Answer) -> None:
    """How many GPUs each training task sees: by CUDA_VISIBLE_DEVICES, else all of NVIDIA's driver."""
    given = [one for program in asked.programs if program.serving for one in program.visible]
    there = installed() if given else ()  # once: it loads NVIDIA's library
    seen = [len(chosen(one, there)) for one in given]
    if asked.list.same_gpus and seen:
        answer.look("same-gpus")
        for count in dict.fromkeys(seen):
            answer.fact("gpus", str(count))
    if sum(count > 0 for count in seen) > 1:
        limits.shared_memory(answer)


def time_left(asked: Asked, answer: Answer, now: float | None = None) -> None:
    """Slurm tells when the allocation ends."""
    end = asked.environ.get("SLURM_JOB_END_TIME", "")
    if not end.isdecimal():
        return
    answer.look("time-left")
    left = int(end) - (time.time() if now is None else now)
    if left < _LEFT:
        answer.fault("time-left", f"the allocation ends in {max(left, 0) / 60:.0f} min")


def clock(asked: Asked, answer: Answer) -> None:
    """How far this clock is from the lead's; the lead compares."""
    answer.look("clock")
    answer.fact("clock", f"{asked.ahead:+.3f}")

"""Programs that form one cluster on this machine, each with a life line or with nothing of ours."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from phalanx.agent.life import Life, Sign
from phalanx.agent.ports import PortHolder
from phalanx.agent.standby import boot_env
from runtime.starts import BOOT, riding

#: Seconds for all of them, on a machine that does much else.
PATIENCE = 240.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """One task that has ended."""

    code: int
    out: str
    err: str
    #: What its life line held in the end; None where it had none.
    sign: Sign | None


def run_cluster(
    program: str, roles: Mapping[str, int], folder: Path, *, rides: bool = True, leader: str = "worker:0"
) -> dict[str, Done]:
    """Start `program` once for each task of `roles` and wait for the leader, and for the others of its kind.

    The rest (`ps`, the workers of a chief) never end by themselves, and are ended then.
    """
    holder = PortHolder()
    ports = iter(holder.hold(sum(roles.values())))
    cluster = {kind: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for kind, count in roles.items()}
    started: dict[str, tuple[subprocess.Popen[bytes], Life | None]] = {}
    done: dict[str, Done] = {}
    with contextlib.ExitStack() as stack:
        stack.callback(holder.release_all)
        for kind, count in roles.items():
            for index in range(count):
                task = {"cluster": cluster, "task": {"type": kind, "index": index}}
                started[f"{kind}:{index}"] = _start(program, json.dumps(task), folder, stack, rides=rides)
        awaited = [name for name in started if name.split(":")[0] == leader.split(":", maxsplit=1)[0]]
        for name in [*awaited, *(name for name in started if name not in awaited)]:
            process, life = started[name]
            if name not in awaited:
                process.kill()
            out, err = process.communicate(timeout=PATIENCE)
            sign = life.sign() if life else None
            done[name] = Done(code=process.returncode, out=out.decode(), err=err.decode(), sign=sign)
    return done


def _start(
    program: str, tf_config: str, folder: Path, stack: contextlib.ExitStack, *, rides: bool
) -> tuple[subprocess.Popen[bytes], Life | None]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"}
    env |= {"TF_CONFIG": tf_config, "TF_GRPC_REUSE_PORT": "1", "TF_NUM_INTRAOP_THREADS": "1"}
    argv: Sequence[str] = [sys.executable, "-c", program]
    if rides:
        return stack.enter_context(riding(argv, env={**env, **boot_env(env, BOOT)}, cwd=folder))
    process = subprocess.Popen(argv, env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stack.callback(process.communicate)
    stack.callback(process.kill)
    return process, None

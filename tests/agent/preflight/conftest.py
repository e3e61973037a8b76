"""A host that is asked to look."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from phalanx.agent.preflight.asked import Answer, Asked
from phalanx.agent.preflight.programs import programs_of
from phalanx.names import TaskId
from phalanx.plan.checklist import Checklist, Peer
from phalanx.protocol.messages import StartTask

PEERS = tuple(Peer(host=n, name=f"n{n}", address=f"10.0.0.{n}", ports=(20000 + n,)) for n in range(2))


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Asked]:
    """`asked(argv=…, environ=…, tasks=1, checkpoint=…, …fields of the list)`."""

    def make(
        *, argv=(sys.executable, "train.py"), environ=None, tasks=1, env=None, folder=None, host=0, ahead=0.0, **more
    ):
        environ = {"PATH": "/usr/bin:/bin"} | (environ or {})
        starts = [
            StartTask(id=TaskId("worker", n), argv=tuple(argv), env=env or {}, port=20000 + n) for n in range(tasks)
        ]
        about = Checklist(peers=PEERS, hosts=2, tasks=2, patience=1.0)
        return Asked(
            host=host,
            list=dataclasses.replace(about, **more),
            programs=programs_of(starts, environ, str(tmp_path)),
            environ=environ,
            folder=folder or tmp_path,
            token=(".token", "secret"),
            ahead=ahead,
        )

    return make


@pytest.fixture
def found() -> Callable[..., dict[str, str]]:
    """`found(check, asked, …)`: what the check found wrong, words by id."""

    def look(check: Callable[..., None], *given: object, **more: object) -> dict[str, str]:
        answer = Answer()
        check(*given, answer, **more)
        assert {fault.check for fault in answer.faults} <= set(answer.looked) | {"modules-maybe"}
        return {fault.check: fault.words for fault in answer.faults}

    return look

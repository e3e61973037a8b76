"""Hosts that share no folder: a whole host is lost, or sleeps, and the run goes on under the next. Real processes."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launched import Place, processes_with, wait_for
from leading import PATIENT
from phalanx import events as ev
from phalanx.engine.base import Submission
from phalanx.engine.local import LocalEngine, LocalRun
from phalanx.plan.outline import Outline, Role, Strategy
from phalanx.plan.policies import Policies, Restart
from phalanx.protocol.signing import RunKey
from phalanx.records.folder import RunFolder
from phalanx.records.reader import read_plan, read_records, read_state
from phalanx.states import RunPhase, fold_all

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

HOSTS = 3


class Islands:
    """One run of three hosts, each with a folder of its own."""

    def __init__(self, here: Place) -> None:
        self.here = here
        script = here.script(PATIENT)
        here.runs.mkdir()
        first = RunFolder.create(here.runs, "job", 1e9)
        worker = Role(type="worker", count=HOSTS, min=1, max=HOSTS, command=(sys.executable, str(script)))
        outline = Outline(
            name="job",
            roles=(worker,),
            strategy=Strategy.MWMS,
            cwd=str(here.folder),
            hosts=HOSTS,
            policies=Policies(restart=Restart(max=3)),
        )
        submission = Submission(
            run=first.run,
            folder=first.path,
            key=RunKey.new(),
            outline=outline,
            environ=here.environ,
            secrets={},
            attached=False,
            shared=False,
        )
        self.folders = [first, *(RunFolder(here.runs / f"{first.run}.host{host}") for host in range(1, HOSTS))]
        self.run: LocalRun = LocalEngine().start(submission)

    def events(self, host: int, kind: str, **fields: object) -> list[dict[str, Any]]:
        try:
            lines = self.folders[host].events.read_text().splitlines()
        except FileNotFoundError:
            return []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [one for one in found if one["event"] == kind and fields.items() <= one.items()]

    def wait(self, host: int, kind: str, number: int = 1, **fields: object) -> dict[str, Any]:
        """Until the records of that host have as many."""
        what = f"{number} of {kind} {fields} on host {host}"
        return wait_for(lambda: self.events(host, kind, **fields)[number - 1 :], what)[0]

    def trains(self, host: int, generation: int, tasks: int) -> None:
        self.wait(host, "task-started", tasks, generation=generation)

    def copied(self, host: int, text: str) -> None:
        """Until that host's copy has it."""
        place = self.folders[host].agents / f"{host}.copy"
        wait_for(lambda: any(text in file.read_text() for file in place.glob("*/events.jsonl")), f"a copy of {text}")

    def of_host(self, host: int) -> list[int]:
        """Its agent, and its lead; what they have started goes with them."""
        folder = self.folders[host].path
        leads = [pid for pid, line in processes_with(str(self.here.folder.parent)).items() if " lead 3 4" in line]
        own = [pid for pid in leads if parent(pid) == self.run.agents[host].pid]
        assert folder.is_dir()
        return [self.run.agents[host].pid, *own]  # an agent whose lead is gone starts the next one

    def ends_well(self, host: int) -> None:
        (self.here.folder / "end").touch()
        wait_for(lambda: read_state(self.folders[host]).phase is RunPhase.SUCCEEDED, "the end")
        self.run.finish(10)
        records = list(read_records(self.folders[host].events))
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        assert fold_all(records).phase is RunPhase.SUCCEEDED
        wait_for(self.folders[host].report.exists, "the report")
        self.here.gone(within=5)


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def islands(here: Place, home: Path) -> Iterator[Islands]:
    made = Islands(here)
    yield made
    made.run.kill()


def test_when_the_first_host_is_lost_the_next_one_goes_on_with_its_own_copy_of_the_records(islands: Islands):
    islands.trains(0, 1, 3)
    islands.copied(1, "task-started")
    assert not islands.folders[1].events.exists()
    for pid in islands.of_host(0):
        os.kill(pid, signal.SIGKILL)
    islands.trains(1, 2, 2)
    assert [event["host"] for event in islands.events(1, "host-lost")] == [0]
    assert islands.events(1, "run-started", epoch=1)  # the story has its beginning
    assert read_plan(islands.folders[1]).generation == 2
    islands.ends_well(1)


def test_a_first_host_that_sleeps_wakes_up_to_find_itself_replaced_and_ends_its_tasks(islands: Islands):
    islands.trains(0, 1, 3)
    islands.copied(1, "task-started")
    asleep = islands.of_host(0)
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    islands.trains(1, 2, 2)
    before = len(list(read_records(islands.folders[0].events)))
    for pid in asleep:
        os.kill(pid, signal.SIGCONT)
    agent = islands.run.agents[0]
    wait_for(lambda: agent.poll() is not None, "the end of the first agent")
    assert agent.returncode == 3
    wait_for(lambda: not lives(asleep[1]), "the end of the first lead")
    after = [record.event for record in read_records(islands.folders[0].events)][before:]
    assert not any(isinstance(event, (ev.RestartOrdered, ev.GenerationBound, ev.RunEnded)) for event in after)
    assert {event.host for event in after if isinstance(event, ev.HostLost)} <= {0}  # its own agent's word
    islands.ends_well(1)
    log = (islands.folders[0].agents / "0.log").read_text()
    assert "ending this host's tasks" in log


def test_a_lead_whose_process_dies_goes_on_where_it_was_and_is_copied_anew(islands: Islands):
    islands.trains(0, 1, 3)
    islands.copied(1, "task-started")
    os.kill(islands.of_host(0)[1], signal.SIGKILL)
    islands.wait(0, "run-started", epoch=2)
    islands.copied(1, '"epoch":2')
    assert not islands.events(0, "host-lost")
    for pid in islands.of_host(0):
        os.kill(pid, signal.SIGKILL)
    islands.trains(1, 2, 2)
    islands.ends_well(1)

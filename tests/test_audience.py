"""Whoever asks something of a run waits for the next lead, as long as one may come, and no longer."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from builders import killed, running
from phalanx import audience as module
from phalanx.audience import audience, leads
from phalanx.protocol import people
from phalanx.protocol.people import LeadMuteError, LeadUnreachableError
from phalanx.records.folder import RunFolder
from phalanx.records.index import Entry


class World:
    """A run whose lead last gave a sign of life at 0, and whose time passes while somebody sleeps."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
        self.now = 0.0
        self.folder: RunFolder = running(hosts=hosts).write(folder)
        self.entry = Entry(
            run="r", folder=str(self.folder.path), engine="local", lead="h:1", token="t", created=0.0, launcher=1
        )
        self.beats("h:1")
        self.asked: list[tuple[float, str]] = []
        self.said: list[str] = []
        monkeypatch.setattr(module.time, "time", lambda: 1000.0 + self.now)
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)

    def beats(self, address: str) -> None:
        self.folder.lead.write_text(f'{{"epoch": 1, "address": "{address}", "pid": 1}}')
        self.folder.lead.chmod(0o644)
        os.utime(self.folder.lead, (1000.0 + self.now, 1000.0 + self.now))

    def ask(self, answers: Callable[[float, str], Exception | None]) -> str:
        def call(address: str, token: str) -> str:
            del token
            self.asked.append((self.now, address))
            if (wrong := answers(self.now, address)) is not None:
                raise wrong
            return f"done by {address}"

        return audience(self.entry, call, say=self.said.append)


def frozen_until(when: float) -> Callable[[float, str], Exception | None]:
    return lambda now, _: None if now >= when else LeadMuteError("frozen")


def test_a_lead_that_answers_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path, monkeypatch, hosts=1)
    assert world.ask(lambda *_: None) == "done by h:1"
    assert (len(world.asked), world.said) == (1, [])


def test_the_successor_of_a_frozen_lead_is_awaited_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = World(tmp_path, monkeypatch, hosts=1)
    assert world.ask(frozen_until(12.0)) == "done by h:1"
    assert world.said == ["the lead of r does not answer; its successor is awaited, for up to 23 s"]


def test_a_successor_on_another_host_is_asked_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path, monkeypatch, hosts=2)

    def answers(now: float, address: str) -> Exception | None:
        if now >= 14.0 and address == "h:1":
            world.beats("h:2")
        return None if address == "h:2" else LeadUnreachableError("refused")

    assert world.ask(answers) == "done by h:2"


@pytest.mark.parametrize(("hosts", "wrong"), [(1, LeadMuteError), (2, LeadUnreachableError), (2, LeadMuteError)])
def test_it_is_given_up_when_nobody_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: int, wrong: type[LeadUnreachableError]
):
    world = World(tmp_path, monkeypatch, hosts=hosts)
    with pytest.raises(wrong):
        world.ask(lambda *_: wrong("nobody"))
    assert 20 < world.now < 30


def test_nobody_is_awaited_where_nobody_listens_and_there_is_no_other_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = World(tmp_path, monkeypatch, hosts=1)
    with pytest.raises(LeadUnreachableError):
        world.ask(lambda *_: LeadUnreachableError("refused"))
    assert (len(world.asked), world.said) == (1, [])


def test_nobody_is_awaited_for_a_run_that_has_ended_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path, monkeypatch, hosts=1)

    def answers(now: float, _: str) -> Exception | None:
        if now > 3.0:
            world.folder.events.write_text(killed().text)
        return LeadMuteError("frozen")

    with pytest.raises(LeadMuteError):
        world.ask(answers)
    assert world.now < 5.0


def test_a_frozen_lead_leads_for_as_long_as_it_may_have_a_successor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path, monkeypatch, hosts=1)

    def mute(*_: str) -> None:
        raise LeadMuteError

    monkeypatch.setattr(people, "state", mute)
    assert leads(world.entry)
    world.now = 60.0
    assert not leads(world.entry)


def test_somebody_who_listens_and_does_not_answer_is_mute_and_a_closed_port_is_nobody():
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        address = f"127.0.0.1:{frozen.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(LeadMuteError):
            people.state(address, "t")
        assert time.monotonic() - begun < 10
    with pytest.raises(LeadUnreachableError) as wrong:
        people.state(address, "t")
    assert not isinstance(wrong.value, LeadMuteError)

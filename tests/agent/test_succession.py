"""When an agent takes the lead over: after a silence and its turn; at once where nobody listens, or it is named."""

from __future__ import annotations

import pytest

from phalanx.agent.succession import Succession
from phalanx.decide.quorum import LEASE, step_apart

LINE = ("n0:1", "n1:1", "n2:1")


class Carrier:
    carries = spent = done = False

    def __init__(self, address: str) -> None:
        self.address = address
        self.led: list[int] = []

    def end_silent(self, epoch: int) -> None:
        raise AssertionError(epoch)

    def take_over(self, epoch: int) -> None:
        self.led.append(epoch)
        self.carries = True


class Copies:
    def wanted(self, *, yes: bool) -> None:
        del yes

    def hand_over(self) -> bool:
        return True


def of(address: str) -> tuple[Succession, Carrier, list[str]]:
    carrier, asked = Carrier(address), []
    made = Succession(
        carrier, lead="n0:1", turn_to=asked.append, rule=lambda: None, beat=lambda: None, understudy=Copies()
    )
    made.learn(LINE)
    return made, carrier, asked


def test_the_next_in_line_waits_for_the_lease_and_the_turn_of_the_silent_leads_own_host():
    succession, carrier, _ = of("n1:1")
    assert succession.silent(LEASE + step_apart(LEASE) - 1, 1)
    assert carrier.led == []
    assert succession.silent(LEASE + step_apart(LEASE), 1)
    assert carrier.led == [100]


def test_where_nobody_listens_at_the_leads_address_neither_is_waited_for():
    succession, carrier, _ = of("n1:1")
    for tries in range(4):
        succession.silent(0.2 * tries, 1)
        assert carrier.led == []
        succession.refused()
    succession.silent(0.8, 1)
    assert carrier.led == [100]


def test_the_one_after_it_asks_there_first_and_has_its_own_turn_and_its_own_epoch():
    succession, carrier, asked = of("n2:1")
    for _ in range(4):
        succession.refused()
    succession.silent(0.8, 1)
    assert (carrier.led, asked[-1]) == ([], "n1:1")
    succession.silent(step_apart(LEASE), 1)
    assert carrier.led == [110]


def test_an_answer_in_between_was_a_sign_of_life():
    succession, carrier, _ = of("n1:1")
    for _ in range(3):
        succession.refused()
    succession.answered()
    succession.refused()
    succession.silent(0.8, 1)
    assert carrier.led == []


@pytest.mark.parametrize(("own", "led"), [("n1:1", [100]), ("n2:1", [])])
def test_whom_a_lead_names_that_goes_begins_at_once_and_the_others_ask_there(own, led):
    succession, carrier, asked = of(own)
    for _ in range(2):  # each of our calls is told so
        succession.resigned("n1:1", 1)
    assert carrier.led == led
    assert asked[-1] == "n1:1"


def test_what_a_lead_was_found_by_is_forgotten_once_it_has_said_where_it_is():
    succession, carrier, asked = of("n1:1")
    succession.leads_at("n2:1")
    assert asked == ["n2:1"]
    succession.silent(LEASE + 2 * step_apart(LEASE), 1)  # the turn of n0 comes first now
    assert carrier.led == []

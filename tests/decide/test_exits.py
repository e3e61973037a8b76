"""What an exit means, by the table (R82)."""

from __future__ import annotations

import signal

import pytest

from phalanx.decide.exits import KNOWN_ERRORS, Kind, kind_of, known_error, says_victim, words_for
from phalanx.events import TaskExited
from phalanx.names import TaskId


def exited(
    *,
    code: int | None = None,
    by: int | None = None,
    said: tuple[str, ...] = (),
    core: bool = False,
    oom: bool = False,
) -> TaskExited:
    return TaskExited(
        time=1.0,
        task=TaskId("worker", 0),
        host=0,
        generation=1,
        pid=7,
        code=code,
        signal=by,
        last_lines=said,
        core=core,
        oom=oom,
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1, Kind.USER),
        (2, Kind.USER),
        (126, Kind.USER),
        (127, Kind.USER),
        (42, Kind.PREEMPTION),
        (143, Kind.PREEMPTION),
        (134, Kind.PLATFORM),
        (137, Kind.INFRASTRUCTURE),
        (139, Kind.PLATFORM),
    ],
)
def test_an_exit_code_has_a_kind(code, kind):
    assert kind_of(exited(code=code)) is kind
    assert f"code {code}" in words_for(exited(code=code))


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGKILL, Kind.INFRASTRUCTURE),
        (signal.SIGTERM, Kind.PREEMPTION),
        (signal.SIGSEGV, Kind.PLATFORM),
        (signal.SIGABRT, Kind.PLATFORM),
        (signal.SIGBUS, Kind.PLATFORM),
    ],
)
def test_a_signal_has_a_kind_and_a_name(number, kind):
    assert kind_of(exited(by=number)) is kind
    assert signal.Signals(number).name in words_for(exited(by=number))


def test_a_real_time_signal_is_named_by_its_number():
    assert "signal 40" in words_for(exited(by=40))


def test_a_shells_word_for_a_signal_is_said_with_its_name():
    assert "128 + SIGKILL" in words_for(exited(code=137))
    assert words_for(exited(code=200)) == "exited with code 200"


@pytest.mark.parametrize("exit_", [exited(by=signal.SIGKILL, oom=True), exited(code=137, oom=True)])
def test_what_the_kernel_counted_as_out_of_memory_is_said_so(exit_):
    assert "(out of memory: " in words_for(exit_)
    assert "administrator" not in words_for(exit_)
    assert kind_of(exit_) is Kind.INFRASTRUCTURE


def test_a_core_dump_is_said():
    assert "core dumped" in words_for(exited(by=signal.SIGSEGV, core=True))


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("ModuleNotFoundError: No module named 'tensorboard'", "--python"),
        ("RuntimeError: Collective ops must be configured at program startup", "before anything else"),
        ("tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server", "port is taken"),
        (
            "ValueError: Attempt to convert a value (PerReplica:{}) with an unsupported type (<class 'PerReplica'>)",
            "TF_USE_LEGACY_KERAS",
        ),
        ("InternalError: ... is joining a group with size2, but that group has size 3", "different clusters"),
    ],
)
def test_what_tensorflow_prints_gets_advice(line, part):
    assert part in known_error(("Traceback", line)).advice


@pytest.mark.parametrize(
    "line",
    [
        "UnavailableError: Collective ops is aborted by: failed to connect to all addresses",
        "… recvmsg:Connection reset by peer",
        "The following tasks are unhealthy (stopped sending heartbeats)",
        "DeadlineExceededError: Collective ops is aborted by: RPC: /tensorflow.CoordinationService/Heartbeat",
    ],
)
def test_who_blames_a_peer_is_a_victim(line):
    assert says_victim([line])
    assert not says_victim(["ValueError: wrong shape"])


def test_every_known_error_has_a_source_and_advice():
    assert all(known.advice and known.source for known in KNOWN_ERRORS)

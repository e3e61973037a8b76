"""What an exit means, by the table (R82)."""

from __future__ import annotations

import signal

import pytest

from phalanx.decide.exits import KNOWN_ERRORS, Kind, gist, kind_of, known_error, says_victim, telling_line, words_for
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
            "leave out --keras off",
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


def test_an_exception_that_only_announces_its_reason_is_told_with_it():
    """As Keras prints it."""
    said = (
        "tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error:",
        "",
        "Detected at node CollectiveReduceV2 defined at (most recent call last):",
        '  File "train.py", line 30, in <module>',
        "<stack traces unavailable>",
        "Collective ops is aborted by: failed to connect to all addresses",
        "The error could be from a previous operation. Restart your program to reset.",
    )
    assert telling_line(said).endswith(
        "Graph execution error: Collective ops is aborted by: failed to connect to all addresses"
    )
    assert telling_line(said[:1]) == said[0]
    assert telling_line(("ValueError: x", "I0000 00:00:1796051083.0 1 a.cc:2] bye")) == "ValueError: x"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "2026-11-30 15:00:00.000001: E tensorflow/x.cc:3] gone",
            "2026-12-01 03:10:59.100000: E tensorflow/x.cc:3] gone",
        ),
        ("cannot bind 10.0.0.1:22100", "cannot bind 10.0.0.2:34567"),
        ("<Thing at 0x7f00aa>", "<Thing at 0x7f11bb>"),
        ("process 123 has died", "process 4567 has died"),
        ("epoch 3, 12ms/step, loss 0.5", "epoch 3, 9ms/step, loss 0.5"),
        ("no such file: /tmp/tmpab12/x", "no such file: /tmp/tmpcd34/x"),
    ],
)
def test_what_differs_from_one_start_to_the_next_tells_no_failures_apart(one, other):
    assert gist(one) == gist(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("KeyError: 4711", "KeyError: 4712"),
        ("shape (3, 4)", "shape (3, 5)"),
        ('File "a.py", line 3', 'File "a.py", line 4'),
    ],
)
def test_a_number_that_means_something_does(one, other):
    assert gist(one) != gist(other)


KERAS = (
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in <module>',
    "    model.fit(x, y)",
    '  File "/v/site-packages/keras/src/backend/tensorflow/optimizer.py", line 134, in _distributed_tf_update_step',
    "    distribution.extended.update(",
    "AssertionError",
)
#: As it is without Keras's filter.
WHOLE = (
    '  File "/v/site-packages/tensorflow/python/distribute/mirrored_strategy.py", line 847, in _update',
    "    assert isinstance(var, values.DistributedVariable)",
    "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "AssertionError",
)


@pytest.mark.parametrize("said", [KERAS, WHOLE])
def test_a_model_from_outside_the_scope_is_told_where_keras_has_only_an_assertion(said):
    known = known_error(said)
    assert known is not None
    assert known.since == "the model was built outside strategy.scope()"
    assert "strategy.scope()" in known.advice


def test_an_assertion_of_the_program_is_its_own():
    assert known_error(("    assert isinstance(var, str)", "AssertionError")) is None


def test_an_exception_without_a_message_ends_in_no_colon():
    assert telling_line(["AssertionError:"]) == "AssertionError"

"""What an exit means: its words, its kind, and the error texts of TensorFlow that people meet."""

from __future__ import annotations

import dataclasses
import enum
import re
import signal
from collections.abc import Iterable, Sequence

from phalanx.events import TaskExited
from phalanx.noise import own_words


class Kind(enum.Enum):
    """Who can do something about a failure; each kind has its own policy."""

    USER = "user"  # the program or its command
    PLATFORM = "platform"  # a crash inside native code, a broken installation
    INFRASTRUCTURE = "infrastructure"  # a host, the network, the memory
    PREEMPTION = "preemption"  # asked to leave by the place


#: Exit codes that say more than "the program failed" (R82).
_CODES: dict[int, tuple[Kind, str]] = {
    2: (Kind.USER, "a wrong command line, or no such script"),
    42: (Kind.PREEMPTION, "as PreemptionCheckpointHandler leaves once it has saved"),
    126: (Kind.USER, "the command may not be executed"),
    127: (Kind.USER, "no such command"),
    143: (Kind.PREEMPTION, "as a program leaves that handles SIGTERM"),
}

_SIGNALS: dict[int, tuple[Kind, str]] = {
    signal.SIGKILL: (Kind.INFRASTRUCTURE, "killed from outside: the out-of-memory killer, an administrator, or a test"),
    signal.SIGTERM: (Kind.PREEMPTION, "asked to end from outside"),
    signal.SIGINT: (Kind.USER, "interrupted"),
    signal.SIGHUP: (Kind.INFRASTRUCTURE, "its session ended"),
    signal.SIGSEGV: (Kind.PLATFORM, "crashed in native code"),
    signal.SIGBUS: (Kind.PLATFORM, "crashed in native code; a full /dev/shm does this"),
    signal.SIGILL: (Kind.PLATFORM, "an instruction this processor lacks: TensorFlow built for another one"),
    signal.SIGFPE: (Kind.PLATFORM, "crashed in native code"),
    signal.SIGABRT: (Kind.PLATFORM, "aborted by native code"),
    signal.SIGXCPU: (Kind.INFRASTRUCTURE, "its CPU time was used up"),
}


#: Said instead where the kernel itself has counted it (`TaskExited.oom`).
_OUT_OF_MEMORY = "out of memory: the kernel ended it for want of it"
#: What a shell adds to the number of the signal that killed its command.
_SHELL = 128


def by_code(code: int) -> tuple[Kind, str]:
    """Whose failure a code is, and its words; 128+n is a shell's word for signal n."""
    if code in _CODES or code - _SHELL not in _SIGNALS:
        return _CODES.get(code, (Kind.USER, ""))
    kind, why = _SIGNALS[code - _SHELL]
    return kind, f"{_SHELL} + {signal.Signals(code - _SHELL).name}: {why}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class KnownError:
    """A text that TensorFlow or Python prints, what it means, and what to do."""

    pattern: re.Pattern[str]
    kind: Kind
    advice: str
    source: str
    #: The reason, where the text itself has none.
    since: str = ""


#: Those whose text says what is wrong.
_SPOKEN: tuple[KnownError, ...] = tuple(
    KnownError(pattern=re.compile(pattern), kind=kind, advice=advice, source=source)
    for pattern, kind, advice, source in (
        (
            r"No module named '([^']+)'",
            Kind.USER,
            "install the module for the interpreter that `phalanx plan` names, or choose another with --python",
            "Python",
        ),
        (
            r"Collective ops must be configured at program startup",
            Kind.USER,
            "create MultiWorkerMirroredStrategy before anything else touches TensorFlow (an op, a dataset, a variable)",
            "R24",
        ),
        (
            r"Could not start gRPC server",
            Kind.PLATFORM,
            "the task's port is taken: the script starts a server of its own, or an earlier run still lives",
            "facts §9, R36",
        ),
        (
            r"PerReplica:[\s\S]* unsupported type|Invalid reduction dimension 0 for input with 0 dimensions",
            Kind.USER,
            "Keras 3 `fit` fails here: leave out --keras off or runtime: off, or use a custom loop or tf_keras",
            "keras-team/keras#20585, R89",
        ),
        (
            r"is joining a group with size ?\d+, but that group has size",
            Kind.USER,
            "the tasks see different clusters or numbers of GPUs",
            "R62",
        ),
        (r"Your input ran out of data", Kind.USER, "add `.repeat()` to the dataset, or lower steps_per_epoch", "R61"),
        (r"Unrecognized task_type", Kind.USER, "name the role chief, worker, ps or evaluator", "R08"),
        (r"OOM when allocating|RESOURCE_EXHAUSTED|MemoryError", Kind.USER, "lower the batch size or the model", "R68"),
    )
)

#: The first that matches the last lines wins.
KNOWN_ERRORS: tuple[KnownError, ...] = (
    *_SPOKEN,
    KnownError(
        pattern=re.compile(
            r"in _distributed_tf_update_step\n[\s\S]*\nAssertionError"
            r"|assert isinstance\(var, values\.DistributedVariable\)"
        ),
        kind=Kind.USER,
        advice="build and compile the model within `with strategy.scope():`",
        source="rule model-outside-scope",
        since="the model was built outside strategy.scope()",
    ),
)

#: Lines by which a task says that another one went away first (facts §3, §4).
_VICTIM = re.compile(
    r"Collective ops is aborted by|failed to connect to all addresses|Socket closed|recvmsg:Connection reset by peer"
    r"|unhealthy \(stopped sending heartbeats\)|CoordinationService/Heartbeat|UnavailableError"
    r"|Coordination service (?:agent )?is in ERROR|cluster check alive failed",
)


def says_victim(lines: Iterable[str]) -> bool:
    """Whether the last lines blame a peer."""
    return any(_VICTIM.search(line) for line in lines)


#: A traceback's own last line: `ValueError: …`, `tensorflow.….UnavailableError: …`.
_RAISED = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Stop|Warning)\b(?::|$)")


#: What stands between an exception that only announces its reason and that reason, as Keras prints it.
_BETWEEN = re.compile(r"\s|Detected at node |<stack traces unavailable>|Traceback ")

#: What differs from one start to the next, and tells no two failures apart.
_VARIES = re.compile(
    r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b"  # addresses in memory, UUIDs
    r"|\b\d{4}-\d\d-\d\d\b|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?|\b\d{9,}(?:\.\d+)?\b"  # dates and times
    r"|\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|sec|seconds)\b"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<=[\w\]]):\d{4,5}\b|(?<=/tmp/)[^\s/'\"]+"  # hosts, ports, scratch files
    r"|(?i:\b(?:pid|port|process|thread|tid)\b)[ =:#]*\d+"
)


def telling_line(lines: Sequence[str]) -> str:
    """The line that says most: the exception of the last traceback, else the last one that is no noise; or empty.

    An exception that ends in a colon (`Graph execution error:`) has its reason in a line below.
    """
    at = next((at for at in reversed(range(len(lines))) if _RAISED.match(lines[at])), None)
    if at is None:
        return next((line.strip() for line in reversed(own_words(lines))), "")
    raised = lines[at].strip()
    below = own_words(lines[at + 1 :]) if raised.endswith(":") else ()
    reason = next((line.strip() for line in below if not _BETWEEN.match(line)), "")
    if not reason and _RAISED.fullmatch(raised):
        return raised.removesuffix(":")  # it has no message
    return f"{raised} {reason}".rstrip()


def evidence(event: TaskExited) -> tuple[str, ...]:
    """All that tells how it failed: the exception itself, where it is known, and its last lines."""
    return (*event.raised.splitlines(), *event.last_lines)


def words_of(event: TaskExited) -> str:
    """What it said of its own failure; empty where stderr tells nothing, and stdout only how far it had come."""
    if event.raised:
        return telling_line(event.raised.splitlines())
    if event.last_output and not any(_RAISED.match(line) for line in event.last_lines):
        return ""
    return telling_line(event.last_lines)


def gist(words: str) -> str:
    """The same for two failures that differ in times, addresses, ports and process numbers alone."""
    return _VARIES.sub("…", words)


def known_error(lines: Iterable[str]) -> KnownError | None:
    """The first known error in the text, None where nothing is known."""
    text = "\n".join(lines)
    return next((known for known in KNOWN_ERRORS if known.pattern.search(text)), None)


def kind_of(event: TaskExited) -> Kind:
    """Whose failure it is, by signal, then by known text, then by code; a plain non-zero code is the program's."""
    if event.signal is not None:
        return _SIGNALS.get(event.signal, (Kind.PLATFORM, ""))[0]
    known = known_error(evidence(event))
    if known is not None:
        return known.kind
    return by_code(event.code or 0)[0]


def words_for(event: TaskExited) -> str:
    """`exited with code 1`, `was killed by SIGKILL (…)`, as said of a task."""
    if event.signal is not None:
        try:
            name = signal.Signals(event.signal).name
        except ValueError:
            name = f"signal {event.signal}"
        why = _OUT_OF_MEMORY if event.oom else _SIGNALS.get(event.signal, (Kind.PLATFORM, ""))[1]
        core = ", core dumped" if event.core else ""
        return f"was killed by {name}{core}" + (f" ({why})" if why else "")
    why = _OUT_OF_MEMORY if event.oom else by_code(event.code or 0)[1]
    return f"exited with code {event.code}" + (f" ({why})" if why else "")

"""What must be so before step one: the table of checks, and what the answers of all hosts add up to. Pure.

A host says facts (`tensorflow` is 2.21.0) and faults (`n2` cannot be reached); facts are compared here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from phalanx import events as ev
from phalanx.decide.culprit import nobody_to_blame
from phalanx.decide.exits import Kind
from phalanx.plan.checklist import ALL_PAIRS, Fault, tried
from phalanx.plan.policies import Preflight
from phalanx.states import RunPhase, RunState

#: How many hosts, pairs or faults one sentence names.
_NAMED = 3
#: Seconds by which a host's clock may differ from the lead's.
_CLOCKS = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One check. `fact`: the fact that must be the same on every host that has it."""

    id: str
    fatal: bool
    looks: str
    fix: str
    source: str
    fact: str = ""


def _fatal(id: str, looks: str, fix: str, source: str, fact: str = "") -> Row:  # noqa: A002 - a table of rows
    return Row(id=id, fatal=True, looks=looks, fix=fix, source=source, fact=fact)


def _warning(id: str, looks: str, fix: str, source: str, fact: str = "") -> Row:  # noqa: A002 - as above
    return Row(id=id, fatal=False, looks=looks, fix=fix, source=source, fact=fact)


#: Every check, the one to be told first on top.
ROWS = (
    _fatal(
        "names-resolve",
        "Every host's name resolves on every host, as gRPC asks: `getaddrinfo`, again until the start deadline",
        "correct DNS or /etc/hosts on that host, or use addresses in place of names",
        "R44, R45",
    ),
    _fatal(
        "peers-reachable",
        "Hosts reach each other's held ports and are greeted by this run's own agent: all pairs up to 64 hosts, beyond "
        "that each its ring neighbours, the leader's host and log2(N) others",
        "open these ports between the hosts (--ports A-B keeps them in a range), or leave the host out",
        "R42, R43",
    ),
    _fatal(
        "proxy-bypassed",
        "No task would send the cluster's traffic to a proxy",
        "unset no_grpc_proxy and leave no_proxy out of the job's env, so that phalanx can write it",
        "R46",
    ),
    _fatal(
        "program-found",
        "The command's program and its script are there, and the interpreter starts",
        "install it on that host at the same path, or name another: --python PATH",
        "R52",
    ),
    _fatal(
        "script-parses",
        "The task's own interpreter compiles the script and the modules beside it that it is sure to import",
        "mend that line, or name the Python that it was written for: --python PATH",
        "Python",
    ),
    _fatal(
        "same-script",
        "The script, with the modules beside it, is the same file on every host",
        "copy one version to every host, or put it into a shared folder",
        "R63",
        "script",
    ),
    _fatal(
        "same-python",
        "The tasks of the cluster run under one version of Python",
        "use one environment everywhere: --python PATH",
        "R63",
        "python",
    ),
    _fatal(
        "same-tensorflow",
        "The tasks of the cluster have one version of TensorFlow",
        "install one version everywhere",
        "R91",
        "tensorflow",
    ),
    _fatal(
        "same-keras",
        "The tasks of the cluster have one version of Keras and of tf_keras",
        "install one version everywhere",
        "R63, R89",
        "keras",
    ),
    _fatal(
        "same-gpus",
        "Under MultiWorkerMirroredStrategy every training task sees the same number of GPUs",
        "give each the same: --gpus-per-worker N",
        "R62, R64",
        "gpus",
    ),
    _fatal(
        "modules-found",
        "Every module that the script is sure to import is found by the interpreter that will run it",
        "install it into that interpreter, or name another: --python PATH",
        "R52",
    ),
    _fatal(
        "tensorboard-found",
        "A script that makes a TensorBoard callback has tensorboard, which TensorFlow 2.21 no longer brings",
        "pip install tensorboard, or leave the callback out",
        "facts",
    ),
    _fatal(
        "cudnn-skew",
        "Where a task sees a GPU: the cuDNN it will load suits the one TensorFlow was built with, and is the same on "
        "every host",
        "install one image or environment everywhere, and clear LD_LIBRARY_PATH of other copies",
        "R90",
        "cudnn",
    ),
    _fatal(
        "open-files",
        "The limit of open files suffices for the connections of a task",
        "raise it: ulimit -n 65536",
        "R69",
    ),
    _fatal(
        "processes",
        "The limits of processes and threads, the user's and the control group's, suffice for about 120 threads a task",
        "raise them (ulimit -u, pids.max), or put fewer tasks on a host: --workers-per-host N",
        "R69",
    ),
    _fatal(
        "checkpoint-writable",
        "The checkpoint folder can be made and written to on every host",
        "make it a folder that you may write to there, or name another: --checkpoint DIR",
        "R88",
    ),
    _fatal(
        "checkpoint-shared",
        "The checkpoint folder is the same one on every host: a token that one writes is read by all",
        "mount one shared folder at that path on every host, or name one: --checkpoint DIR",
        "R88",
    ),
    _fatal(
        "checkpoint-room",
        "The checkpoint folder takes a megabyte more",
        "make room, or name another folder: --checkpoint DIR",
        "R88",
    ),
    _warning(
        "proxy",
        "Whether a proxy is set, which gRPC would use even for this machine itself",
        "nothing to do: the tasks got the cluster's hosts in no_proxy",
        "R46",
    ),
    _warning(
        "same-packages",
        "The tasks of the cluster have the same installed packages",
        "use one environment or image everywhere",
        "R63",
        "packages",
    ),
    _warning(
        "modules-maybe",
        "The same for modules that the script imports in a function or under a condition",
        "install it, if the script will need it",
        "R52",
    ),
    _warning(
        "memory",
        "Some 600 MB of memory are free for each task",
        "put fewer tasks on a host: --workers-per-host N",
        "facts §6",
    ),
    _warning(
        "shm",
        "Where tasks of one host share data through NCCL: /dev/shm has room",
        "start the container with --shm-size=1g",
        "facts §6",
    ),
    _warning(
        "disk",
        "The disks of the run's folder and of the checkpoints have 256 MB and some files left",
        "make room, or use other folders: --runs DIR, --checkpoint DIR",
        "R88",
    ),
    _warning("clock", "The hosts' clocks are within 2 s of the lead's", "set them: chrony, ntpd", "R63", "clock"),
    _warning(
        "time-left",
        "The allocation has more than ten minutes left",
        "ask for more time, or expect to resume from a checkpoint",
        "design §4",
    ),
)

#: What a fact is called in a sentence, where its name does not do.
_CALLED = {
    "tensorflow": "TensorFlow",
    "python": "Python",
    "keras": "Keras",
    "gpus": "visible GPUs",
    "script": "script",
    "cudnn": "cuDNN",
    "packages": "packages",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is wrong by one row, in one sentence; `hosts` are those to look at."""

    row: Row
    words: str
    hosts: tuple[int, ...]


def may_start(state: RunState, policy: Preflight) -> bool:
    """Whether a bound generation may be told to go."""
    return state.phase is RunPhase.STARTING and state.stop is None and (state.cleared or not policy.on)


def verdict(state: RunState, policy: Preflight, now: float) -> tuple[ev.Event, ...]:
    """What follows once every host of the generation has looked: a culprit and the end, or the way is clear.

    Empty where preflight is off, is over, or waits for a host.
    """
    if not policy.on or state.cleared or state.phase is not RunPhase.STARTING or not state.tasks:
        return ()
    wanted = {task.host for task in state.tasks.values()}
    if not wanted <= state.checked.keys():
        return ()
    found = judge(state, ignore=policy.ignore)
    notes = [
        ev.Noted(time=now, message=note(one), host=one.hosts[0] if len(one.hosts) == 1 else None)
        for one in found
        if not one.row.fatal
    ]
    if fatal := [one for one in found if one.row.fatal]:
        return (*notes, *_end(state, fatal, now))
    notes += _some_pairs(len(wanted), now) if "peers-reachable" not in policy.ignore else []
    checks = len({check for host in state.checked.values() for check in host.looked})
    seconds = round(now - (state.bound or now), 3)
    passed = ev.PreflightPassed(
        time=now, generation=state.generation, checks=checks, warnings=len(found), seconds=seconds
    )
    if policy.only:
        end = ev.RunEnded(time=now, outcome="succeeded", exit_code=0, cause="nothing fatal was found")
        return (*notes, passed, end)
    return (*notes, passed)


def _some_pairs(hosts: int, now: float) -> list[ev.Noted]:
    """Beyond 64 hosts not every pair is tried: the report says so."""
    if hosts <= ALL_PAIRS:
        return []
    each = len(tried(hosts, 0, 0)) - 1
    message = (
        f"preflight peers-reachable: each of the {hosts} hosts tried {each} others "
        "(its ring neighbours, the leader's host, and those 4, 8, 16… places on), not all pairs"
    )
    return [ev.Noted(time=now, message=message)]


def note(one: Verdict) -> str:
    """A warning as the report has it."""
    return f"preflight {one.row.id}: {one.words} ({one.row.fix})"


def _end(state: RunState, fatal: list[Verdict], now: float) -> tuple[ev.Event, ...]:
    first = fatal[0]
    others = f" (also: {', '.join(one.row.id for one in fatal[1:])})" if fatal[1:] else ""
    cause = f"preflight {first.row.id}: {first.words}{others}"
    hint = f"{first.row.fix}; --ignore-check {first.row.id} starts all the same"
    host = first.hosts[0] if first.hosts else None
    return nobody_to_blame(state.generation, now, kind=Kind.USER, cause=cause, code=2, host=host, hint=hint)


def judge(state: RunState, *, ignore: Iterable[str] = ()) -> tuple[Verdict, ...]:
    """Every row that is not kept, fatal ones first, in the order of the table."""
    names = {number: host.joined.name for number, host in state.hosts.items()}
    skipped = frozenset(ignore)
    found = [one for row in ROWS if row.id not in skipped and (one := _judge(row, state.checked, names))]
    return tuple(sorted(found, key=lambda one: not one.row.fatal))


def _judge(row: Row, checked: Mapping[int, ev.HostChecked], names: Mapping[int, str]) -> Verdict | None:
    faults = [(host, fault) for host, said in sorted(checked.items()) for fault in said.faults if fault.check == row.id]
    if faults:
        words = _pairs(faults, checked, names) if row.id == "peers-reachable" else _each(faults, names)
        return Verdict(row=row, words=words, hosts=tuple(dict.fromkeys(host for host, _ in faults)))
    if row.fact == "clock":
        return _clocks(row, checked, names)
    return _differing(row, checked, names) if row.fact else None


def _each(faults: list[tuple[int, Fault]], names: Mapping[int, str]) -> str:
    """The same words of several hosts are said once."""
    by_words: dict[str, list[int]] = {}
    for host, fault in faults:
        by_words.setdefault(fault.words, []).append(host)
    said = [f"{_hosts(hosts, names)}: {words}" for words, hosts in list(by_words.items())[:_NAMED]]
    return "; ".join(said) + _more(len(by_words) - len(said), "fault")


def _pairs(faults: list[tuple[int, Fault]], checked: Mapping[int, ev.HostChecked], names: Mapping[int, str]) -> str:
    """A host that nobody reaches is named alone; else the pairs are."""
    by_peer: dict[int, set[int]] = {}
    for host, fault in faults:
        if fault.peer is not None:
            by_peer.setdefault(fault.peer, set()).add(host)
    others = len(checked) - 1
    for peer, hosts in by_peer.items():
        if others > 1 and len(hosts - {peer}) == others:
            words = next(fault.words for _, fault in faults if fault.peer == peer)
            return f"no host reaches {names.get(peer, peer)}: {words}"
    said = [
        f"{names.get(host, host)} does not reach "
        + (f"its own address: {fault.words}" if fault.peer == host else f"{names.get(fault.peer or 0)}: {fault.words}")
        for host, fault in faults[:_NAMED]
    ]
    return "; ".join(said) + _more(len(faults) - len(said), "pair")


def _clocks(row: Row, checked: Mapping[int, ev.HostChecked], names: Mapping[int, str]) -> Verdict | None:
    off = {
        host: float(fact.value)
        for host, said in sorted(checked.items())
        for fact in said.facts
        if fact.name == "clock" and abs(float(fact.value)) > _CLOCKS
    }
    if not off:
        return None
    said = [
        f"the clock of {names.get(host, host)} is {abs(by):.1f} s {'ahead' if by > 0 else 'behind'}"
        for host, by in list(off.items())[:_NAMED]
    ]
    return Verdict(row=row, words="; ".join(said) + _more(len(off) - len(said), "host"), hosts=tuple(off))


def _differing(row: Row, checked: Mapping[int, ev.HostChecked], names: Mapping[int, str]) -> Verdict | None:
    """The value that fewer hosts have is the odd one; where two are even, the later host's."""
    subjects: dict[str, dict[str, list[int]]] = {}
    for host, said in sorted(checked.items()):
        for fact in said.facts:
            if fact.name == row.fact:
                hosts = subjects.setdefault(fact.of, {}).setdefault(fact.value, [])
                if host not in hosts:
                    hosts.append(host)
    for of, values in subjects.items():
        if len(values) > 1:
            usual, *odd = sorted(values.items(), key=lambda item: -len(item[1]))
            subject = of or _CALLED.get(row.fact, row.fact)
            others = "; ".join(f"{_hosts(hosts, names)}: {value}" for value, hosts in odd[:_NAMED])
            words = f"{subject} differs: {others}; {_hosts(usual[1], names)}: {usual[0]}"
            return Verdict(row=row, words=words, hosts=tuple(host for _, hosts in odd for host in hosts))
    return None


def _hosts(hosts: list[int], names: Mapping[int, str]) -> str:
    named = ", ".join(dict.fromkeys(str(names.get(host, host)) for host in hosts[:_NAMED]))
    return f"{named} and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else named


def _more(number: int, noun: str) -> str:
    return f"; and {number} more {noun}{'s' if number > 1 else ''}" if number > 0 else ""

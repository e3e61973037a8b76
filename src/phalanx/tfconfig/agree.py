"""Whether the TF_CONFIGs of several nodes belong to one job; TensorFlow never compares them, it hangs."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

from phalanx.names import TaskId, join_host_port, training_order
from phalanx.tfconfig.address import read
from phalanx.tfconfig.explain import spell
from phalanx.tfconfig.finding import Finding, Severity
from phalanx.tfconfig.quote import brief, sentence
from phalanx.tfconfig.tolerant import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from phalanx.tfconfig.model import Cluster
    from phalanx.tfconfig.parse import Parsed

#: How many differing addresses of one type a message names.
_NAMED = 3

#: What compares: type, then (index, address) by index. Host names are the same in any case; an empty type is none.
_View = tuple[tuple[str, tuple[tuple[int, str], ...]], ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What holds between nodes, and what follows where it does not."""

    id: str
    severity: Severity
    message: str
    consequence: str
    fix: str
    source: str


RULES = (
    Rule(
        id="agree-no-cluster",
        severity=Severity.ERROR,
        message="a node has no cluster",
        consequence="It trains alone, in silence, while the others wait for it.",
        fix="give it the cluster that the others have",
        source="R11; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-cluster",
        severity=Severity.ERROR,
        message="a node has other task types or addresses",
        consequence="TensorFlow never compares clusters: this node waits for tasks that nobody runs.",
        fix="write the same cluster on every node",
        source="R62; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-size",
        severity=Severity.ERROR,
        message="a node counts other tasks",
        consequence="All start, then fail with InternalError: joining a group with size 2, but that group has size 3.",
        fix="write the same cluster on every node",
        source="R62; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-order",
        severity=Severity.ERROR,
        message="a node has the same addresses in another order",
        consequence="One process fails with UnknownError: Could not start gRPC server, the others hang.",
        fix="write the addresses in the same order on every node",
        source="R62; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-task-missing",
        severity=Severity.ERROR,
        message="a node does not say which task it is",
        consequence="ValueError: When `cluster_spec` is given, you must also specify `task_type` and `task_id`.",
        fix='add "task": {"type": "worker", "index": 0} with its own type and index',
        source="R28; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-task-unknown",
        severity=Severity.ERROR,
        message="a node claims a task that the cluster does not have",
        consequence="ValueError: The `task_id` 5 exceeds the maximum id of worker.",
        fix="give it a task that nobody claims, or add its address to the cluster on every node",
        source="R13; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-task-twice",
        severity=Severity.ERROR,
        message="several nodes claim the same task",
        consequence="On one host UnknownError: Could not start gRPC server and the others hang; on several all hang.",
        fix="give each node its own index",
        source="R19; R58; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-task-unclaimed",
        severity=Severity.ERROR,
        message="no node claims a task of the cluster",
        consequence="All others wait for it, silently and for up to an hour.",
        fix="start it with its own TF_CONFIG, or take it out of the cluster on every node",
        source="R19; R20; measured on TensorFlow 2.21",
    ),
    Rule(
        id="agree-evaluator-unclaimed",
        severity=Severity.WARNING,
        message="no node claims the evaluator that the cluster lists",
        consequence="Nothing is evaluated; ParameterServerStrategy waits for it for ever.",
        fix="start it, or take it out of the cluster",
        source="R02; measured on TensorFlow 2.21",
    ),
)
_BY_ID = {rule.id: rule for rule in RULES}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Node:
    """A node whose TF_CONFIG could be read and has a cluster."""

    name: str
    parsed: Parsed
    cluster: Cluster
    task: TaskId | None
    view: _View

    @property
    def partial(self) -> bool:
        """A sparse cluster of a ParameterServerStrategy job: a worker need not see the other workers (R12)."""
        return bool(self.cluster.sparse and self.cluster.jobs.get("ps"))

    @property
    def evaluates(self) -> bool:
        return self.task is not None and self.task.type == "evaluator"


def agree(nodes: Mapping[str, Parsed]) -> tuple[Finding, ...]:
    """Compare the TF_CONFIGs of a job's nodes, given by node name.

    The cluster that most nodes have is the reference (the first of them where votes are even). Found are: a node whose
    text cannot be read or has no cluster, another address, type, size or order (R62: order matters), a task claimed
    twice, by nobody or that the cluster does not have (R19), a node that names no task (R28). Key order and white space
    are no difference, nor is an evaluator that alone sees itself (R03) or the sparse part of a ps job's cluster (R12).
    Time and memory O(total size).
    """
    findings: list[Finding] = []
    seen: list[_Node] = []
    unread = 0
    for name, parsed in nodes.items():
        broken = [f for f in parsed.findings if f.severity is Severity.ERROR]
        findings += broken
        config = parsed.config
        if config is not None and config.cluster is not None and any(config.cluster.jobs.values()):
            view = _view(config.cluster)
            seen.append(_Node(name=name, parsed=parsed, cluster=config.cluster, task=config.task, view=view))
        else:
            unread += 1
            if not broken:
                findings.append(_finding("agree-no-cluster", name, parsed, f"{name} has no cluster"))
    if not seen:
        return tuple(findings)
    reference, label = _reference(seen)
    for node in seen:
        findings += _compare(node, reference, label)
    findings += _claims(seen, reference, unread)
    return tuple(findings)


def _view(cluster: Cluster) -> _View:
    return tuple(
        (kind, tuple(sorted((index, _same(address)) for index, address in of.items())))
        for kind, of in sorted(cluster.jobs.items())
        if of
    )


def _same(text: str) -> str:
    """Equal for addresses that are written differently and mean the same: `N7.:2222` and `n7:2222`."""
    address = read(text)
    return join_host_port(address.canonical, address.port) if address.host and address.port else brief(text)


def _without_evaluator(view: _View) -> _View:
    return tuple((kind, of) for kind, of in view if kind != "evaluator")


def _reference(seen: Sequence[_Node]) -> tuple[_Node, str]:
    """The first node that has the most common cluster, and what to call those that have it."""
    voters = [node for node in seen if not node.evaluates] or list(seen)
    voters = [node for node in voters if not node.partial] or voters
    votes = collections.Counter(node.view for node in voters)
    view, count = votes.most_common(1)[0]
    first = next(node for node in voters if node.view == view)
    return first, first.name if count == 1 else f"{count} other nodes"


def _compare(node: _Node, reference: _Node, label: str) -> Iterator[Finding]:
    """How one node's cluster differs from the reference, and whether it names a task of it."""
    mine, theirs = node.view, reference.view
    if node.evaluates and "evaluator" not in dict(theirs):
        mine = _without_evaluator(mine)
    if mine != theirs:
        ours, other = dict(mine), dict(theirs)
        for kind in dict.fromkeys([*other, *ours]):
            if ours.get(kind) != other.get(kind) and not _part_of(node, reference, kind):
                yield _differ(node, kind, dict(ours.get(kind, ())), dict(other.get(kind, ())), label)
    if node.task is None:
        message = f"{node.name} names no task: it does not say which of the {_size(node)} tasks it is"
        yield _finding("agree-task-missing", node.name, node.parsed, message)
    elif mine == theirs and not node.evaluates and node.cluster.address(node.task) is None:
        message = f"{node.name} claims {node.task}, which the cluster does not have"
        yield _finding("agree-task-unknown", node.name, node.parsed, message, "/task")


def _part_of(node: _Node, reference: _Node, kind: str) -> bool:
    """Whether a sparse type is a part of the reference's: the same as far as both of them list it."""
    mine, theirs = (dict(dict(one.view).get(kind, ())) for one in (node, reference))
    if not node.partial or kind not in node.cluster.sparse:
        return False
    return all(theirs.get(index, address if reference.partial else None) == address for index, address in mine.items())


def _differ(node: _Node, kind: str, mine: dict[int, str], theirs: dict[int, str], label: str) -> Finding:
    """The one finding about a type that is not the same on this node."""
    if not mine:
        return _finding(
            "agree-cluster", node.name, node.parsed, f"{node.name} lists no {kind}; {label}: {len(theirs)}", "/cluster"
        )
    pointer = f"/cluster/{escape(kind)}"
    if not theirs:
        return _finding(
            "agree-cluster", node.name, node.parsed, f"{node.name} lists {len(mine)} {kind}; {label}: none", pointer
        )
    changed = [i for i in mine if mine[i] != theirs.get(i)]
    if sorted(mine.values()) == sorted(theirs.values()):
        at = changed[0]
        message = (
            f"{node.name} lists {kind} in another order than {label}: {kind}:{at} is {mine[at]} here"
            f" and {theirs.get(at, 'not there')} there; order matters, for the place in the list is the index"
        )
        return _finding("agree-order", node.name, node.parsed, message, f"{pointer}/{at}")
    if len(mine) != len(theirs):
        known, there = set(mine.values()), set(theirs.values())
        more = [address for address in mine.values() if address not in there]
        less = [address for address in theirs.values() if address not in known]
        told = "; ".join(_list(what, of) for what, of in (("only here", more), ("missing here", less)) if of)
        message = f"{node.name} lists {len(mine)} {kind}, {label}: {len(theirs)}" + (f" ({told})" if told else "")
        return _finding("agree-size", node.name, node.parsed, message, pointer)
    told = ", ".join(f"{kind}:{i} is {mine[i]} here and {theirs.get(i, 'not there')} there" for i in changed[:_NAMED])
    more_text = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
    message = f"{node.name} has other addresses than {label}: {told}{more_text}"
    return _finding("agree-cluster", node.name, node.parsed, message, f"{pointer}/{changed[0]}")


def _list(what: str, addresses: Sequence[str]) -> str:
    more = f" and {len(addresses) - _NAMED} more" if len(addresses) > _NAMED else ""
    return f"{what}: {', '.join(addresses[:_NAMED])}{more}"


def _claims(seen: Sequence[_Node], reference: _Node, unread: int) -> Iterator[Finding]:
    """Each task claimed once, none missing; tasks that unreadable nodes may hold are not called missing."""
    claims: dict[TaskId, list[_Node]] = {}
    for node in seen:
        if node.task is not None:
            claims.setdefault(node.task, []).append(node)
    for task, holders in claims.items():
        if len(holders) > 1:
            names = ", ".join(node.name for node in holders[:_NAMED])
            more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
            last = holders[-1]
            message = f"{task} is claimed by {len(holders)} nodes: {names}{more}"
            yield _finding("agree-task-twice", last.name, last.parsed, message, "/task")
    missing = sorted((task for task in reference.cluster.tasks() if task not in claims), key=training_order)
    needed = [task for task in missing if task.type != "evaluator"]
    if len(needed) > unread:
        pointer = f"/cluster/{needed[0].type}/{needed[0].index}"
        message = f"no node claims {spell(needed)}"
        yield _finding("agree-task-unclaimed", reference.name, reference.parsed, message, pointer)
    if len(needed) < len(missing) and not unread:
        message = "the evaluator is listed, but no node claims evaluator:0: nothing is evaluated"
        yield _finding("agree-evaluator-unclaimed", reference.name, reference.parsed, message, "/cluster/evaluator")


def _size(node: _Node) -> int:
    return sum(len(of) for of in node.cluster.jobs.values())


def _finding(rule_id: str, name: str, parsed: Parsed, message: str, pointer: str = "") -> Finding:
    rule = _BY_ID[rule_id]
    return Finding(
        id=rule.id,
        severity=rule.severity,
        message=sentence(message),
        consequence=rule.consequence,
        fix=rule.fix,
        source=rule.source,
        path=parsed.path or name,
        pointer=pointer,
        place=parsed.place(pointer),
    )

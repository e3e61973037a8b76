"""A row of the table of rules, the case it judges, and how its hits become findings."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from phalanx.tfconfig.credentials import credentials
from phalanx.tfconfig.finding import Finding, Place, Severity
from phalanx.tfconfig.quote import sentence

if TYPE_CHECKING:
    from phalanx.names import TaskId
    from phalanx.tfconfig.jsontext import Document
    from phalanx.tfconfig.meaning import Entry, Meaning
    from phalanx.tfconfig.model import Cluster

#: One rule reports so many places of a text, then only how many more there are.
LIMIT = 20


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One TF_CONFIG and what is known about the job it is for; the rules look at nothing else.

    `strategy` is mwms, ps or estimator; `inferred` says that the cluster told it, not the user. `hosts` is how many
    machines the job has, None where nobody said. `live` is the environment's own variable, not a file. `environ` and
    `resolve` (name → its IP addresses, empty for none) bring the machine in; None leaves its rules out.
    """

    document: Document
    meaning: Meaning
    strategy: str = "mwms"
    inferred: bool = True
    tf_version: tuple[int, int] | None = None
    expect_cluster: bool = False
    hosts: int | None = None
    live: bool = False
    environ: Mapping[str, str] | None = None
    resolve: Callable[[str], frozenset[str]] | None = None

    @property
    def top(self) -> Mapping[str, Any]:
        """The outermost object; empty where the text is none."""
        value = self.document.value
        return value if isinstance(value, dict) else {}

    @property
    def jobs(self) -> Mapping[str, Any]:
        """What stands under `cluster`, as written; empty where that is no object."""
        jobs = self.top.get("cluster")
        return jobs if isinstance(jobs, dict) else {}

    @property
    def written_task(self) -> Mapping[str, Any] | None:
        """What stands under `task`, as written; None where that is no object."""
        task = self.top.get("task")
        return task if isinstance(task, dict) else None

    @property
    def cluster(self) -> Cluster | None:
        """The cluster as far as it can be made out; None where there is none or it has no type."""
        cluster = self.meaning.config.cluster
        return cluster if cluster is not None and cluster.jobs else None

    @property
    def task(self) -> TaskId | None:
        """Who this is, as far as it can be made out."""
        return self.meaning.config.task

    @property
    def type(self) -> str | None:
        """The task's type, also where its index is missing or wrong."""
        kind = (self.written_task or {}).get("type")
        return kind if isinstance(kind, str) else None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every address of the cluster that is a text, in the order written."""
        return self.meaning.entries


class Hit(NamedTuple):
    """One place a rule found. Empty texts are the rule's own; hits of one group are told as one, with their number."""

    pointer: str = ""
    message: str = ""
    fix: str = ""
    key: bool = False
    group: str = ""
    span: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A row: `find` is the condition, `consequence` what TensorFlow would do, `fix` what to write instead.

    `message` is the rule in one sentence, for the table in the documentation. `strategies` are those it is for, none
    meaning all. `source` names a report (R..), a section of TensorFlow's measured behaviour, or the file in TensorFlow.
    """

    id: str
    severity: Severity
    message: str
    find: Callable[[Case], Iterable[Hit]]
    consequence: str = ""
    fix: str = ""
    source: str = ""
    strategies: tuple[str, ...] = ()


def judge(rules: Iterable[Rule], case: Case, path: str) -> list[Finding]:
    """Every finding of these rules, those of one rule in the order of the text."""
    findings: list[Finding] = []
    for rule in rules:
        if not rule.strategies or case.strategy in rule.strategies:
            findings += _findings(rule, case, path)
    return findings


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By place; at one place the graver first."""
    return tuple(sorted(findings, key=lambda f: (f.place.line, f.place.column, -f.severity.weight, f.id)))


def _findings(rule: Rule, case: Case, path: str) -> list[Finding]:
    groups: dict[str, list[Hit]] = collections.defaultdict(list)
    for number, hit in enumerate(rule.find(case)):
        groups[hit.group or f"\0{number}"].append(hit)
    secrets = frozenset(credentials(case.document.value)) if groups else frozenset()
    findings: list[Finding] = []
    for count, hits in enumerate(groups.values()):
        if count == LIMIT:
            last = findings[-1]
            more = f"{last.message} (and {len(groups) - LIMIT:,} more like it)"
            findings[-1] = dataclasses.replace(last, message=more)
            break
        first = hits[0]
        if first.pointer in secrets and rule.id != "secret":
            first = first._replace(message="", fix="")  # its own words would repeat a part of it
        findings.append(_finding(rule, first, len(hits), case, path))
    return findings


def _finding(rule: Rule, hit: Hit, count: int, case: Case, path: str) -> Finding:
    message = hit.message or _clause(rule.message)
    if count > 1:
        message += f" (here and at {count - 1:,} more place{'s' if count > 2 else ''})"  # noqa: PLR2004 - plural
    if rule.strategies and case.inferred:
        why = "has a ps" if case.strategy == "ps" else "has no ps"
        message += f" (taken for {case.strategy}: the cluster {why})"
    return Finding(
        id=rule.id,
        severity=rule.severity,
        message=sentence(message),
        consequence=rule.consequence,
        fix=sentence(hit.fix) or rule.fix,
        source=rule.source,
        path=path,
        pointer=hit.pointer,
        place=_place(hit, case),
    )


def _clause(sentence: str) -> str:
    """The rule's sentence as findings are told: without full stop and capital, names kept."""
    first = sentence.partition(" ")[0]
    plain = first == first.capitalize()
    return (sentence[0].lower() + sentence[1:] if plain else sentence).removesuffix(".")


def _place(hit: Hit, case: Case) -> Place:
    if hit.span is not None:
        return case.document.place(*hit.span)
    return place(case.document, hit.pointer, key=hit.key)


def place(document: Document, pointer: str, *, key: bool = False) -> Place:
    """Where a pointer's value, or its key, stands; the nearest one above it where there is none."""
    span = document.spans.of(pointer)
    return document.place(span.key_start, span.key_end) if key else document.place(span.start, span.end)

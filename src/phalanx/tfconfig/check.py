"""What is wrong with a TF_CONFIG, found without TensorFlow and without the network."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Literal

from phalanx.errors import InputError
from phalanx.tfconfig.finding import Finding
from phalanx.tfconfig.parse import Parsed, parse
from phalanx.tfconfig.rule import Rule, in_order, judge
from phalanx.tfconfig.rules import addresses, circumstances, evaluator, keys, roles, shape, syntax, task

#: The rules that `parse` has judged already.
_PARSED = (*syntax.RULES, *shape.RULES)
#: The rules that need a decoded text.
_MEANT = (*keys.RULES, *task.RULES, *roles.RULES, *evaluator.RULES, *addresses.RULES, *circumstances.RULES)

#: The one table: a row a rule. The documentation and SARIF are made from it.
RULES: tuple[Rule, ...] = (*_PARSED, *_MEANT)

#: Ids of findings whose place covers a secret: whoever shows the line masks it.
SECRETS = frozenset({"secret", "address-user"})

STRATEGIES = ("mwms", "ps", "estimator")

Strategy = Literal["auto", "mwms", "ps", "estimator"]


def check(
    text: str | Parsed | None,
    *,
    path: str = "",
    strategy: str = "auto",
    tf_version: str | None = None,
    expect_cluster: bool = False,
    hosts: int | None = None,
    delivery: Literal["variable", "file"] = "file",
    environ: Mapping[str, str] | None = None,
    resolve: Callable[[str], frozenset[str]] | None = None,
) -> tuple[Finding, ...]:
    """Judge one TF_CONFIG by every rule; findings in the order of the text, those of `parse` included.

    `strategy` is mwms, ps, estimator, or auto: ps where the cluster has one, else mwms (findings that hang on it say
    so). `tf_version` such as `2.21` wakes the rules that depend on it. `expect_cluster`: a missing cluster is an error.
    `hosts`: how many machines the job has. `delivery`: "variable" for the environment's own, bound by the size limit
    of one variable. `environ` and `resolve` (host name → its IP addresses, empty for none) bring this machine in: proxy
    settings and names; without them nothing outside the text is looked at.

    Never raises on any text; InputError for a strategy, version or number of hosts that is none. O(size of the text).
    """
    parsed = text if isinstance(text, Parsed) else parse(text, path=path)
    if hosts is not None and hosts < 1:
        raise InputError(f"{hosts} is no number of hosts", hint="count from 1 on")
    if strategy not in {"auto", *STRATEGIES}:
        raise InputError(f"{strategy!r} is no strategy; there are auto, {', '.join(STRATEGIES)}")
    case = dataclasses.replace(
        parsed.case,
        strategy=infer(parsed) if strategy == "auto" else strategy,
        inferred=strategy == "auto",
        tf_version=None if tf_version is None else version(tf_version),
        expect_cluster=expect_cluster,
        hosts=hosts,
        live=delivery == "variable",
        environ=environ,
        resolve=resolve,
    )
    if not case.document.readable:
        return parsed.findings
    return in_order([*parsed.findings, *judge(_MEANT, case, parsed.path)])


def infer(parsed: Parsed) -> str:
    """The strategy that `auto` comes to: ps where the cluster has a parameter server, else mwms."""
    cluster = parsed.case.cluster
    listed = [kind for kind, of in cluster.jobs.items() if of] if cluster else []
    return "ps" if any(kind == "ps" or roles.stands_for(kind) == "ps" for kind in listed) else "mwms"


def version(text: str) -> tuple[int, int]:
    """`2.21.0` as (2, 21). Raises InputError where it is no version."""
    found = re.match(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])", text)
    if found is None:
        raise InputError(f"{text[:40]!r} is no version of TensorFlow", hint="write it like 2.21")
    return int(found[1]), int(found[2])

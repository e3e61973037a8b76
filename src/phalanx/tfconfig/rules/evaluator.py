"""Rules about the evaluator, where each strategy wants something else and the documents disagree (R01-R03)."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.rule import Case, Hit, Rule

_POINTER = "/cluster/evaluator"


def _listed(case: Case) -> bool:
    return bool(case.cluster and case.cluster.jobs.get("evaluator"))


def _in_cluster(case: Case) -> Iterator[Hit]:
    if _listed(case):
        yield Hit(_POINTER, key=True)


def _seen_by_others(case: Case) -> Iterator[Hit]:
    if _listed(case) and case.type != "evaluator":
        yield Hit(_POINTER, key=True)


def _outside(case: Case) -> Iterator[Hit]:
    if case.type == "evaluator" and case.cluster is not None and not _listed(case):
        yield Hit("/task/type")


RULES = (
    Rule(
        id="evaluator-in-ps",
        severity=Severity.ERROR,
        message="The evaluator stands in the cluster of a ParameterServerStrategy job.",
        find=_in_cluster,
        consequence="The chief connects to every task listed and waits for ever: an evaluator runs no server.",
        fix="take evaluator out of the cluster on all nodes, the evaluator's own included",
        source="R02; R05; R01",
        strategies=("ps",),
    ),
    Rule(
        id="evaluator-in-mwms",
        severity=Severity.WARNING,
        message="The evaluator stands in the cluster of a MultiWorkerMirroredStrategy job.",
        find=_in_cluster,
        consequence="The workers do not mind; the evaluator, running the same script, trains a copy of its own.",
        fix='take it out, and let the script branch on task type "evaluator" before it makes a strategy',
        source="R01; measured on TensorFlow 2.21",
        strategies=("mwms",),
    ),
    Rule(
        id="evaluator-outside-mwms",
        severity=Severity.WARNING,
        message="This is the evaluator, and the cluster does not list it.",
        find=_outside,
        consequence="MultiWorkerMirroredStrategy() raises KeyError: 'evaluator' there.",
        fix='right, if the script branches on task type "evaluator" before it makes a strategy',
        source="R01; measured on TensorFlow 2.21",
        strategies=("mwms",),
    ),
    Rule(
        id="evaluator-seen-estimator",
        severity=Severity.WARNING,
        message="A task that is not the evaluator sees it in the cluster.",
        find=_seen_by_others,
        consequence="tf.estimator says the evaluator is no part of the cluster, and some versions fail on it.",
        fix="list it only in the evaluator's own TF_CONFIG",
        source="R01; R03; R04",
        strategies=("estimator",),
    ),
    Rule(
        id="evaluator-missing-estimator",
        severity=Severity.ERROR,
        message="This is the evaluator, and its own cluster does not list it.",
        find=_outside,
        consequence="tf.estimator with a multi-worker strategy raises in the evaluator: its type is not there.",
        fix='add "evaluator": ["host:port"] to the evaluator\'s own TF_CONFIG only',
        source="R03; R01",
        strategies=("estimator",),
    ),
)

"""Rules about what surrounds the text: nothing set at all, its size, TensorFlow's version, secrets inside."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.tfconfig.credentials import credentials
from phalanx.tfconfig.finding import Severity
from phalanx.tfconfig.rule import Case, Hit, Rule
from phalanx.tfconfig.rules.keys import mistyped

#: Linux's MAX_ARG_STRLEN, 32 pages: `TF_CONFIG=`, the value and a NUL must fit.
MAX_VARIABLE = 131_072
#: The largest value, in bytes.
MAX_VALUE = MAX_VARIABLE - len("TF_CONFIG=") - 1

#: The first TensorFlow without tf.estimator.
ESTIMATOR_GONE = (2, 16)
#: The first TensorFlow whose servers tell their own name, not localhost.
PROPAGATES_SINCE = (2, 3)


def _no_cluster(case: Case) -> bool:
    top = case.document.value
    return isinstance(top, dict) and top.get("cluster", {}) == {} and "task" not in top and not mistyped(case.top)


def _alone(case: Case) -> Iterator[Hit]:
    if _no_cluster(case) and not case.expect_cluster:
        yield Hit()


def _expected(case: Case) -> Iterator[Hit]:
    if _no_cluster(case) and case.expect_cluster:
        yield Hit()


def _size(case: Case) -> int:
    return len(case.document.text.encode("utf-8", "surrogatepass"))


def _too_large(case: Case) -> Iterator[Hit]:
    size = _size(case)
    if size > MAX_VALUE:
        tasks = len(case.entries)
        per = f"{tasks:,} addresses of {size // max(1, tasks)} bytes each" if tasks else "no addresses"
        yield Hit(message=f"the value has {size:,} bytes, {size - MAX_VALUE:,} more than one variable may hold ({per})")


def _variable_too_large(case: Case) -> Iterator[Hit]:
    return _too_large(case) if case.live else iter(())


def _file_too_large(case: Case) -> Iterator[Hit]:
    return iter(()) if case.live else _too_large(case)


def _estimator_gone(case: Case) -> Iterator[Hit]:
    if case.tf_version is not None and case.tf_version >= ESTIMATOR_GONE:
        yield Hit(message=f"TensorFlow {'.'.join(map(str, case.tf_version))} has no tf.estimator")


def _propagates(case: Case) -> Iterator[Hit]:
    if case.tf_version is not None and case.tf_version < PROPAGATES_SINCE and len(case.entries) > 1:
        yield Hit("/cluster", key=True)


def _secrets(case: Case) -> Iterator[Hit]:
    for pointer in credentials(case.document.value):
        whole = None if pointer else (0, len(case.document.text))
        yield Hit(pointer, "this looks like a secret; its value is not shown", span=whole)


RULES = (
    Rule(
        id="no-cluster",
        severity=Severity.INFO,
        message="There is no cluster.",
        find=_alone,
        consequence="TensorFlow trains alone, as one replica.",
        fix="nothing, if one process is meant; --expect-cluster makes this an error",
        source="R26; measured on TensorFlow 2.21",
    ),
    Rule(
        id="cluster-missing",
        severity=Severity.ERROR,
        message="There is no cluster, and one is expected.",
        find=_expected,
        consequence="TensorFlow trains alone, as one replica, and says nothing.",
        fix="set TF_CONFIG with cluster and task; phalanx generate writes it",
        source="R26; R55; measured on TensorFlow 2.21",
    ),
    Rule(
        id="env-too-large",
        severity=Severity.ERROR,
        message="The value is larger than one environment variable may be.",
        find=_variable_too_large,
        consequence="No process starts with it: OSError: [Errno 7] Argument list too long.",
        fix="use shorter names or IP addresses, or deliver it by a file (phalanx run does)",
        source="R32; measured on TensorFlow 2.21",
    ),
    Rule(
        id="env-too-large-file",
        severity=Severity.INFO,
        message="The value is larger than one environment variable may be: it will be delivered by file.",
        find=_file_too_large,
        consequence="As a variable no process would start with it: Argument list too long.",
        fix="nothing under phalanx run; elsewhere read the file and set os.environ before TensorFlow is imported",
        source="R32; measured on TensorFlow 2.21",
    ),
    Rule(
        id="estimator-gone",
        severity=Severity.ERROR,
        message="TensorFlow 2.16 and later have no tf.estimator.",
        find=_estimator_gone,
        consequence="AttributeError: module 'tensorflow' has no attribute 'estimator'.",
        fix="use TensorFlow 2.15 or earlier, or move to Keras with --strategy mwms or ps",
        source="R89",
        strategies=("estimator",),
    ),
    Rule(
        id="localhost-propagation",
        severity=Severity.WARNING,
        message="Servers of TensorFlow before 2.3 tell their peers that they are localhost.",
        find=_propagates,
        consequence="Where the cluster is handed on (ClusterSpec propagation) the peers dial themselves and hang.",
        fix="use TensorFlow 2.3 or later",
        source="R48; tensorflow/tensorflow#38600",
        strategies=("ps", "estimator"),
    ),
    Rule(
        id="secret",
        severity=Severity.WARNING,
        message="A value looks like a secret.",
        find=_secrets,
        consequence="TF_CONFIG is shown by ps, /proc, kubectl describe and logs: it is no place for secrets.",
        fix="take it out and mount it, or pass it as a declared secret of the job",
        source="vector F30",
    ),
)

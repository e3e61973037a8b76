"""Rules about who the script thinks it is: TF_CONFIG overwritten, other sources of the cluster, its own servers."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from phalanx.script.module import Module
from phalanx.script.program import STRATEGIES, Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.walk import Step
from phalanx.tfconfig.finding import Severity

_SLURM = "tensorflow.distribute.cluster_resolver.SlurmClusterResolver"
_SLURM_NAMES = re.compile(
    r"SLURM(?:D)?_(?:PROCID|NODELIST|JOB_NODELIST|STEP_NODELIST|NODEID|NODENAME|NTASKS|LOCALID)\Z"
)
_FLAG_NAMES = frozenset({"job_name", "task_index", "ps_hosts", "worker_hosts"})
SERVERS = (
    "tensorflow.distribute.Server",
    "tensorflow.train.Server",
    "tensorflow.compat.v1.train.Server",
    "tensorflow.compat.v1.distribute.Server",
)
_CLUSTER_SPECS = ("tensorflow.train.ClusterSpec", "tensorflow.compat.v1.train.ClusterSpec")


def _changed(program: Program) -> Iterator[tuple[Module, ast.AST, ast.expr | None]]:
    """Where the script sets TF_CONFIG (None: takes it away) without a condition that may be about it."""
    for change in program.changes:
        if change.name == "TF_CONFIG" and program.always(change.node):
            yield change.module, change.node, change.value


def _after_strategy(program: Program, node: ast.AST) -> Step | None:
    """The strategy that is always built before this statement."""
    steps = program.steps
    at = next((number for number, step in enumerate(steps) if step.node is node), None)
    if at is None:
        return None
    return next((it for it in steps[:at] if it.name in STRATEGIES and it.leads_to(steps[at])), None)


def _overwritten(program: Program) -> Iterator[Hit]:
    for module, node, value in _changed(program):
        if value is None or _after_strategy(program, node) is not None:
            continue
        if (who := _task(program.constant(module, value))) is not None:
            yield Hit(module, node, f"the script sets TF_CONFIG itself, and is {who} in every task")


def _task(value: Any) -> str | None:
    """`worker:0`, where a TF_CONFIG says that whole; what is not known of it stands there as a text."""
    task = _config(value).get("task")
    if isinstance(task, dict) and isinstance(task.get("index"), int) and isinstance(task.get("type"), str):
        return f"{task['type']}:{task['index']}"
    return None


def _config(value: Any) -> dict[str, Any]:
    """The TF_CONFIG that a text says; empty for what is none."""
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _removed(program: Program) -> Iterator[Hit]:
    for module, node, value in _changed(program):
        built = any(step.name in STRATEGIES for step in program.steps)
        if value is None and built and _after_strategy(program, node) is None and not _set_anywhere(program):
            yield Hit(module, node)


def _set_anywhere(program: Program) -> bool:
    return any(change.name == "TF_CONFIG" and change.value is not None for change in program.changes)


def _too_late(program: Program) -> Iterator[Hit]:
    for module, node, value in _changed(program):
        if value is not None and (strategy := _after_strategy(program, node)) is not None:
            line = getattr(strategy.node, "lineno", 0)
            yield Hit(module, node, f"TF_CONFIG is set after the strategy of line {line} was built")


def _master(program: Program) -> Iterator[Hit]:
    """`cluster["master"]`, where nothing of the program asks whether it is there."""
    asked = any(
        isinstance(node, ast.Compare)
        and any(isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for op in node.ops)
        and "'master'" in ast.dump(node)
        for module in program.modules
        for node in module.nodes
    )
    if asked:
        return
    for module in program.modules:
        for node in module.nodes:
            match node:
                case ast.Subscript(value=base, slice=ast.Constant(value="master"), ctx=ast.Load()):
                    if "cluster" in ast.unparse(base).lower():
                        yield Hit(module, node)


def _own_server(program: Program) -> Iterator[Hit]:
    """One after the other in the same task, in either order; a server that is joined lets nothing follow it."""
    steps = program.steps
    mwms = [number for number, step in enumerate(steps) if STRATEGIES.get(step.name or "") == "mwms"]
    for at, step in enumerate(steps):
        if step.name not in SERVERS:
            continue
        follows = any(number < at and steps[number].leads_to(step) for number in mwms)
        leads = any(
            number > at and step.leads_to(steps[number]) and not any(map(_joins, steps[at:number])) for number in mwms
        )
        if follows or leads:
            yield Hit(step.module, step.node, severity=program.unless_sure("mwms"))


def _joins(step: Step) -> bool:
    match step.node:
        case ast.Call(func=ast.Attribute(attr="join"), args=[]):
            return True
    return False


def _ps_under_mwms(program: Program) -> Iterator[Hit]:
    if program.strategy != "mwms":
        return
    for module, node, value in _changed(program):
        cluster = _config(program.constant(module, value)).get("cluster") if value is not None else None
        if isinstance(cluster, dict) and cluster.get("ps"):
            said = "the TF_CONFIG of the script has a ps, and its strategy is MultiWorkerMirroredStrategy"
            yield Hit(module, node, said, severity=program.unless_sure("mwms"))
    if program.roles is not None and program.roles.ps:
        for step in program.strategies:
            if not step.guards:
                yield Hit(
                    step.module,
                    step.node,
                    "the job has a ps, and the script builds MultiWorkerMirroredStrategy in every task",
                    fix="leave --ps out, or build a ParameterServerStrategy in the chief",
                )


def _slurm(program: Program) -> Iterator[Hit]:
    given = program.roles is not None  # by phalanx, which tells it by TF_CONFIG
    for call in program.calls:
        if call.name == _SLURM:
            surely = given and program.always(call.node)
            yield Hit(call.module, call.node, severity=Severity.ERROR if surely else None)
            return
    if not _set_anywhere(program):
        return
    for module in program.modules:
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SLURM_NAMES.match(node.value):
                yield Hit(module, node, f"the script makes TF_CONFIG of {node.value} and its like")
                return


def _flags(program: Program) -> Iterator[Hit]:
    for module, node, value in _changed(program):
        unknown = _task(program.constant(module, value)) is None
        if value is not None and unknown and program.values(module).from_flags(value):
            yield Hit(module, node, "the script makes TF_CONFIG of its flags")
            return
    if program.says("TF_CONFIG") or "TFConfigClusterResolver" in program.words or "estimator" in program.words:
        return
    for call in program.calls:
        if call.name in _CLUSTER_SPECS and program.values(call.module).flags.keys() & _FLAG_NAMES:
            yield Hit(call.module, call.node)
            return


def _evaluator(program: Program) -> Iterator[Hit]:
    if program.roles is None or not program.roles.evaluator or any(map(program.says, ("evaluator", "ps"))):
        return
    for step in program.strategies:
        if not step.guards and STRATEGIES[step.name or ""] == "mwms":
            yield Hit(step.module, step.node)
            return


def _no_server(program: Program) -> Iterator[Hit]:
    if not program.closed or program.words & {"Server", "estimator", "Estimator", "start_server", "join_server"}:
        return
    if program.tensorflow is not None and program.tensorflow < (2, 4):
        return
    for step in program.strategies:
        if STRATEGIES[step.name or ""] == "ps" and not step.guards:
            yield Hit(step.module, step.node)
            return


RULES = (
    Rule(
        id="tf-config-overwritten",
        severity=Severity.ERROR,
        message="The script sets TF_CONFIG itself, to one task's.",
        find=_overwritten,
        consequence="Every process takes itself for that task: one binds its port, the others hang or cannot bind it.",
        fix="take the lines out: phalanx run sets TF_CONFIG for each task before Python starts",
        source="R19; R23; facts §9",
    ),
    Rule(
        id="tf-config-removed",
        severity=Severity.ERROR,
        message="The script takes TF_CONFIG out of its environment before it builds the strategy.",
        find=_removed,
        consequence="Each task trains alone, as one replica, and says nothing.",
        fix="take the line out",
        source="facts §9",
    ),
    Rule(
        id="tf-config-too-late",
        severity=Severity.WARNING,
        message="TF_CONFIG is set after the strategy was built.",
        find=_too_late,
        consequence="TensorFlow has read it already: the line changes nothing.",
        fix="take it out: phalanx run sets TF_CONFIG before Python starts; elsewhere set it before the strategy",
        source="R23",
    ),
    Rule(
        id="master-job",
        severity=Severity.ERROR,
        message="The script reads the `master` of its cluster; TensorFlow 2 has a `chief`.",
        find=_master,
        consequence="KeyError: 'master'.",
        fix='read "chief", or the first worker where there is none',
        source="R06; R07",
    ),
    Rule(
        id="own-server",
        severity=Severity.ERROR,
        message="The script starts a Server beside MultiWorkerMirroredStrategy, which starts its own at the same port.",
        find=_own_server,
        consequence="UnknownError: Could not start gRPC server.",
        fix="take the server out; only the worker and ps of a ParameterServerStrategy run one",
        source="R36; facts §9",
    ),
    Rule(
        id="ps-under-mwms",
        severity=Severity.ERROR,
        message="A cluster with a ps, under MultiWorkerMirroredStrategy.",
        find=_ps_under_mwms,
        consequence="A silent hang: the leader would be ps:0, which never answers.",
        fix="leave the ps out",
        source="facts §9",
    ),
    Rule(
        id="cluster-from-slurm",
        severity=Severity.WARNING,
        message="The script takes its cluster from Slurm's variables and does not read TF_CONFIG.",
        find=_slurm,
        consequence="Outside an srun step it fails; inside one it overrides the cluster that the launcher has made.",
        fix="MultiWorkerMirroredStrategy() without a resolver reads TF_CONFIG, which is right in every place",
        source="R28; R55; R56",
    ),
    Rule(
        id="cluster-from-flags",
        severity=Severity.WARNING,
        message="The script takes its cluster from flags (--ps_hosts, --job_name …) and does not read TF_CONFIG.",
        find=_flags,
        consequence="One command for all tasks gives all of them the same flags: every process is the same task.",
        fix="read TF_CONFIG: tf.distribute.cluster_resolver.TFConfigClusterResolver() has cluster_spec(), task_type…",
        source="R08; R18",
    ),
    Rule(
        id="evaluator-branch",
        severity=Severity.ERROR,
        message="The evaluator runs the same script, which builds MultiWorkerMirroredStrategy in every task.",
        find=_evaluator,
        consequence="KeyError: 'evaluator' in the evaluator, which is in nobody's cluster.",
        fix='ask for the task\'s type first, json.loads(os.environ["TF_CONFIG"])["task"]["type"], and build no '
        "strategy in the evaluator; or give the role a command of its own",
        source="R01; R03; facts §1",
    ),
    Rule(
        id="ps-without-server",
        severity=Severity.ERROR,
        message="ParameterServerStrategy is built in every task, and no worker or ps runs a Server.",
        find=_no_server,
        consequence="Each worker and ps tries to be the chief: UnknownError: Could not start gRPC server.",
        fix='before it: if resolver.task_type in ("worker", "ps"): tf.distribute.Server(resolver.cluster_spec(), '
        'job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc").join()',
        source="facts §2",
    ),
)

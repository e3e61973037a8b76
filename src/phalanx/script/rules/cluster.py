"""Rules about who the script thinks it is: TF_CONFIG overwritten or taken away, its own servers, roles left out."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

from phalanx.script.known import STRATEGIES
from phalanx.script.module import Module
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.walk import Step
from phalanx.tfconfig.finding import Severity

SERVERS = (
    "tensorflow.distribute.Server",
    "tensorflow.train.Server",
    "tensorflow.compat.v1.train.Server",
    "tensorflow.compat.v1.distribute.Server",
)


def changed(program: Program) -> Iterator[tuple[Module, ast.AST, ast.expr | None]]:
    """Where the script sets TF_CONFIG (None: takes it away) without a condition that may be about it."""
    for change in program.changes:
        if change.name == "TF_CONFIG" and program.always(change.node):
            yield change.module, change.node, change.value


def after_strategy(program: Program, node: ast.AST) -> Step | None:
    """The strategy that is always built before this statement."""
    steps = program.steps
    at = next((number for number, step in enumerate(steps) if step.node is node), None)
    if at is None:
        return None
    return next((it for it in steps[:at] if it.name in STRATEGIES and it.leads_to(steps[at])), None)


def _overwritten(program: Program) -> Iterator[Hit]:
    for module, node, value in changed(program):
        if value is None or after_strategy(program, node) is not None:
            continue
        if (who := task_of(program.constant(module, value))) is not None:
            yield Hit(module, node, f"the script sets TF_CONFIG itself, and is {who} in every task")


def task_of(value: Any) -> str | None:
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
    for module, node, value in changed(program):
        built = any(step.name in STRATEGIES for step in program.steps)
        if value is None and built and after_strategy(program, node) is None and not _set_in_time(program):
            yield Hit(module, node)


def _set_in_time(program: Program) -> bool:
    """Whether it is set somewhere, and not only after the strategy was built."""
    return any(
        change.name == "TF_CONFIG" and change.value is not None and after_strategy(program, change.node) is None
        for change in program.changes
    )


def _too_late(program: Program) -> Iterator[Hit]:
    for module, node, value in changed(program):
        if value is not None and (strategy := after_strategy(program, node)) is not None:
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
    for module, node, value in changed(program):
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
    if program.roles is not None and not program.roles.serves:
        return
    for step in program.strategies:
        if STRATEGIES[step.name or ""] == "ps" and not step.guards:
            yield Hit(step.module, step.node)
            return


def _no_resolver(program: Program) -> Iterator[Hit]:
    """Those before 2.4 read TF_CONFIG themselves."""
    if program.tensorflow is not None and program.tensorflow < (2, 4):
        return
    for call in program.calls:
        if STRATEGIES.get(call.name) == "ps" and not call.node.args and not call.node.keywords:
            yield Hit(call.module, call.node)


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
        'job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc").join(); '
        "or let phalanx run it, in job.yaml: roles: {worker: {command: server}, ps: {command: server}}",
        source="facts §2",
    ),
    Rule(
        id="ps-without-resolver",
        severity=Severity.ERROR,
        message="ParameterServerStrategy is given no cluster resolver.",
        find=_no_resolver,
        consequence="TypeError: missing 1 required positional argument: 'cluster_resolver'.",
        fix="ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        source="measured on TensorFlow 2.21",
    ),
)

"""Rules about where a script takes its cluster from: Slurm's variables, flags, or anything else than TF_CONFIG."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator

from phalanx.script.module import Module
from phalanx.script.program import Program
from phalanx.script.rule import Hit, Rule
from phalanx.script.rules.cluster import SERVERS, after_strategy, changed, task_of
from phalanx.tfconfig.finding import Severity

_SLURM = "tensorflow.distribute.cluster_resolver.SlurmClusterResolver"
_SLURM_NAMES = re.compile(
    r"SLURM(?:D)?_(?:PROCID|NODELIST|JOB_NODELIST|STEP_NODELIST|NODEID|NODENAME|NTASKS|LOCALID)\Z"
)
#: Calls that make a cluster of what they are given.
_CLUSTERS = (
    "tensorflow.train.ClusterSpec",
    "tensorflow.compat.v1.train.ClusterSpec",
    "tensorflow.distribute.cluster_resolver.SimpleClusterResolver",
    *SERVERS,
)


def _slurm(program: Program) -> Iterator[Hit]:
    given = program.roles is not None  # by phalanx, which tells it by TF_CONFIG
    for call in program.calls:
        if call.name == _SLURM:
            surely = given and program.always(call.node)
            yield Hit(call.module, call.node, severity=Severity.ERROR if surely else None)
            return
    if not any(change.name == "TF_CONFIG" and change.value is not None for change in program.changes):
        return
    for module in program.modules:
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SLURM_NAMES.match(node.value):
                yield Hit(module, node, f"the script makes TF_CONFIG of {node.value} and its like")
                return


def _flags(program: Program) -> Iterator[Hit]:
    for module, node, value in _made(program):
        if program.values(module).from_flags(value):
            alike = program.roles is not None and not program.alone and _same_for_all(program)
            severity = Severity.ERROR if alike else None
            yield Hit(module, node, "the script makes TF_CONFIG of its flags", severity=severity)
            return
    if program.says("TF_CONFIG") or "TFConfigClusterResolver" in program.words or "estimator" in program.words:
        return
    for call in program.calls:
        given = (*call.node.args, *(word.value for word in call.node.keywords))
        if call.name in _CLUSTERS and any(map(program.values(call.module).from_flags, given)):
            yield Hit(call.module, call.node)
            return


def _same_for_all(program: Program) -> bool:
    """Whether the command gives every task the same words: none is filled in for each."""
    return program.arguments is not None and not any("{" in word for word in program.arguments)


def _own(program: Program) -> Iterator[Hit]:
    if any(text.startswith(("SLURM", "PHALANX_")) for text in program.strings):
        return
    for module, node, value in _made(program):
        if not program.values(module).from_flags(value) and not _reads(program, module, value):
            yield Hit(module, node)
            return


def _made(program: Program) -> Iterator[tuple[Module, ast.AST, ast.expr]]:
    """Where TF_CONFIG is always set before the strategy, to what the text does not say whole."""
    for module, node, value in changed(program):
        if value is None or after_strategy(program, node) is not None:
            continue
        if task_of(program.constant(module, value)) is None:
            yield module, node, value


def _reads(program: Program, module: Module, value: ast.expr) -> bool:
    """Whether it may be made of the TF_CONFIG that was there: by what it names, or by what is not seen."""
    for part in program.values(module).parts(value):
        match part:
            case ast.Constant(value="TF_CONFIG"):
                return True
            case ast.Call(func=func) if (own := program.function(module, func)) is not None:
                if any(isinstance(it, ast.Constant) and it.value == "TF_CONFIG" for it in ast.walk(own)):
                    return True
            case ast.Name(id=name, ctx=ast.Load()):
                known = program.values(module).assigned(part) is not None or name in dir(builtins)
                package = (module.dotted(part) or name).partition(".")[0]
                own_function = program.function(module, part) is not None
                if not (known or own_function or package in sys.stdlib_module_names):
                    return True
    return False


RULES = (
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
        id="tf-config-of-its-own",
        severity=Severity.WARNING,
        message="The script makes a TF_CONFIG of its own, and not of the one that it is given.",
        find=_own,
        consequence="The launcher's cluster is thrown away: its ports, its order, and who is which task.",
        fix='take the lines out, or put them under: if not os.environ.get("TF_CONFIG")',
        source="R19; R29; facts §9",
    ),
)

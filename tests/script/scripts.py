"""Small training scripts, faulty and sound, and what the reader says of a text."""

from __future__ import annotations

from collections.abc import Mapping

from phalanx.plan.outline import Interpreter
from phalanx.script.check import Around, judged
from phalanx.script.module import parse
from phalanx.script.program import Roles
from phalanx.tfconfig.finding import Finding

#: TensorFlow and Keras as measured; nothing on any disk is looked at.
KERAS_3 = Interpreter(path="python", version="3.11.7", tensorflow="2.21.0", keras="3.15.1")
KERAS_2 = Interpreter(path="python", version="3.11.7", tensorflow="2.15.0", keras="2.15.0")

TF = "import os, json\nimport tensorflow as tf\n"
MWMS = TF + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
RESOLVER = TF + "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
SERVER = (
    "if resolver.task_type in ('worker', 'ps'):\n"
    "    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,"
    " task_index=resolver.task_id, protocol='grpc').join()\n"
)
PS = "strategy = tf.distribute.ParameterServerStrategy(resolver)\n"


def found(
    text: str,
    *,
    interpreter: Interpreter | None = KERAS_3,
    beside: Mapping[str, str] | None = None,
    roles: Roles | None = None,
    arguments: tuple[str, ...] | None = None,
    environ: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
) -> tuple[Finding, ...]:
    main = parse(text, path="train.py")
    assert main is not None
    others = [parse(source, path=f"{name}.py", name=name) for name, source in (beside or {}).items()]
    around = Around(interpreter=interpreter, folders=folders, environ=environ or {}, roles=roles, arguments=arguments)
    return judged(main, [module for module in others if module], around)


def told(text: str, **around) -> list[tuple[str, int, str]]:
    """Rule, line and severity of each finding."""
    return [(one.id, one.place.line, one.severity.value) for one in found(text, **around)]

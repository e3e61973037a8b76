"""Small training scripts, faulty and sound, and what the reader says of a text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from phalanx.agent.preflight.imports import Source
from phalanx.plan.outline import Interpreter
from phalanx.script.check import Around, judged
from phalanx.script.module import Module, module_of
from phalanx.script.program import Roles
from phalanx.tfconfig.finding import Finding

#: TensorFlow and Keras as measured; nothing on any disk is looked at.
KERAS_3 = Interpreter(path="python", version="3.11.7", tensorflow="2.21.0", keras="3.15.1")
KERAS_2 = Interpreter(path="python", version="3.11.7", tensorflow="2.15.0", keras="2.15.0")

TF = "import os, json\nimport tensorflow as tf\n"
MWMS = TF + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
MODEL = "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
IN_SCOPE = "with strategy.scope(): " + MODEL
RESOLVER = TF + "resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
SERVER = (
    "if resolver.task_type in ('worker', 'ps'):\n"
    "    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,"
    " task_index=resolver.task_id, protocol='grpc').join()\n"
)
PS = "strategy = tf.distribute.ParameterServerStrategy(resolver)\n"


def module(text: str | bytes, path: str = "train.py", name: str = "") -> Module | None:
    data = text if isinstance(text, bytes) else text.encode()
    return module_of(Source(Path(path), data, name, name.rpartition(".")[0]), path=path)


def found(
    text: str,
    *,
    interpreter: Interpreter | None = KERAS_3,
    beside: Mapping[str, str] | None = None,
    roles: Roles | None = None,
    arguments: tuple[str, ...] | None = None,
    environ: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
    mends: bool | None = False,
) -> tuple[Finding, ...]:
    main = module(text)
    assert main is not None
    others = [module(source, f"{name}.py", name) for name, source in (beside or {}).items()]
    around = Around(
        interpreter=interpreter,
        folders=folders,
        environ=environ or {},
        roles=roles,
        arguments=arguments,
        mends=mends,
    )
    return judged(main, [other for other in others if other], around)


def told(text: str, **around) -> list[tuple[str, int, str]]:
    """Rule, line and severity of each finding."""
    return [(one.id, one.place.line, one.severity.value) for one in found(text, **around)]

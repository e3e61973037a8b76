from __future__ import annotations

import pytest

from phalanx.script.strategy import strategy_of


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("strategy = tf.distribute.MultiWorkerMirroredStrategy()", "mwms"),
        ("strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)", "ps"),
        ("from tensorflow.distribute import MultiWorkerMirroredStrategy as M\nM()", "mwms"),
        ("tf.estimator.train_and_evaluate(a, b, c)\ntf.distribute.MultiWorkerMirroredStrategy()", "estimator"),
        ("# tf.distribute.MultiWorkerMirroredStrategy()", None),
        ("'MultiWorkerMirroredStrategy'", None),
        ("a = tf.distribute.MultiWorkerMirroredStrategy\nb = tf.distribute.ParameterServerStrategy", None),
        ("def f(:", None),
        ("\0", None),
        ("", None),
    ],
)
def test_the_one_strategy_a_script_names_is_read_from_its_tree(tmp_path, source, found):
    assert (strategy_of(written(tmp_path, source)) or (None,))[0] == found


def test_a_script_is_read_and_never_run(tmp_path):
    script = written(tmp_path, "raise SystemExit\nMultiWorkerMirroredStrategy")
    assert strategy_of(script) == ("mwms", "MultiWorkerMirroredStrategy")


def test_a_module_beside_the_script_names_it_as_well(tmp_path):
    """R20."""
    (tmp_path / "mylib.py").write_text(
        "import tensorflow as tf\ndef make(): tf.distribute.MultiWorkerMirroredStrategy()"
    )
    script = written(tmp_path, "import mylib\nmylib.make()")
    assert strategy_of(script) == ("mwms", "MultiWorkerMirroredStrategy")


def test_what_the_script_names_itself_goes_before_its_modules(tmp_path):
    (tmp_path / "mylib.py").write_text("tf.distribute.ParameterServerStrategy")
    assert strategy_of(written(tmp_path, "import mylib\nMultiWorkerMirroredStrategy")) is not None
    assert strategy_of(written(tmp_path, "if x:\n    import mylib")) is None


def test_no_script_names_nothing(tmp_path):
    assert strategy_of(tmp_path) is None
    assert strategy_of(tmp_path / "train.py") is None


def written(folder, source):
    script = folder / "train.py"
    script.write_text(source)
    return script

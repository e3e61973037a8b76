from __future__ import annotations

import pytest

from phalanx.script.strategy import strategy_in


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
def test_the_one_strategy_a_script_names_is_read_from_its_tree(source, found):
    assert (strategy_in(source) or (None,))[0] == found


def test_a_script_is_read_and_never_run():
    assert strategy_in("raise SystemExit\nMultiWorkerMirroredStrategy") == ("mwms", "MultiWorkerMirroredStrategy")

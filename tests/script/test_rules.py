"""Each rule on a script that it is for, and on its neighbour that works."""

from __future__ import annotations

import pytest

from phalanx.script.check import RULES
from phalanx.script.program import Roles
from script.faults import (
    CHIEF,
    COMPILED,
    FAULTY,
    FIT,
    FIT_IN_SCOPE,
    INDEX,
    LEGACY,
    ONE_FILE,
    ROLE,
    SAVES,
    SET,
    SLICES,
    TWO,
    WITH_CHIEF,
    WORKER_0,
)
from script.scripts import IN_SCOPE, KERAS_2, MODEL, MWMS, PS, RESOLVER, SERVER, TF, found, told

#: Scripts that work, each near to one that does not.
SOUND = [
    # context
    TF + "tf.random.set_seed(1)\ntf.config.list_physical_devices()\ntf.keras.layers.Dense(1)\n" + MWMS,
    TF + "tf.keras.losses.MeanSquaredError()\ntf.keras.Sequential()\ntf.train.Checkpoint()\n" + MWMS,
    TF + "def later():\n    return tf.constant(1)\n" + MWMS + "later()\n",
    TF + "@tf.function\ndef step():\n    return tf.constant(1)\n" + MWMS + "step()\n",
    TF + "if os.environ.get('CHECK'):\n    tf.constant(1)\n" + MWMS,
    TF + "f = lambda: tf.constant(1)\n" + MWMS,
    TF + "def early(n):\n    for at in range(n):\n        tf.constant(at)\nearly(0)\n" + MWMS,
    TF + "N = 0\nfor at in range(N):\n    tf.constant(at)\n" + MWMS,
    TF + "for at in range(3):\n    break\n    tf.constant(at)\n" + MWMS,
    TF + "def a(quiet):\n    if quiet:\n        return\n    tf.constant(1)\na(True)\n" + MWMS,
    TF + "with tf.Graph().as_default():\n    tf.constant(1)\n" + MWMS,
    TF + "import argparse\nif argparse.ArgumentParser().parse_args().local:\n    s = tf.distribute.MirroredStrategy()\n"
    "else:\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n",
    # a name that means two things
    "try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    import tensorflow as tf\ntf.Session()\n",
    # no strategy
    TF + "from helpers_of_ours import strategy_of\n" + FIT,
    TF + "import horovod.tensorflow as hvd\n" + FIT,
    TF + "rank = json.loads(os.environ['TF_CONFIG'])\n" + FIT,
    "from sklearn.preprocessing import StandardScaler\ns = StandardScaler()\ns.fit(data)\n",
    # TF_CONFIG
    TF + "if 'TF_CONFIG' not in os.environ:\n    " + WORKER_0 + MWMS,
    TF + "os.environ.setdefault('TF_CONFIG', '{}')\n" + MWMS,
    TF + "c = json.loads(os.environ['TF_CONFIG'])\nc['cluster'].pop('evaluator', None)\n"
    "os.environ['TF_CONFIG'] = json.dumps(c)\n" + MWMS,
    TF + "c = json.loads(os.environ['TF_CONFIG'])['cluster']\nif 'master' in c:\n    print(c['master'])\n" + MWMS,
    RESOLVER + SERVER + PS,
    RESOLVER + SERVER + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n",
    RESOLVER + SERVER[SERVER.index("    ") + 4 :] + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n",
    RESOLVER + SERVER + "else:\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n",
    RESOLVER + "if resolver.task_type == 'chief':\n    " + PS,
    # the chief
    MWMS + "def is_chief(r):\n    return r.task_type == 'chief' or (r.task_type == 'worker' and r.task_id == 0)\n",
    MWMS + "r = strategy.cluster_resolver\n"
    "lead = r.task_type == 'chief' if 'chief' in r.cluster_spec().jobs else r.task_id == 0\n",
    # a TF_CONFIG made of the one that is there
    TF + "def clean(config):\n    config['cluster'].pop('evaluator', None)\n    return config\n"
    "os.environ['TF_CONFIG'] = json.dumps(clean(json.loads(os.environ['TF_CONFIG'])))\n" + MWMS,
    TF + "from ours import config\nos.environ['TF_CONFIG'] = json.dumps(config())\n" + MWMS,
    TF + "if not os.environ.get('TF_CONFIG'):\n    os.environ['TF_CONFIG'] = json.dumps(make())\n" + MWMS,
    # functional models
    TF + "from tensorflow import keras\nx = keras.Input((3,))\nx = keras.ops.mean(x, axis=1) * 2\n",
    TF + "class Mean(tf.keras.layers.Layer):\n    def call(self, x):\n        return tf.reduce_mean(x, axis=1)\n"
    "Mean()(tf.keras.Input((3,)))\n",
    TF + "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\ntf.reduce_mean(model(data))\n",
    # names of Python
    TF + "def f(a: np.ndarray) -> pd.Series:\n    global np\n    np = a\n",
    TF + "try:\n    keras\nexcept NameError:\n    pass\n",
    "from ours import *\nnp.zeros(1)\n",
    "import os.path\nprint(os.name, [np for np in [1]], (lambda *pd, **plt: (pd, plt)))\n",
    "match x:\n    case [np, *pd]: print(np, pd)\n    case {'a': 1, **plt}: print(plt)\n",
    # names
    TF + "if hasattr(tf, 'Session'):\n    tf.Session()\n",
    TF + "tf.compat.v1.disable_v2_behavior()\ntf.compat.v1.Session()\n",
    "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)\n",
    TF + "try:\n    tf.estimator\nexcept AttributeError:\n    pass\n",
    # saving
    MWMS + "m = tf.train.CheckpointManager(c, os.environ['PHALANX_TASK_DIR'], max_to_keep=3)\n",
    MWMS + "b = tf.keras.callbacks.BackupAndRestore(f'b{strategy.cluster_resolver.task_id}')\n",
    MWMS + MODEL + "if strategy.cluster_resolver.task_id == 0:\n    model.save('m.keras')\nelse:\n    model.save(t)\n",
    MWMS + "c = tf.train.Checkpoint()\n"
    "if strategy.cluster_resolver.task_id == 0:\n    d = 'ckpt'\nelse:\n    d = 'tmp'\n"
    "for epoch in range(3):\n    c.save(d)\n",
    TF + "import time\nb = tf.keras.callbacks.ModelCheckpoint(time.strftime('/out/%H.keras'))\n",
    TF + "import time\nw = tf.summary.create_file_writer(f'logs/{time.time()}')\n",
    # paths whose end is not known, or is good
    TF + MODEL + "model.save(os.environ['OUT'])\nmodel.save(os.environ['OUT'] + '/w_' + str(time_of()))\n",
    TF + MODEL + "model.save(os.path.join(os.environ['OUT'], 'm.keras'))\nmodel.save('{}/m.keras'.format(where))\n",
    TF + "tf.keras.callbacks.ModelCheckpoint(os.environ['OUT'] + '/{epoch}.weights.h5', save_weights_only=True)\n",
    # data
    MWMS + "files = ['a.tfrecord']\nfiles.append('b.tfrecord')\n"
    "strategy.experimental_distribute_dataset(tf.data.TFRecordDataset(files))\n",
    MWMS + "data = tf.data.Dataset.from_tensor_slices(['a', 'b', 'c'])\n"
    "strategy.experimental_distribute_dataset(data)\n",
    MWMS + "strategy.experimental_distribute_dataset(tf.data.experimental.CsvDataset('a.csv', [0.0]))\n",
    MWMS + ONE_FILE + "vocabulary = list(data)\n",
    MWMS + "files = tf.data.Dataset.list_files('*.tfrecord')\ndata = files.interleave(tf.data.TFRecordDataset)\n"
    "strategy.experimental_distribute_dataset(data)\n",
    MWMS + ONE_FILE + "o = tf.data.Options()\no.experimental_distribute.auto_shard_policy = 3\n"
    "strategy.experimental_distribute_dataset(data.with_options(o))\n",
]  # fmt: skip


@pytest.mark.parametrize(("rule", "severity", "line", "text", "around"), FAULTY)
def test_a_fault_is_told_with_its_line(rule, severity, line, text, around):
    assert (rule, line, severity) in told(text, **around)


@pytest.mark.parametrize("text", SOUND)
def test_a_script_that_works_is_left_alone(text):
    compile(text, "train.py", "exec")
    assert told(text) == []


CHOSEN = TF + "if os.environ.get('MWMS'):\n    s = tf.distribute.MultiWorkerMirroredStrategy()\n"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("context-before-strategy", TF + "tf.constant(1)\n" + CHOSEN),
        ("own-server", CHOSEN + "    tf.distribute.Server({'worker': ['a:1']}, job_name='worker', task_index=0)\n"),
        ("fewer-files-than-workers", CHOSEN + ONE_FILE + "s.experimental_distribute_dataset(data)\n"),
        ("keras3-mwms-fit", CHOSEN + FIT),
        ("keras3-ps-fit", CHOSEN.replace("MultiWorkerMirroredStrategy()", "ParameterServerStrategy(r)") + FIT),
    ],
)
def test_what_follows_from_a_strategy_that_a_flag_chooses_refuses_nothing(rule, text):
    assert {severity for one, _, severity in told(text, roles=TWO) if one == rule} == {"warning"}


def test_a_strategy_of_one_process_is_no_fault_where_there_is_one():
    text = TF + "strategy = tf.distribute.MirroredStrategy()\n"
    assert told(text) == told(text, roles=Roles(worker=1)) == []


@pytest.mark.parametrize("text", SOUND)
def test_and_so_it_is_in_a_job(text):
    assert told(text, roles=TWO) == []


#: Scripts that pick one task for each job that they may be run as, or that do not ask for a chief at all.
PICKS_ONE = [
    CHIEF + "    return task_type == 'chief' or ('chief' not in cluster_spec.as_dict() and task_id == 0)\n" + SAVES,
    CHIEF + "    if task_type == 'chief':\n        return True\n"
    "    if 'chief' in cluster_spec.jobs:\n        return False\n    return task_type == 'worker' and task_id == 0\n"
    + SAVES,
    CHIEF + "    if cluster_spec.unknown():\n        return task_type == 'chief'\n    return task_id == 0\n" + SAVES,
    ROLE + "if role == 'chief':\n    save()\nelif role == 'worker':\n    save()\n",
    ROLE + "is_chief = role == 'chief'\nif is_chief or os.environ.get('SAVE'):\n    save()\n",
    INDEX + "verbose = 2 if index == 0 else 0\n",
    INDEX + "for at in range(3):\n    if index == at:\n        print()\n",
    MWMS + "import argparse\nargs = argparse.ArgumentParser().parse_args()\nis_chief = args.task_index == 0\n",
    MWMS + "kind = 'chief'\nif kind == 'chief':\n    pass\n",
    ROLE + "if role == 'worker':\n    print()\n",
]


@pytest.mark.parametrize("roles", [None, TWO, WITH_CHIEF], ids=["unknown", "workers", "chief"])
@pytest.mark.parametrize("text", PICKS_ONE)
def test_who_picks_one_chief_in_every_job_is_left_alone(text, roles):
    compile(text, "train.py", "exec")
    assert [rule for rule, *_ in told(text, roles=roles) if rule.startswith("chief-")] == []


@pytest.mark.parametrize(
    ("test", "workers", "chief"),
    [
        ("task_type == 'chief'", "chief-is-nowhere", None),
        ("task_type in ('chief', 'master')", "chief-is-nowhere", None),
        ("task_type is None or task_type == 'chief'", "chief-is-nowhere", None),
        ("task_type == 'worker' and task_id == 0", None, "chief-is-another"),
        ("task_type in ['chief', 'worker'] and task_id == 0", None, "chief-is-twice"),
        ("not task_id", None, None),  # not read, so not told
        ("0 == int(task_id)", None, "chief-is-twice"),
        ("task_id < 1", None, "chief-is-twice"),
    ],
)
def test_each_idiom_is_judged_by_the_tasks_that_the_job_has(test, workers, chief):
    text = CHIEF + f"    return {test}\n" + SAVES
    for roles, rule in ((TWO, workers), (WITH_CHIEF, chief)):
        assert [one for one, *_ in told(text, roles=roles) if one.startswith("chief-")] == [rule] * bool(rule)


def test_every_rule_has_a_script_that_it_finds_something_in():
    here = {rule for rule, *_ in FAULTY}
    of_the_disk = {"callback-package", "module-missing", "script-syntax", "script-unread"}  # test_check
    assert {rule.id for rule in RULES} - here == of_the_disk


def test_every_rule_says_what_follows_what_to_do_and_where_it_is_known_from():
    for rule in RULES:
        assert rule.message.endswith("."), rule.id
        assert rule.consequence, rule.id
        assert rule.fix, rule.id
        assert rule.source, rule.id


@pytest.mark.parametrize(
    ("words", "around"),
    [
        ("steps_per_execution=2", {"roles": Roles(worker=1)}),
        ("steps_per_execution=1, jit_compile=False", {"roles": TWO, "mends": True}),
        ("jit_compile='auto'", {"roles": TWO, "mends": True}),
        ("steps_per_execution=2", {"roles": TWO, **LEGACY}),
    ],
)
def test_a_compile_that_several_workers_can_train_is_no_fault(words, around):
    assert "keras3-mwms-compile" not in [rule for rule, *_ in told(MWMS + COMPILED % words, **around)]


@pytest.mark.parametrize(
    ("text", "around"),
    [
        (MWMS + FIT_IN_SCOPE, {"roles": Roles(worker=1)}),  # one worker: the branches are not taken
        (MWMS + FIT_IN_SCOPE, LEGACY),
        (MWMS + FIT_IN_SCOPE, {"interpreter": KERAS_2}),
        (MWMS + FIT_IN_SCOPE, {"interpreter": None}),
        ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n" + MWMS + FIT_IN_SCOPE, {}),
        ("import os\nif os.environ.get('TF_USE_LEGACY_KERAS'):\n    pass\n" + MWMS + FIT_IN_SCOPE, {}),
        ("import tf_keras\n" + MWMS + FIT_IN_SCOPE.replace("tf.keras", "tf_keras"), {}),
        ("import keras_patch\n" + MWMS + FIT_IN_SCOPE, {"beside": {"keras_patch": "x._maybe_symbolic_build = None\n"}}),
        (MWMS + MODEL + "def train():\n    model.fit(data)\n", {}),
    ],
)
def test_the_fit_of_keras_3_is_no_fault_where_it_works_or_nobody_knows(text, around):
    assert "keras3-mwms-fit" not in [rule for rule, *_ in told(text, **around)]


def test_a_fit_of_keras_3_that_is_mended_from_inside_is_no_fault_and_so_is_its_one_path():
    text = MWMS + FIT_IN_SCOPE + "tf.keras.callbacks.BackupAndRestore('b')\nmodel.save('m.keras')\n"
    text += "model.save_weights('m.weights.h5')\ntf.keras.models.save_model(model, 'n.keras')\n"
    assert [rule for rule, *_ in told(text, roles=TWO)] == ["keras3-mwms-fit", *["shared-save-path"] * 4]
    assert told(text, roles=TWO, mends=True) == []


def test_read_outside_a_run_a_fit_of_keras_3_is_a_note_that_a_run_mends_it():
    [finding] = found(MWMS + FIT_IN_SCOPE, mends=None)
    assert (finding.id, finding.severity.value) == ("keras3-mwms-fit", "info")
    assert "phalanx run mends it" in finding.fix


def test_read_outside_a_run_one_path_for_what_keras_3_saves_is_a_note_that_a_run_mends_it():
    text = MWMS + MODEL + "tf.keras.callbacks.BackupAndRestore('b')\nmodel.save('m.keras')\n"
    for finding in (keras := found(text, mends=None)):
        assert (finding.id, finding.severity.value) == ("shared-save-path", "info")
        assert finding.consequence.startswith("Started by hand")
        assert finding.fix.startswith("phalanx run mends it")
    assert len(keras) == 2
    unmended = MWMS + "c = tf.train.Checkpoint()\nc.save('at')\n"
    for held in (unmended, MWMS + MODEL + "model.export('m')\n"):
        assert [how for *_, how in told(held, mends=None)] == ["warning"]


@pytest.mark.parametrize(
    ("text", "around"),
    [
        (MWMS + FIT_IN_SCOPE, {}),
        (MWMS + FIT, {"roles": Roles(worker=1)}),
        (MWMS + MODEL + "for step in range(9): strategy.run(step_of, (model,))\n", {}),
        (CHOSEN + FIT, {}),  # without the flag there is no strategy
        (MWMS + "def build():\n    " + MODEL.replace("\nm", "\n    m") + "    return model\n"
         "with strategy.scope():\n    m = build()\nm.fit(data)\n", {}),
        (MWMS + "def build():\n    return tf.keras.Sequential()\ndef ready():\n    m = build()\n    return m\n"
         "with strategy.scope():\n    m = ready()\nm.fit(data)\n", {}),
        (MWMS + "def build():\n    return tf.keras.Sequential()\nm = ours.of(strategy, build)\nm.fit(data)\n", {}),
        (MWMS + "@in_scope\ndef build():\n    return tf.keras.Sequential()\nm = build()\nm.fit(data)\n", {}),
        (MWMS + "scope = strategy.scope()\nscope.__enter__()\n" + FIT, {}),
        (MWMS + "tf.distribute.experimental_set_strategy(strategy)\n" + FIT, {}),
        (MWMS + "around = strategy.scope()\nwith around:\n    m = tf.keras.Sequential()\nm.fit(data)\n", {}),
        (MWMS + "def train():\n    " + FIT.replace("\nm", "\n    m") + "with strategy.scope():\n    train()\n", {}),
    ],
)  # fmt: skip
def test_a_model_that_may_have_been_made_in_a_scope_is_not_said_to_be_outside(text, around):
    compile(text, "train.py", "exec")
    assert "model-outside-scope" not in [rule for rule, *_ in told(text, **around)]


def test_of_a_model_outside_the_scope_is_not_said_that_its_fit_fails():
    assert [rule for rule, *_ in told(MWMS + FIT, roles=TWO)] == ["model-outside-scope"]


@pytest.mark.parametrize(
    "text",
    [
        INDEX + IN_SCOPE + "logs = model.evaluate(x, y)\nif index == 0:\n    print(logs)\n",
        INDEX + IN_SCOPE + "if index == 0:\n    model.fit(x, verbose=2)\nelse:\n    model.fit(x, verbose=0)\n",
        INDEX + IN_SCOPE + "if index >= 0:\n    model.predict(x)\n",
        INDEX + IN_SCOPE + "if index == int(os.environ['WHO']):\n    model.predict(x)\n",
        INDEX + MODEL + "if index == 0:\n    model.evaluate(x)\n",
        INDEX + IN_SCOPE + "if index == 0:\n    held = tf.keras.models.load_model('m')\n    held.evaluate(x)\n",
        ROLE + IN_SCOPE + "if role == 'evaluator':\n    model.evaluate(x)\nelse:\n    model.fit(x)\n",
        ROLE + IN_SCOPE + "if role == 'worker':\n    model.fit(x)\n",
    ],
)
def test_what_every_worker_does_or_a_model_of_one_task_is_no_collective_of_some(text):
    for roles in (None, TWO):
        assert "collective-in-one-task" not in [rule for rule, *_ in told(text, roles=roles)]


def test_the_context_is_followed_into_the_modules_beside_the_script():
    beside = {"data": "import tensorflow as tf\nLABELS = tf.range(10)\ndef load():\n    return LABELS\n"}
    text = TF + "from data import load\nload()\n" + MWMS
    [finding] = [one for one in found(text, beside=beside) if one.id == "context-before-strategy"]
    assert (finding.path, finding.place.line) == ("data.py", 2)
    assert "line 7 of train.py" in finding.message


def test_a_model_made_by_a_module_beside_is_known_as_kerass():
    beside = {"models": "import keras\ndef build():\n    net = keras.Sequential()\n    return net\n"}
    text = MWMS + "import models\nwith strategy.scope(): net = models.build()\nnet.fit(data)\n"
    assert ("keras3-mwms-fit", 6, "error") in told(text, beside=beside, roles=TWO)


def test_a_tf_config_that_flags_decide_is_no_tasks_own():
    text = (
        TF + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--index', type=int, default=0)\n"
        "args = p.parse_args()\n" + SET % "{'type': 'worker', 'index': args.index}" + MWMS
    )
    assert [rule for rule, *_ in told(text)] == ["cluster-from-flags"]
    assert [rule for rule, *_ in told(text, arguments=(), roles=TWO)] == ["tf-config-overwritten"]


def test_a_path_that_a_placeholder_makes_is_each_tasks_own():
    text = (
        MWMS + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--dir', default='ckpt')\n"
        "args = p.parse_args()\nm = tf.train.CheckpointManager(c, args.dir, max_to_keep=3)\n"
    )
    assert [rule for rule, *_ in told(text)] == ["shared-save-path"]
    assert told(text, arguments=("--dir", "{task_dir}"), roles=TWO) == []


STEPS = "model.fit(data, epochs=2, steps_per_epoch="


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        (SLICES + MODEL + STEPS + "60000 // 64)\n", "warning"),
        (SLICES + MODEL + STEPS + "64000 // 64)\n", None),  # all the batches there are: each epoch begins anew
        (SLICES.replace("64)", "64, drop_remainder=True)") + MODEL + STEPS + "60000 // 64)\n", None),
        (SLICES + MODEL + STEPS + "n // 64)\n", "info"),
        (SLICES + MODEL + STEPS + "-(-60000 // 64))\n", None),
        (SLICES.replace(".batch", ".repeat().batch") + MODEL + STEPS + "60000 // 64)\n", None),
    ],
)
def test_data_runs_out_where_the_steps_leave_a_rest_of_it(text, severity):
    """R61."""
    said = [(rule, how) for rule, _, how in told(text, **LEGACY) if rule == "data-runs-out"]
    assert said == ([] if severity is None else [("data-runs-out", severity)])


def test_the_names_that_are_gone_are_told_once_each():
    text = TF + "def f():\n    tf.Session()\ntf.Session()\ntf.app.run()\n"
    said = [(one.place.line, one.message) for one in found(text)]
    assert said == [
        (5, "TensorFlow 2.21 has no tf.Session (here and at 1 more place)"),
        (6, "TensorFlow 2.21 has no tf.app"),
    ]


def test_a_chief_whose_workers_and_ps_run_our_server_needs_none_of_its_own():
    roles = Roles(chief=1, ps=1, serves=False)
    assert "ps-without-server" not in [finding.id for finding in found(RESOLVER + PS, roles=roles)]

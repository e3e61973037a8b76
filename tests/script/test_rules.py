"""Each rule on a script that it is for, and on its neighbour that works."""

from __future__ import annotations

import pytest

from phalanx.script.check import RULES
from phalanx.script.program import Roles
from script.scripts import KERAS_2, MODEL, MWMS, PS, RESOLVER, SERVER, TF, found, told

TWO = Roles(worker=2)
FIT = MODEL + "model.fit(data, epochs=2)\n"
LEGACY = {"environ": {"TF_USE_LEGACY_KERAS": "1"}}
ONE_FILE = "data = tf.data.TFRecordDataset('a.tfrecord')\ndata = data.batch(8)\n"
SET = "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['a:1', 'b:1']}, 'task': %s})\n"
WORKER_0 = SET % "{'type': 'worker', 'index': 0}"

#: Rule, severity, line, script, and what is known around it.
FAULTY = [
    ("context-before-strategy", "error", 3, TF + "tf.constant(1)\ntf.distribute.MultiWorkerMirroredStrategy()", {}),
    ("context-before-strategy", "error", 3, TF + "data = tf.data.Dataset.range(3)\n" + MWMS, {}),
    ("context-before-strategy", "error", 3, TF + "opt = tf.keras.optimizers.Adam()\n" + MWMS, {}),
    ("context-before-strategy", "error", 3, TF + "m = tf.keras.Sequential()\n" + MWMS, LEGACY),
    (
        "context-before-strategy",
        "error",
        4,
        TF + "def load():\n    return tf.zeros([1])\ndef main():\n    load()\n"
        "    s = tf.distribute.MultiWorkerMirroredStrategy()\nif __name__ == '__main__':\n    main()\n",
        {},
    ),
    (
        "context-before-strategy",
        "error",
        5,
        TF + "class Trainer:\n    def __init__(self):\n        self.lr = tf.Variable(0.1)\n        self.build()\n"
        "    def build(self):\n        self.s = tf.distribute.MultiWorkerMirroredStrategy()\nTrainer()\n",
        {},
    ),
    (
        "context-before-strategy",
        "error",
        4,
        TF + "def main(argv):\n    tf.constant(1)\n    tf.distribute.MultiWorkerMirroredStrategy()\n"
        "from absl import app\napp.run(main)\n",
        {},
    ),
    (
        "context-before-strategy",
        "warning",
        4,
        TF + "if os.environ.get('MWMS'):\n    tf.constant(1)\n    tf.distribute.MultiWorkerMirroredStrategy()\n",
        {},
    ),
    ("no-strategy", "warning", 5, TF + FIT, {}),
    ("no-strategy", "warning", 5, TF + FIT, {"roles": TWO}),
    ("tf-config-overwritten", "error", 3, TF + WORKER_0 + MWMS, {}),
    (
        "tf-config-overwritten",
        "error",
        6,
        TF + "import argparse\np = argparse.ArgumentParser()\np.add_argument('--index', type=int, default=0)\n"
        + (SET % "{'type': 'worker', 'index': p.parse_args().index}").replace("p.parse_args()", "args")
        .replace("os.environ", "args = p.parse_args(); os.environ")
        + MWMS,
        {"arguments": ("--index", "1"), "roles": TWO},
    ),
    ("tf-config-removed", "error", 3, TF + "os.environ.pop('TF_CONFIG', None)\n" + MWMS, {}),
    ("tf-config-removed", "error", 3, TF + "del os.environ['TF_CONFIG']\n" + MWMS, {}),
    ("tf-config-too-late", "warning", 4, MWMS + WORKER_0, {}),
    ("master-job", "error", 4, RESOLVER + "chief = json.loads(os.environ['TF_CONFIG'])['cluster']['master'][0]\n", {}),
    ("own-server", "error", 4, MWMS + "tf.distribute.Server({'worker': ['a:1']}, job_name='worker', task_index=0)", {}),
    (
        "ps-under-mwms",
        "error",
        3,
        TF + "os.environ['TF_CONFIG'] = '{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"b:1\"]}}'\n" + MWMS,
        {},
    ),
    ("ps-under-mwms", "error", 3, MWMS, {"roles": Roles(chief=1, worker=2, ps=1)}),
    (
        "cluster-from-slurm",
        "warning",
        3,
        TF + "r = tf.distribute.cluster_resolver.SlurmClusterResolver()\ntf.distribute.MultiWorkerMirroredStrategy(r)",
        {},
    ),
    (
        "cluster-from-slurm",
        "error",
        3,
        TF + "r = tf.distribute.cluster_resolver.SlurmClusterResolver()\ntf.distribute.MultiWorkerMirroredStrategy(r)",
        {"roles": TWO},
    ),
    (
        "cluster-from-slurm",
        "warning",
        3,
        TF + "rank = int(os.environ['SLURM_PROCID'])\n"
        "os.environ['TF_CONFIG'] = json.dumps({'task': {'type': 'worker', 'index': rank}})\n" + MWMS,
        {},
    ),
    (
        "cluster-from-flags",
        "warning",
        6,
        TF + "from absl import flags\nflags.DEFINE_string('job_name', '', '')\nF = flags.FLAGS\n"
        "tf.train.ClusterSpec({'worker': F.worker_hosts.split(',')})\n",
        {},
    ),
    (
        "cluster-from-flags",
        "warning",
        4,
        TF + "import sys\nos.environ['TF_CONFIG'] = json.dumps({'task': {'index': int(sys.argv[1])}})\n" + MWMS,
        {},
    ),
    ("chief-is-nowhere", "warning", 4, MWMS + "lead = strategy.cluster_resolver.task_type == 'chief'\n", {}),
    ("chief-is-nowhere", "warning", 4, MWMS + "lead = json.loads('{}')['task']['type'] == 'master'\n", {"roles": TWO}),
    ("evaluator-branch", "error", 3, MWMS, {"roles": Roles(worker=2, evaluator=1)}),
    ("ps-without-server", "error", 4, RESOLVER + PS, {}),
    ("script-estimator-gone", "error", 3, TF + "tf.estimator.train_and_evaluate(a, b, c)\n", {}),
    ("script-estimator-gone", "warning", 4, TF + "def unused():\n    tf.compat.v1.estimator.Estimator()\n", {}),
    ("tensorflow-name-gone", "error", 3, TF + "with tf.Session() as s: pass\n", {}),
    ("tensorflow-name-gone", "error", 1, "from tensorflow.contrib import layers\n", {}),
    ("keras3-name-gone", "error", 3, TF + "tf.keras.callbacks.experimental.BackupAndRestore('b')\n", {}),
    ("keras3-name-gone", "error", 3, TF + "tf.keras.optimizers.legacy.Adam()\n", {}),
    ("keras3-method-gone", "error", 5, TF + MODEL + "model.fit_generator(data)\n", {"roles": Roles(worker=1)}),
    ("keras3-weights-path", "error", 5, TF + MODEL + "model.save_weights('w.h5')\n", {}),
    ("keras3-weights-path", "error", 3, TF + "tf.keras.callbacks.ModelCheckpoint('w', save_weights_only=True)\n", {}),
    ("keras3-model-path", "error", 5, TF + MODEL + "model.save('folder')\n", {}),
    ("keras3-model-path", "error", 3, TF + "tf.keras.callbacks.ModelCheckpoint(filepath='ckpt')\n", {}),
    ("keras3-reset-states", "error", 4, TF + "m = tf.keras.metrics.Mean()\nm.reset_states()\n", {}),
    ("keras3-lr", "error", 5, TF + MODEL + "print(model.optimizer.lr)\n", {}),
    ("keras3-lr", "error", 4, TF + "o = tf.keras.optimizers.Adam()\no.lr = 0.5\n", {}),
    ("keras3-optimizer-lr", "error", 3, TF + "tf.keras.optimizers.SGD(lr=0.1)\n", {}),
    ("keras3-fit-argument", "error", 5, TF + MODEL + "model.fit(data, workers=4)\n", {"roles": Roles(worker=1)}),
    ("keras3-ps-fit", "error", 9, RESOLVER + SERVER + PS + FIT, {}),
    ("keras3-ps-fit", "error", 10, RESOLVER + SERVER + "    raise SystemExit\n" + PS + FIT, {}),
    (
        "keras3-ps-fit",
        "error",
        10,
        RESOLVER + SERVER + "else:\n" + "".join(f"    {line}\n" for line in (PS + FIT).splitlines()),
        {},
    ),
    ("keras3-mwms-fit", "error", 6, MWMS + FIT, {"roles": TWO}),
    ("fewer-files-than-workers", "error", 4, MWMS + ONE_FILE + FIT, LEGACY),
    (
        "fewer-files-than-workers",
        "error",
        5,
        MWMS + "def read():\n    return tf.data.TextLineDataset(['a', 'b']).batch(6)\n"
        "strategy.experimental_distribute_dataset(read())\n",
        {"roles": Roles(worker=3)},
    ),
    (
        "batch-not-divisible",
        "info",
        4,
        MWMS + "data = tf.data.Dataset.range(60).batch(32).prefetch(1)\n" + FIT,
        {"roles": Roles(chief=1, worker=2), **LEGACY},
    ),
    (
        "data-runs-out",
        "warning",
        6,
        MWMS + "data = tf.data.Dataset.from_tensor_slices(x).shuffle(9).batch(8)\n"
        + MODEL.replace("\n", "; ", 1) + "model.fit(data, epochs=2, steps_per_epoch=len(x) // 8)\n",
        LEGACY,
    ),
    ("shared-save-path", "warning", 5, MWMS + "c = tf.train.Checkpoint()\n"
     "m = tf.train.CheckpointManager(c, os.path.join('ckpt', 'run'), max_to_keep=3)\n", {}),
    ("shared-save-path", "warning", 4, MWMS + "b = tf.keras.callbacks.BackupAndRestore(backup_dir='b')\n", {}),
    ("shared-save-path", "warning", 6, MWMS + MODEL + "model.save('m.keras')\n", {}),
    (
        "checkpoint-folder-changes",
        "warning",
        4,
        TF + "import time\nb = tf.keras.callbacks.BackupAndRestore(f'/ckpt/{time.time()}')\n",
        {},
    ),
    (
        "checkpoint-folder-changes",
        "warning",
        5,
        TF + "import socket\nd = os.path.join('/ckpt', socket.gethostname())\n"
        "m = tf.train.CheckpointManager(c, directory=d, max_to_keep=3)\n",
        {},
    ),
    ("ignore-unknown", "info", 1, "x = 1  # phalanx: ignore[shared-sav-path]\n", {}),
]  # fmt: skip

#: Scripts that work, each near to one that does not.
SOUND = [
    # context
    TF + "tf.random.set_seed(1)\ntf.config.list_physical_devices()\ntf.keras.layers.Dense(1)\n" + MWMS,
    TF + "tf.keras.losses.MeanSquaredError()\ntf.keras.Sequential()\ntf.train.Checkpoint()\n" + MWMS,
    TF + "def later():\n    return tf.constant(1)\n" + MWMS + "later()\n",
    TF + "@tf.function\ndef step():\n    return tf.constant(1)\n" + MWMS + "step()\n",
    TF + "if os.environ.get('CHECK'):\n    tf.constant(1)\n" + MWMS,
    TF + "f = lambda: tf.constant(1)\n" + MWMS,
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
    MWMS + "r = strategy.cluster_resolver\nlead = r.task_type == 'chief' if 'chief' in r.cluster_spec().jobs else 0\n",
    # names
    TF + "if hasattr(tf, 'Session'):\n    tf.Session()\n",
    TF + "tf.compat.v1.disable_v2_behavior()\ntf.compat.v1.Session()\n",
    "import tensorflow.compat.v1 as tf\ntf.placeholder(tf.float32)\n",
    TF + "try:\n    tf.estimator\nexcept AttributeError:\n    pass\n",
    # saving
    MWMS + "m = tf.train.CheckpointManager(c, os.environ['PHALANX_TASK_DIR'], max_to_keep=3)\n",
    MWMS + "b = tf.keras.callbacks.BackupAndRestore(f'b{strategy.cluster_resolver.task_id}')\n",
    MWMS + MODEL + "if strategy.cluster_resolver.task_id == 0:\n    model.save('m.keras')\nelse:\n    model.save(t)\n",
    # data
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


@pytest.mark.parametrize("text", SOUND)
def test_and_so_it_is_in_a_job(text):
    assert told(text, roles=TWO) == []


def test_every_rule_has_a_script_that_it_finds_something_in():
    here = {rule for rule, *_ in FAULTY}
    assert {rule.id for rule in RULES} - here == {"callback-package"}  # asks the disk: test_check


def test_every_rule_says_what_follows_what_to_do_and_where_it_is_known_from():
    for rule in RULES:
        assert rule.message.endswith("."), rule.id
        assert rule.consequence, rule.id
        assert rule.fix, rule.id
        assert rule.source, rule.id


@pytest.mark.parametrize(
    ("text", "around"),
    [
        (MWMS + FIT, {"roles": Roles(worker=1)}),  # one worker: the branches are not taken
        (MWMS + FIT, LEGACY),
        (MWMS + FIT, {"interpreter": KERAS_2}),
        (MWMS + FIT, {"interpreter": None}),
        ("import os\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n" + MWMS + FIT, {}),
        ("import os\nif os.environ.get('TF_USE_LEGACY_KERAS'):\n    pass\n" + MWMS + FIT, {}),
        ("import tf_keras\n" + MWMS + FIT.replace("tf.keras", "tf_keras"), {}),
        ("import keras_patch\n" + MWMS + FIT, {"beside": {"keras_patch": "x._maybe_symbolic_build = None\n"}}),
        (MWMS + MODEL + "def train():\n    model.fit(data)\n", {}),
    ],
)
def test_the_fit_of_keras_3_is_no_fault_where_it_works_or_nobody_knows(text, around):
    assert "keras3-mwms-fit" not in [rule for rule, *_ in told(text, **around)]


def test_a_fit_of_keras_3_that_is_mended_from_inside_is_no_fault_and_so_is_its_one_path():
    text = MWMS + FIT + "tf.keras.callbacks.BackupAndRestore('b')\nmodel.save('m.keras')\n"
    assert [rule for rule, *_ in told(text, roles=TWO)] == ["keras3-mwms-fit", "shared-save-path", "shared-save-path"]
    assert told(text, roles=TWO, mends=True) == []


def test_read_outside_a_run_a_fit_of_keras_3_is_a_note_that_a_run_mends_it():
    [finding] = found(MWMS + FIT, mends=None)
    assert (finding.id, finding.severity.value) == ("keras3-mwms-fit", "info")
    assert "phalanx run mends it" in finding.fix


def test_the_context_is_followed_into_the_modules_beside_the_script():
    beside = {"data": "import tensorflow as tf\nLABELS = tf.range(10)\ndef load():\n    return LABELS\n"}
    text = TF + "from data import load\nload()\n" + MWMS
    [finding] = [one for one in found(text, beside=beside) if one.id == "context-before-strategy"]
    assert (finding.path, finding.place.line) == ("data.py", 2)
    assert "line 7 of train.py" in finding.message


def test_a_model_made_by_a_module_beside_is_known_as_kerass():
    beside = {"models": "import keras\ndef build():\n    net = keras.Sequential()\n    return net\n"}
    text = MWMS + "import models\nnet = models.build()\nnet.fit(data)\n"
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


def test_the_names_that_are_gone_are_told_once_each():
    text = TF + "def f():\n    tf.Session()\ntf.Session()\ntf.app.run()\n"
    said = [(one.place.line, one.message) for one in found(text)]
    assert said == [
        (5, "TensorFlow 2.21 has no tf.Session (here and at 1 more place)"),
        (6, "TensorFlow 2.21 has no tf.app"),
    ]

"""Scripts that each rule is for: the rule, its severity, its line, the script, and what is known around it."""

from __future__ import annotations

from phalanx.script.program import Roles
from script.scripts import IN_SCOPE, MODEL, MWMS, PS, RESOLVER, SERVER, TF

TWO = Roles(worker=2)
FIT = MODEL + "model.fit(data, epochs=2)\n"
FIT_IN_SCOPE = IN_SCOPE + "model.fit(data, epochs=2)\n"
COMPILED = IN_SCOPE + "model.compile(%s)\nmodel.fit(data, epochs=2)\n"
LEGACY = {"environ": {"TF_USE_LEGACY_KERAS": "1"}}
ONE_FILE = "data = tf.data.TFRecordDataset('a.tfrecord')\ndata = data.batch(8)\n"
SET = "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['a:1', 'b:1']}, 'task': %s})\n"
WORKER_0 = SET % "{'type': 'worker', 'index': 0}"

WITH_CHIEF = Roles(chief=1, worker=2)
CHIEF = MWMS + "def _is_chief(task_type, task_id, cluster_spec):\n"
SAVES = (
    "r = strategy.cluster_resolver\nif not _is_chief(r.task_type, r.task_id, r.cluster_spec()):\n"
    "    tf.io.gfile.rmtree('t')\n"
)
ROLE = MWMS + "role = json.loads(os.environ['TF_CONFIG'])['task']['type']\n"
INDEX = MWMS + "index = json.loads(os.environ.get('TF_CONFIG'))['task'].get('index')\n"

ARGV = TF + "import sys\nos.environ['TF_CONFIG'] = json.dumps({'task': {'index': int(sys.argv[1])}})\n" + MWMS
FOLDER = TF + "d = os.environ['OUT']\n"
INPUT = TF + "x = tf.keras.Input((3,))\n"
SLICES = MWMS + "data = tf.data.Dataset.from_tensor_slices(x).batch(64)\n"

#: Rule, severity, line, script, and what is known around it.
FAULTY = [
    ("model-outside-scope", "warning", 6, MWMS + FIT, {}),
    ("model-outside-scope", "warning", 6, MWMS + FIT, {"roles": TWO, **LEGACY}),
    ("model-outside-scope", "warning", 7, MWMS + MODEL + "with strategy.scope():\n    model.fit(data)\n", {}),
    (
        "model-outside-scope",
        "warning",
        9,
        MWMS + "def build():\n    m = tf.keras.Sequential()\n    m.compile('sgd', 'mse')\n    return m\n"
        "m = build()\nm.fit(data)\n",
        {},
    ),
    (
        "model-outside-scope",
        "warning",
        7,
        MWMS + "class Net(tf.keras.Model):\n    pass\nnet = Net()\nnet.fit(data)\n",
        {},
    ),
    ("collective-in-one-task", "warning", 7, INDEX + IN_SCOPE + "if index == 0: print(model.evaluate(x, y))\n", {}),
    ("collective-in-one-task", "warning", 7, ROLE + IN_SCOPE + "if role == 'chief': model.predict(x)\n",
     {"roles": WITH_CHIEF}),
    (
        "collective-in-one-task",
        "warning",
        10,
        INDEX + "first = index == 0\n" + IN_SCOPE + "if not first:\n    pass\nelse: model.evaluate(x, y)\n",
        {"roles": TWO, **LEGACY},
    ),
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
    ("context-before-strategy", "error", 5, TF + "N = 3\nfor at in range(N):\n    tf.constant(at)\n" + MWMS, {}),
    ("keras3-reset-states", "error", 4, TF + "m = tf.keras.metrics.Mean()\nfor at in (1, 2): m.reset_states()\n", {}),
    (
        "context-before-strategy",
        "warning",
        4,
        TF + "if os.environ.get('MWMS'):\n    tf.constant(1)\n    tf.distribute.MultiWorkerMirroredStrategy()\n",
        {},
    ),
    ("no-strategy", "warning", 5, TF + FIT, {}),
    ("no-strategy", "warning", 5, TF + FIT, {"roles": TWO}),
    (
        "no-strategy",
        "warning",
        3,
        TF + "strategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n    m = make()\nm.fit(x)\n",
        {"roles": TWO},
    ),
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
    ("chief-is-nowhere", "warning", 5, CHIEF + "    return task_type == 'chief'\n" + SAVES, {}),
    ("chief-is-nowhere", "warning", 4, MWMS + "if strategy.cluster_resolver.task_type != 'chief': exit()\n", {}),
    ("chief-is-nowhere", "warning", 5, ROLE + "lead = role == 'master'\n", {"roles": WITH_CHIEF}),
    (
        "chief-is-twice",
        "warning",
        5,
        CHIEF + "    return task_type is None or task_type == 'chief' or (task_type == 'worker' and task_id == 0)\n"
        + SAVES,
        {"roles": WITH_CHIEF},
    ),
    ("chief-is-twice", "warning", 5, INDEX + "is_chief = index == 0\n", {"roles": WITH_CHIEF}),
    ("chief-is-twice", "warning", 5, INDEX + "if index != 0:\n    tf.io.gfile.rmtree(d)\n", {"roles": WITH_CHIEF}),
    (
        "chief-is-another",
        "info",
        5,
        CHIEF + "    return (task_type == 'worker' and task_id == 0) or task_type is None\n" + SAVES,
        {"roles": WITH_CHIEF},
    ),
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
    ("keras3-mwms-fit", "error", 6, MWMS + FIT_IN_SCOPE, {"roles": TWO}),
    ("keras3-mwms-compile", "error", 6, MWMS + COMPILED % "steps_per_execution=2", {"roles": TWO, "mends": True}),
    ("keras3-mwms-compile", "error", 6, MWMS + COMPILED % "'sgd', jit_compile=True", {"roles": TWO, "mends": True}),
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
        "info",
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
    ("tf-config-removed", "error", 3, TF + "os.environ.pop('TF_CONFIG')\n" + MWMS + WORKER_0, {}),
    (
        "cluster-from-flags",
        "warning",
        8,
        TF + "import argparse\ndef main(args):\n    config = json.load(open('c.json'))\n"
        "    config['task']['index'] = args.worker\n    print(config)\n"
        "    os.environ['TF_CONFIG'] = json.dumps(config)\n    tf.distribute.MultiWorkerMirroredStrategy()\n"
        "p = argparse.ArgumentParser()\np.add_argument('--worker', type=int)\nmain(p.parse_args())\n",
        {},
    ),
    ("cluster-from-flags", "error", 4, ARGV, {"roles": TWO, "arguments": ("0",)}),
    ("cluster-from-flags", "warning", 4, ARGV, {"roles": TWO, "arguments": ("{index}",)}),
    (
        "cluster-from-flags",
        "warning",
        6,
        TF + "import sys\nhosts = {'worker': ['a:1', 'b:1']}\nrank = int(sys.argv[2])\n"
        "tf.distribute.Server(hosts, job_name='worker', task_index=rank)\n",
        {},
    ),
    (
        "cluster-from-flags",
        "warning",
        5,
        TF + "import argparse\nargs, rest = argparse.ArgumentParser().parse_known_args()\n"
        "tf.train.ClusterSpec({'worker': args.hosts.split(',')})\n",
        {},
    ),
    (
        "tf-config-of-its-own",
        "warning",
        5,
        TF + "import socket\nhosts = ['a:1', 'b:1']\n"
        "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': hosts},"
        " 'task': {'type': 'worker', 'index': hosts.index(socket.gethostname())}})\n" + MWMS,
        {},
    ),
    ("ps-without-resolver", "error", 3, TF + "s = tf.distribute.experimental.ParameterServerStrategy()\n", {}),
    ("keras3-weights-path", "error", 4, FOLDER + "tf.keras.callbacks.ModelCheckpoint(os.path.join(d, 'ckpt_{epoch}'),"
     " save_weights_only=True)\n", {}),
    ("keras3-weights-path", "error", 6, FOLDER + MODEL + "model.save_weights(f'{d}/weights.h5')\n", {}),
    (
        "keras3-model-path",
        "error",
        10,
        TF + "def name(path, task_id):\n    base = os.path.basename(path)\n    if task_id:\n        folder = '/tmp'\n"
        "    else:\n        folder = os.path.dirname(path)\n    return os.path.join(folder, base)\n"
        + MODEL.replace("\n", "; ", 1).replace("\n", "; ") + "model.save(name('/out/keras-model', index))\n",
        {"roles": Roles(worker=1)},
    ),
    ("fewer-files-than-workers", "error", 4, MWMS + ONE_FILE + "o = tf.data.Options()\n"
     "o.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE\n"
     "data = data.with_options(o)\nstrategy.experimental_distribute_dataset(data)\n", {}),
    ("fewer-files-than-workers", "error", 4, MWMS + "data = tf.data.Dataset.list_files('a.tfrecord')\n"
     "strategy.experimental_distribute_dataset(data.interleave(tf.data.TFRecordDataset))\n", {"roles": TWO}),
    ("fewer-files-than-workers", "error", 4, MWMS + "data = tf.data.Dataset.range(8)\no = tf.data.Options()\n"
     "o.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE\n"
     "strategy.experimental_distribute_dataset(data.batch(2).with_options(o))\n", {}),
    (
        "fewer-files-than-workers",
        "error",
        4,
        MWMS + ONE_FILE.replace("data =", "held =").replace("data.batch", "held.batch")
        + MODEL + "model.fit(data, validation_data=held)\n",
        LEGACY,
    ),
    ("batch-not-divisible", "info", 6, MWMS + MODEL + "model.fit(x, y, batch_size=25)\n", {"roles": TWO, **LEGACY}),
    ("batch-not-divisible", "info", 4, MWMS + "data = tf.data.Dataset.range(9).batch(3)\n"
     "strategy.experimental_distribute_dataset(data)\n", {"roles": TWO}),
    ("data-runs-out", "warning", 7, SLICES + MODEL + "model.fit(data, epochs=2, steps_per_epoch=int(60000 / 64))\n",
     LEGACY),
    ("shared-save-path", "warning", 6, MWMS + MODEL + "model.save_weights('w.weights.h5')\n", {}),
    ("shared-save-path", "warning", 6, MWMS + MODEL + "tf.saved_model.save(model, '/models/one')\n", {}),
    ("shared-save-path", "warning", 6, MWMS + "c = tf.train.Checkpoint()\nfor epoch in range(3):\n"
     "    c.save(os.path.join('ckpt', 'at'))\n", {}),
    (
        "shared-save-path",
        "warning",
        7,
        MWMS + "import argparse\np = argparse.ArgumentParser(); p.add_argument('--dir', required=True)\n"
        "args = p.parse_args()\nm = tf.train.CheckpointManager(c, args.dir, max_to_keep=3)\n",
        {"roles": TWO, "arguments": ("--dir", "ckpt")},
    ),
    ("checkpoint-folder-changes", "warning", 4,
     TF + "import uuid\ntf.train.latest_checkpoint(f'/ckpt/{uuid.uuid4()}')\n", {}),
    (
        "checkpoint-folder-changes",
        "warning",
        6,
        TF + "from datetime import datetime\ndef folder():\n    return f'/runs/{datetime.now():%H%M}'\n"
        "m = tf.train.CheckpointManager(c, folder(), max_to_keep=3)\n",
        {},
    ),
    (
        "checkpoint-folder-changes",
        "warning",
        5,
        TF + "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n"
        "    b = tf.keras.callbacks.BackupAndRestore(os.path.join(d, 'b'))\n",
        {},
    ),
    (
        "checkpoint-folder-changes",
        "warning",
        5,
        TF + "import time\npath = time.strftime('/ckpt/%H.keras')\nb = tf.keras.callbacks.ModelCheckpoint(path)\n"
        "model.load_weights(path)\n",
        {},
    ),
    ("keras3-symbolic", "error", 5, INPUT + "layer = tf.keras.layers.Dense(4)\ny = tf.reduce_mean(layer(x), 1)\n", {}),
    ("keras3-symbolic", "error", 4, INPUT + "y = tf.concat([tf.keras.layers.Dense(1)(x), z], 1)\n", {}),
    ("import-forgotten", "error", 3, TF + "callbacks = [keras.callbacks.TerminateOnNaN()]\n", {}),
    ("import-forgotten", "warning", 4, TF + "def later():\n    return np.zeros(1)\n", {}),
    ("ignore-unknown", "info", 1, "x = 1  # phalanx: ignore[shared-sav-path]\n", {}),
]  # fmt: skip

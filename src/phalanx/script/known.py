"""Names of TensorFlow and of packages whose meaning for a job of several processes is known."""

from __future__ import annotations

from collections.abc import Mapping

#: Names that build a strategy, and the word of job.yaml.
STRATEGIES: Mapping[str, str] = {
    "tensorflow.distribute.MultiWorkerMirroredStrategy": "mwms",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy": "mwms",
    "tensorflow.distribute.ParameterServerStrategy": "ps",
    "tensorflow.distribute.experimental.ParameterServerStrategy": "ps",
}
#: Names that build a strategy of one process.
ALONE = (
    "tensorflow.distribute.MirroredStrategy",
    "tensorflow.distribute.OneDeviceStrategy",
    "tensorflow.distribute.experimental.CentralStorageStrategy",
)
#: Words of a program that may hold a strategy which is not seen.
STRATEGY_WORDS = frozenset({"distribute", "distribution", "strategy", "Strategy", "CollectiveAllReduceStrategy"}) | {
    name.rpartition(".")[2] for name in (*STRATEGIES, *ALONE)
}
#: Packages that never build one, whatever is imported from them.
HARMLESS = frozenset(
    [
        "tensorflow",
        "keras",
        "tf_keras",
        "numpy",
        "pandas",
        "scipy",
        "sklearn",
        "matplotlib",
        "seaborn",
        "PIL",
        "cv2",
        "skimage",
        "h5py",
        "yaml",
        "tqdm",
        "absl",
        "requests",
        "psutil",
        "pyarrow",
        "tensorboard",
        "tensorflow_datasets",
        "tensorflow_text",
        "tensorflow_addons",
        "rich",
        "click",
        "dotenv",
        "wandb",
        "mlflow",
        "nltk",
        "transformers",
        "boto3",
        "google",
        "pytz",
        "dateutil",
        "imageio",
        "joblib",
        "librosa",
        "soundfile",
        "gensim",
    ]
)

"""Kinds that are no TensorFlow cluster, each with what to use instead; and those that are no part of a job at all."""

from __future__ import annotations

#: Kind → why it is not imported, and what to do.
REFUSED = {
    "MPIJob": "MPI and Horovod are not phalanx's. MultiWorkerMirroredStrategy needs neither: phalanx run --workers N "
    "train.py with a script that builds it; for Horovod itself stay with mpirun",
    "PyTorchJob": "phalanx launches TensorFlow; for PyTorch use torchrun",
    "MXJob": "phalanx launches TensorFlow, and MXNet has been retired; port the training first",
    "XGBoostJob": "phalanx launches TensorFlow; for XGBoost use its own tracker, or Dask",
    "XDLJob": "phalanx launches TensorFlow's own strategies; XDL brings its own cluster",
    "PaddleJob": "phalanx launches TensorFlow; for Paddle use paddle.distributed.launch",
    "JAXJob": "phalanx launches TensorFlow; for JAX use jax.distributed with an Indexed Job",
    "ElasticDLJob": "phalanx launches TensorFlow's own strategies; ElasticDL brings its own master",
    "MarsJob": "phalanx launches TensorFlow; Mars brings its own cluster",
    "TrainJob": "it names a runtime of the cluster and no pods; import the pods that the runtime makes, or begin with "
    "phalanx init train.py",
    "RayJob": "phalanx launches TensorFlow; Ray brings its own cluster",
    "RayCluster": "phalanx launches TensorFlow; Ray brings its own cluster",
    "SparkApplication": "phalanx launches TensorFlow; Spark brings its own cluster",
    "Workflow": "it is a pipeline: import the TFJob or the pods that one of its steps makes, and let the step call "
    "phalanx run",
    "WorkflowTemplate": "it is a pipeline: import the TFJob or the pods that one of its steps makes",
    "CronWorkflow": "it is a pipeline: import the TFJob or the pods that one of its steps makes",
    "PipelineRun": "it is a pipeline: import the TFJob or the pods that one of its steps makes",
    "Experiment": "it searches parameters: import the job of its trialTemplate, filled in, and let the search call "
    "phalanx run",
    "CronJob": "it starts jobs by the clock: import its jobTemplate as a Job, and let cron or CI call phalanx run",
    "Cron": "it starts jobs by the clock: import its template, and let cron or CI call phalanx run",
    "JobFlow": "it is a pipeline: import the Jobs of its steps",
    "JobTemplate": "it is a part of a pipeline: import its spec as a Job",
    "JobSet": "import the Jobs inside it: each replicatedJob's template as a Job with its TF_CONFIG",
    "Framework": "FrameworkController's tasks find each other by its own files; write the roles by hand: phalanx init",
    "SeldonDeployment": "it serves a model and trains none",
    "InferenceService": "it serves a model and trains none",
    "CustomResourceDefinition": "it is the definition of a kind, and no job of it",
}

#: What stands beside a job and stays as it is.
BESIDE = {
    "Service": "not needed: the run has a headless Service of its own",
    "PodGroup": "not needed: on.kubernetes.gang makes one",
    "NetworkPolicy": "not needed for the run's own pods, which have one; others stay as they are",
}
STAYS = "no part of the job: it stays as it is; apply it yourself where it is missing"

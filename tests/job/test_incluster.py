"""A job for Kubernetes: what it may not say, what is noted, and what its script says where it lies here too."""

from __future__ import annotations

import pytest

from incluster import in_cluster
from phalanx.job.complaint import JobFileError
from phalanx.job.reading import ScriptError
from phalanx.plan.outline import Strategy


def refused(folder, text: str) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        in_cluster(folder, text)
    return [str(one) for one in caught.value.complaints]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("image:\n", "Kubernetes runs containers: say which with image: "),
        ("hosts: 2\n", "each task has a pod of its own; leave hosts out"),
        ("roles: {worker: {count: 4, per_host: 2}}\n", "each task has a pod of its own; leave per_host out"),
        ("roles: {worker: {}, my_board: {command: [x], count: 0}}\n", "Kubernetes makes host names of roles"),
        ("checkpoint: ckpt\n", "name one that all pods share"),
        ("placement: {together: rack}\n", "Kubernetes has no label for a rack; name that of your nodes"),
        ("on: {kubernetes: {apart: [ps]}}\n", "this job has no ps; it has worker"),
        ("on: {kubernetes: {apart: [worker]}}\n", "a worker trains"),
        ("on: {kubernetes: {roles: {ps: {}}}}\n", "this job has no ps; it has worker"),
        ("roles: {worker: {count: 2, max: 4}}\non: {kubernetes: {jobset: on}}\n", "a JobSet cannot be scaled"),
        ("roles: {worker: {}}\non: {kubernetes: {hugepages: {2Mi: 1Gi}}}\n", "say memory for each role"),
        ("on: {kubernetes: {pod: {spec: {restartPolicy: Always}}}}\n", "restartPolicy is phalanx's own"),
        ("on: {kubernetes: {pod: {spec: {containers: [{name: task, image: x}]}}}}\n", "say it as the job's `image`"),
        ("on: {kubernetes: {pod: {metadata: {labels: {phalanx/run: x}}}}}\n", "is phalanx's own label"),
        ("on: {kubernetes: {labels: {phalanx/role: x}}}\n", "is phalanx's own label"),
        (
            "roles: {worker: {count: 2, max: 4}, evaluator: {}}\non: {kubernetes: {queue: q}}\n",
            "a pod group of Kueue keeps its size",
        ),
        ("on: {kubernetes: {user: 0}}\n", "user 0 is root"),
        ("secrets: [{name: a, env: A, from: {env: A}}]\n", "a pod cannot see your environment or your files"),
        ("secrets: [{name: a, path: /phalanx/a, from: {secret: s, key: k}}]\n", "is phalanx's own place"),
    ],
)
def test_what_cannot_be_had_on_kubernetes_is_refused_with_what_can(tmp_path, text, said):
    [complaint] = refused(tmp_path, text)
    assert complaint.startswith("job.yaml:")
    assert said in complaint


TOKEN = "hf_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"env: {{HF_TOKEN: {TOKEN}}}\n", "env"),
        (f"roles: {{worker: {{env: {{X: {TOKEN}}}}}}}\n", "roles"),
        (f"command: [python, train.py, --token, {TOKEN}]\n", "command"),
        (
            "on: {kubernetes: {pod: {spec: {containers: [{name: task, env: [{name: PASSWORD, value: hunter22}]}]}}}}\n",
            "on",
        ),
        (f"on: {{kubernetes: {{pod: {{metadata: {{annotations: {{note: {TOKEN}}}}}}}}}}}\n", "on"),
        ("on: {kubernetes: {pod: {spec: {containers: [{name: task, env: [{name: TF_CONFIG, value: x}]}]}}}}\n", "on"),
    ],
)
def test_what_looks_like_a_secret_is_refused_and_not_repeated(tmp_path, text, place):
    complaints = refused(tmp_path, text)
    assert complaints, place
    assert TOKEN not in "".join(complaints)
    assert "hunter2" not in "".join(complaints)


def test_references_to_secrets_are_no_secrets(tmp_path):
    text = """secrets: [{name: a, env: A_TOKEN, from: {secret: my-secret-token, key: api-key}}]
on:
  kubernetes:
    pull_secrets: [registry-secret]
    pod:
      spec:
        volumes: [{name: secret-key, secret: {secretName: my-secret}}]
        containers:
          - name: task
            env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
            envFrom: [{secretRef: {name: all-tokens}}]
"""
    said = in_cluster(tmp_path, text)
    assert [(one.name, one.env, one.source) for one in said.outline.secrets] == [
        ("a", "A_TOKEN", "secret:my-secret-token/api-key")
    ]


def notes(folder, text: str) -> set[str]:
    return {note.id for note in in_cluster(folder, text).notes}


def test_what_deserves_a_second_thought_is_noted(tmp_path):
    assert notes(tmp_path, "") == set()
    assert notes(tmp_path, "image: repo/name:1\n") == {"job-image-by-tag"}
    assert notes(tmp_path, "on: {kubernetes: {rbac: none}}\n") == {"job-without-role"}
    assert notes(tmp_path, "roles: {ps: {}}\non: {kubernetes: {queue: q}}\n") == {"job-queue-pods"}
    assert notes(tmp_path, "roles: {ps: {}}\non: {kubernetes: {queue: q, jobset: on}}\n") == set()
    assert notes(tmp_path, "checkpoint: /ckpt\n") == {"job-checkpoint-not-mounted"}
    assert notes(tmp_path, "outputs: [model.keras]\n") == {"job-outputs-read-only"}
    assert notes(tmp_path, 'outputs: ["{task_dir}/model.keras", gs://bucket/model]\n') == set()


def test_every_task_has_a_pod_of_its_own(tmp_path):
    outline = in_cluster(tmp_path, "roles: {worker: {count: 3}, ps: {count: 2}}\n").outline
    assert outline.hosts == 6
    assert {role.per_host for role in outline.roles} == {1}


def test_the_command_runs_under_the_images_own_python(tmp_path):
    assert in_cluster(tmp_path, "command: [train.py, --epochs, '3']\n").outline.roles[0].command == (
        *("python3", "train.py", "--epochs", "3"),
    )
    assert in_cluster(tmp_path, "python: /opt/venv/bin/python\n").outline.roles[0].command[0] == "/opt/venv/bin/python"


def test_an_absolute_folder_is_one_of_the_image_and_any_other_is_of_this_machine(tmp_path):
    assert in_cluster(tmp_path, "folder: /srv/app\n").outline.cwd == "/srv/app"
    assert in_cluster(tmp_path, "folder: ..\n").outline.cwd == ""


def test_a_script_that_lies_here_too_is_read_and_one_that_does_not_is_no_mistake(tmp_path):
    assert not in_cluster(tmp_path, "roles: {worker: {count: 2}}\n").outline.must_listen
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    )
    said = in_cluster(tmp_path, "roles: {worker: {count: 2}}\n")
    assert (said.outline.strategy, said.outline.must_listen) == (Strategy.MWMS, True)
    assert said.imports["worker"] == ("import tensorflow as tf",)


def test_a_script_at_hand_that_cannot_work_is_refused(tmp_path):
    early = "import tensorflow as tf\nx = tf.constant(1)\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    (tmp_path / "train.py").write_text(early)
    with pytest.raises(ScriptError, match="context-before-strategy"):
        in_cluster(tmp_path, "roles: {worker: {count: 2}}\n")


def test_a_flag_names_the_image(tmp_path):
    assert in_cluster(tmp_path, "", image="other@sha256:9").cluster.image == "other@sha256:9"


def test_the_job_that_is_kept_says_the_same(tmp_path):
    text = "on: {kubernetes: {rbac: none, pod: {spec: {nodeSelector: {a: b}, securityContext: {runAsGroup: ~}}}}}\n"
    first = in_cluster(tmp_path, text)
    assert in_cluster(tmp_path, first.text).cluster == first.cluster

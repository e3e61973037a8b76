"""Manifests of every dialect become a job.yaml that loads, renders, and says what changed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from kubernetes_validate import latest_version, validate

from phalanx.engine.kubernetes.objects import objects
from phalanx.errors import InputError
from phalanx.job.flags import Flags
from phalanx.job.importers import manifests
from phalanx.job.importers.ledger import written
from phalanx.job.importers.read import imported
from phalanx.job.importers.result import told
from phalanx.job.incluster import declare_in_cluster
from phalanx.job.load import parse

MANIFESTS = Path(__file__).parent / "manifests"
FILES = sorted(path.name for path in MANIFESTS.iterdir())
#: Objects of what others install: no API server has their schema by itself.
OTHERS = {"jobset.x-k8s.io/v1alpha2", "scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"}


def read(name: str):
    [job] = imported((MANIFESTS / name).read_text(encoding="utf-8"), name).jobs
    return job


@pytest.mark.parametrize("name", FILES)
def test_each_dialect_becomes_this_job_yaml(name, golden):
    golden(f"imports/{Path(name).stem}.yaml", read(name).text)


@pytest.mark.parametrize("name", FILES)
def test_the_list_says_what_became_of_every_field(name, golden):
    job = read(name)
    golden(f"imports/{Path(name).stem}.txt", "".join(f"{line}\n" for line in told(job, name)))


@pytest.mark.parametrize("name", FILES)
def test_every_entry_names_a_line_of_the_manifest(name):
    lines = (MANIFESTS / name).read_text(encoding="utf-8").splitlines()
    for entry in read(name).entries:
        assert 1 <= entry.line <= len(lines)
        assert entry.at


def leaves(value, loc=()):
    if isinstance(value, dict | list) and value:
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[key], (*loc, key))
    elif value is not None:
        yield loc


@pytest.mark.parametrize("name", FILES)
def test_no_field_is_left_out_without_a_line(name):
    """An entry for a whole role or spec says nothing of what is in it."""
    job = read(name)
    told_of = {entry.at for entry in job.entries if not WHOLE.fullmatch(entry.at)}
    assert [
        f"{tree.place((*base, *loc))[0]}: {written(loc)}"
        for tree, base, value in imported_objects(name)
        for loc in leaves(value)
        if loc not in (("apiVersion",), ("kind",)) and not is_told(written(loc), told_of)
    ] == []


def is_told(path: str, told_of: set[str]) -> bool:
    return any(path == at or path.startswith((f"{at}.", f"{at}[")) for at in told_of)


@pytest.mark.parametrize("name", FILES)
def test_the_objects_of_an_imported_job_are_as_the_api_wants_them(name, tmp_path):
    (tmp_path / "job.yaml").write_text(read(name).text, encoding="utf-8")
    said = declare_in_cluster(("job.yaml",), Flags(), cwd=tmp_path)
    cluster = dataclasses.replace(said.cluster, namespace="ml")
    for one in objects(said.outline, cluster, run="imported", agent=b"the agent"):
        if one["apiVersion"] not in OTHERS:
            validate(one, latest_version(), strict=True)


#: Entries about what is not there: they stand at what would hold it.
WHOLE = re.compile(r"spec|spec\.(?:tfReplicaSpecs\.\w+|replicaSpecs\[\d\]|tasks\[\d\])")


def imported_objects(name: str):
    """The objects of a file that went into its job."""
    text = (MANIFESTS / name).read_text(encoding="utf-8")
    beside = {other.line for other in imported(text, name).beside}
    roots = [one.root for one in manifests.read(text, name)]
    return [(root.tree, root.loc, root.value) for root in roots if root.line not in beside]


TEMPLATE = """
        spec:
          containers:
            - {{name: tensorflow, image: "example.com/a:1", command: [python, train.py]{more}}}
{beside}"""


def tfjob(
    replicas: str = "    Worker: {replicas: 2, template: *pod}", *, spec: str = "", more: str = "", beside: str = ""
):
    return (
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata:\n  name: a\n"
        f"  x-pod: &pod{TEMPLATE.format(more=more, beside=beside)}\n"
        f"spec:\n{spec}  tfReplicaSpecs:\n{replicas}\n"
    )


def job_of(text: str, **options):
    [found] = imported(text, "a.yaml", **options).jobs
    return parse(found.text, "job.yaml").job


@pytest.mark.parametrize("ps", ["PS", "Ps", "ps"])
@pytest.mark.parametrize("worker", ["WORKER", "Worker", "worker"])
def test_types_of_replicas_are_known_in_any_spelling(ps, worker):
    job = job_of(tfjob(f"    {ps}: {{template: *pod}}\n    {worker}: {{replicas: 3, template: *pod}}"))
    assert {name: role.count for name, role in job.roles.items()} == {"chief": 0, "worker": 3, "ps": 1}


@pytest.mark.parametrize(
    ("env", "kept"),
    [
        ('{name: A, value: "1"}, {name: B, value: "$(A)2"}', {"A": "1", "B": "12"}),
        ('{name: A, value: "$$(B)"}', {"A": "$(B)"}),
        ('{name: A, value: "$(NOBODY)"}', {"A": "$(NOBODY)"}),
        ('{name: A, value: "1"}, {name: A, value: "2"}', {"A": "2"}),
        ("{name: PHALANX_RUN, value: a}, {name: TF_GRPC_REUSE_PORT, value: b}", {}),
    ],
)
def test_variables_are_filled_in_as_the_kubelet_does(env, kept):
    assert job_of(tfjob(more=f", env: [{env}]")).env == kept


def test_a_variable_that_only_the_pod_knows_is_filled_in_by_a_shell():
    env = ", env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], args: ['--me=$(POD) x', \"it's\"]"
    assert job_of(tfjob(more=env)).command == [
        "/bin/sh",
        "-c",
        """exec python train.py --me="$POD"' x' 'it'"'"'s'""",
    ]


def test_a_secret_that_all_roles_have_is_a_reference_of_the_job():
    env = ", env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]"
    [secret] = job_of(tfjob(more=env)).secrets
    assert (secret.env, secret.source.secret, secret.source.key) == ("TOKEN", "hub", "token")


@pytest.mark.parametrize(
    "more",
    [
        ", env: [{name: AWS_SECRET_ACCESS_KEY, value: wJalrXUtnFEMI1K7MDENG}]",
        ", args: [--api-key, abcdefgh12345678]",
        ", args: ['--token=abcdefgh12345678']",
        ", env: [{name: URL, value: 'postgres://me:hunter2@db/x'}]",
    ],
)
def test_a_value_that_looks_like_a_secret_stops_the_import_and_is_not_repeated(more):
    with pytest.raises(InputError, match=r"a\.yaml:\d+:\d+: .*looks like a secret.*secretKeyRef") as refused:
        imported(tfjob(more=more), "a.yaml")
    assert not any(secret in str(refused.value) for secret in ("wJalr", "abcdefgh", "hunter2"))


def test_a_credential_inside_a_sidecar_or_a_volume_stops_the_import_too():
    beside = "            - {name: side, image: b, env: [{name: PASSWORD, value: hunter22}]}\n"
    with pytest.raises(
        InputError, match=r"containers\[1\]\.env\[0\]\.value: the value of PASSWORD looks like a secret"
    ):
        imported(tfjob(beside=beside), "a.yaml")


@pytest.mark.parametrize(
    "words", ["--token=$(TOKEN)", "--password $TOKEN", 'train "$API_KEY" --key ${API_KEY} --lr 0.1', "--max_token=128"]
)
def test_a_reference_is_no_secret(words):
    env = "env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]"
    assert job_of(tfjob(more=f", {env}, args: ['{words}']")).command


@pytest.mark.parametrize(
    ("spec", "restarts"),
    [
        ("  backoffLimit: 7\n", 7),
        ("  runPolicy: {backoffLimit: 0}\n", 0),
        ("", 3),
    ],
)
def test_a_limit_of_restarts_is_one_wherever_it_stands(spec, restarts):
    assert job_of(tfjob(spec=spec)).restart.max == restarts


def test_pods_that_never_start_again_make_a_job_that_does_not():
    assert job_of(tfjob("    Worker: {replicas: 2, restartPolicy: Never, template: *pod}")).restart.max == 0


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (tfjob("    Master: {template: *pod}\n    Chief: {template: *pod}"), "Master stands here already"),
        (tfjob("    Chief: {replicas: 2, template: *pod}"), "at most one chief, not 2"),
        (tfjob("    Scheduler: {template: *pod}"), "no type of replica that TFJob knows"),
        (tfjob("    Worker: {replicas: '2', template: *pod}"), "a whole number of at least 0"),
        (tfjob("    Worker: {replicas: $N, template: *pod}"), "fill the template in first"),
        (tfjob("    Worker: {replicas: 2}"), "these replicas have no template"),
        (tfjob("    PS: {template: *pod}"), "nobody would train"),
        (tfjob(more=", resources: {limits: {memory: lots}}"), "`lots` is no quantity"),
        (tfjob(more=", args: ['--ps_hosts=a:1']"), "hands addresses or numbers of tasks over by hand"),
        (tfjob(more=", workingDir: 3"), 'quote it: "3"'),
        (tfjob().replace("example.com/a:1", "<image>"), "`<image>` is still to be filled in"),
        (tfjob().replace("name: a\n", "name: a-$RUN\n"), r"`\$RUN` is still to be filled in"),
        (tfjob().replace("/v1\n", "/v9\n"), "no version of TFJob that phalanx knows"),
        (tfjob().replace("kubeflow.org/v1", "example.org/v1"), "a TFJob of the group example.org"),
        (tfjob().replace("command: [python, train.py]", "args: [--lr, '1']"), "hand its ENTRYPOINT over after `--`"),
        (tfjob(more=", args: [mpirun, train.py]"), "`mpirun` launches by itself"),
        (tfjob(more=", args: ['/etc/volcano/ps.host']"), "reads what only Volcano writes"),
        (tfjob(more=", resources: {limits: {nvidia.com/gpu: 2}, requests: {nvidia.com/gpu: 1}}"), "must be its limit"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_line(text, refused):
    with pytest.raises(InputError, match=rf"a\.yaml:\d+:\d+: .*{refused}"):
        imported(text, "a.yaml")


def test_every_mistake_is_named_at_once():
    text = tfjob("    Chief: {replicas: 2, template: *pod}\n    Gang: {template: *pod}\n    Worker: {replicas: x}")
    with pytest.raises(InputError, match="4 mistakes in the manifest"):
        imported(text, "a.yaml")


@pytest.mark.parametrize(
    ("kind", "instead"),
    [("MPIJob", "MultiWorkerMirroredStrategy needs neither"), ("PyTorchJob", "use torchrun"), ("TrainJob", "runtime")],
)
def test_other_kinds_are_refused_by_name_with_what_to_use(kind, instead):
    text = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: other}}\n"
    with pytest.raises(InputError, match=rf"a\.yaml:1:1: {kind} other is not imported: .*{instead}"):
        imported(text, "a.yaml")


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (("tensorflow: [", "mpi: ["), "no job of TensorFlow's: MultiWorkerMirroredStrategy needs no MPI"),
        (("python, train.py", "mpiexec, train.py"), "`mpiexec` launches by itself"),
        (("--worker=trainer", "--worker=other"), "nobody would train"),
        (("--port=3333", "--rank=1"), "`--rank=1` is no argument of the tensorflow plugin"),
        (
            ("python, train.py", "python, train.py, --task_index=$(VC_TASK_INDEX)"),
            "reads what only Volcano writes",
        ),
    ],
)
def test_a_volcano_job_of_another_kind_is_refused(change, refused):
    text = (MANIFESTS / "volcano-plugin.yaml").read_text(encoding="utf-8").replace(*change)
    with pytest.raises(InputError, match=rf"a\.yaml:\d+:\d+: .*{refused}"):
        imported(text, "a.yaml")


@pytest.mark.parametrize(
    ("line", "mark"),
    [('  name: "{{ .Values.name }}"', "{{"), ("{% if gpu %}", "{%"), ("  {{- with .x }}", "{{")],
)
def test_a_template_is_refused_at_its_line(line, mark):
    with pytest.raises(InputError, match=r"a\.yaml:3:\d+: `" + mark.replace("{", r"\{") + "` makes this a template"):
        imported(f"apiVersion: kubeflow.org/v1\nkind: TFJob\n{line}\n", "a.yaml")


def test_a_mark_of_templates_in_a_comment_does_no_harm():
    assert job_of("# {{ from a template }}\n" + tfjob() + "# {% end %}\n").name == "a"


def test_jsonnet_is_refused_at_its_line():
    with pytest.raises(InputError, match=r"a\.yaml:1:1: this is jsonnet"):
        imported('local k = import "k.libsonnet";\n{apiVersion: "kubeflow.org/v1", kind: "TFJob"}\n', "a.yaml")


def test_of_several_jobs_one_is_taken_by_its_name():
    text = tfjob() + "---\n" + tfjob().replace("name: a\n", "name: b\n")
    assert [job.name for job in imported(text, "a.yaml").jobs] == ["a", "b"]
    assert [job.name for job in imported(text, "a.yaml", name="b").jobs] == ["b"]
    with pytest.raises(InputError, match="no job is called 'c'; there are a, b"):
        imported(text, "a.yaml", name="c")


def test_lines_are_counted_over_documents_and_lists():
    text = (
        "---\nkind: List\napiVersion: v1\nitems:\n- apiVersion: kubeflow.org/v1\n  kind: TFJob\n  metadata: {name: a}\n"
    )
    text += "  spec: {tfReplicaSpecs: {Worker: {replicas: x}}}\n"
    with pytest.raises(InputError, match=r"a\.yaml:8:\d+: spec\.tfReplicaSpecs\.Worker\.replicas: "):
        imported(text, "a.yaml")


@pytest.mark.parametrize(
    ("entrypoint", "args", "command"),
    [
        (("python", "-m", "app"), "[--lr, '1']", ["python", "-m", "app", "--lr", "1"]),
        (("python", "-m", "app"), "", ["python", "-m", "app"]),
        ((), "[python3, x.py]", ["python3", "x.py"]),
    ],
)
def test_the_images_own_command_is_given_by_hand(entrypoint, args, command):
    text = tfjob().replace("command: [python, train.py]", f"args: {args}" if args else "stdin: true")
    assert job_of(text, entrypoint=entrypoint).command == command


def test_one_cluster_in_several_tf_configs_must_be_the_same():
    text = (
        (MANIFESTS / "plain-jobs.yaml")
        .read_text(encoding="utf-8")
        .replace('"tf-worker-1:2222"], "ps"', '"x:1"], "ps"', 1)
    )
    with pytest.raises(InputError, match="stand in this file"):
        imported(text, "a.yaml")


def test_a_missing_pod_of_a_cluster_is_named():
    text = (MANIFESTS / "plain-jobs.yaml").read_text(encoding="utf-8")
    documents = [one for one in text.split("---\n") if "tf-ps-0, namespace" not in one]
    with pytest.raises(InputError, match="the cluster names ps, and no pod of it stands in this file"):
        imported("---\n".join(documents), "a.yaml")


def test_a_deployment_without_tf_config_is_no_training():
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: []}}}\n"
    with pytest.raises(InputError, match=r"a\.yaml holds no training job: Deployment"):
        imported(text, "a.yaml")


def test_values_are_read_as_kubernetes_reads_them():
    beside = "          volumes: [{name: c, configMap: {name: c, defaultMode: 0644, optional: yes}}]\n"
    job = job_of(tfjob(more=", volumeMounts: [{name: c, mountPath: /c}]", beside=beside))
    [volume] = job.on.kubernetes.pod["spec"]["volumes"]
    assert volume["configMap"] == {"name": "c", "defaultMode": 0o644, "optional": True}


def test_one_role_may_have_another_image():
    text = tfjob("    Worker: {template: *pod}\n    Evaluator: {template: *other}")
    text = text.replace("spec:\n  tfReplicaSpecs", TEMPLATE_OF_OTHER + "spec:\n  tfReplicaSpecs")
    job = job_of(text)
    assert job.image == "example.com/a:1"
    [task] = job.on.kubernetes.roles["evaluator"].pod["spec"]["containers"]
    assert task == {"name": "task", "image": "example.com/b:1"}


TEMPLATE_OF_OTHER = """x-other: &other
  spec:
    containers: [{name: tensorflow, image: "example.com/b:1", command: [python, train.py]}]
"""

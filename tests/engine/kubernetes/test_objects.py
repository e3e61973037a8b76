"""Each sort of job as the objects that it becomes: golden files, since a manifest is read as a whole."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incluster import JOBS, in_cluster, made, of_kind, pods
from phalanx.engine.kubernetes.names import Names
from phalanx.engine.kubernetes.objects import PIECE, in_host_order, pod_facts
from phalanx.engine.kubernetes.text import document
from phalanx.errors import InputError
from phalanx.job.complaint import JobFileError
from phalanx.plan.marks import RUN
from phalanx.protocol.signing import RunKey

#: Keys that a template's spec may have, some of them ours.
WORDS = (
    *(
        "containers",
        "initContainers",
        "volumes",
        "env",
        "volumeMounts",
        "securityContext",
        "name",
        "value",
        "tolerations",
    ),
    *("affinity", "nodeSelector", "topologySpreadConstraints", "imagePullSecrets", "serviceAccountName", "hostname"),
)


def text_of(manifests) -> str:
    return "---\n".join(document(one) for one in manifests)


@pytest.mark.parametrize("name", JOBS)
def test_the_objects_of_a_job_are_what_they_were(name, tmp_path, golden):
    golden(f"kubernetes/{name}.yaml", text_of(made(tmp_path, JOBS[name])))


@pytest.mark.parametrize("name", JOBS)
def test_equal_jobs_give_equal_bytes(name, tmp_path):
    assert text_of(made(tmp_path, JOBS[name])) == text_of(made(tmp_path, JOBS[name]))


@pytest.mark.parametrize("name", JOBS)
def test_one_label_finds_every_object_and_every_pod(name, tmp_path):
    for one in made(tmp_path, JOBS[name]):
        assert one["metadata"]["labels"][RUN] == "digits"


def test_only_pods_that_can_carry_the_lead_mount_a_token(tmp_path):
    spec = {name: pod["spec"] for name, pod in pods(made(tmp_path, JOBS["ps"])).items()}
    assert {name for name, of in spec.items() if of["automountServiceAccountToken"]} == {"digits-chief"}
    assert {name for name, of in spec.items() if "serviceAccountName" in of} == {"digits-chief"}
    assert not any(
        of["spec"]["automountServiceAccountToken"] for of in pods(made(tmp_path, JOBS["rbac-none"])).values()
    )


def test_the_role_changes_this_runs_objects_by_name_and_makes_none(tmp_path):
    [role] = of_kind(made(tmp_path, JOBS["ps"]), "Role")
    changing = [rule for rule in role["rules"] if set(rule["verbs"]) - {"get", "list", "watch"}]
    assert [rule["resourceNames"] for rule in changing] == [
        ["digits-chief", "digits-worker", "digits-ps", "digits-evaluator"],
        ["digits-report"],
    ]
    assert {verb for rule in changing for verb in rule["verbs"]} == {"get", "patch"}
    assert not of_kind(made(tmp_path, JOBS["rbac-none"]), "Role")


def test_without_a_namespace_all_is_of_the_one_it_is_applied_in(tmp_path):
    assert "namespace" not in json.dumps([one["metadata"] for one in made(tmp_path, "")])
    [binding] = of_kind(made(tmp_path, ""), "RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "digits-lead"}]


def test_the_agent_comes_in_pieces_that_join_to_what_it_was(tmp_path):
    agent = bytes(range(256)) * 2000
    manifests = made(tmp_path, JOBS["mwms"], agent=agent)
    pieces = [one for one in of_kind(manifests, "ConfigMap") if "binaryData" in one]
    data = {name: base64.b64decode(text) for one in pieces for name, text in one["binaryData"].items()}
    assert b"".join(data[name] for name in sorted(data)) == agent
    assert max(map(len, data.values())) <= PIECE
    sources = pods(manifests)["digits-worker"]["spec"]["volumes"]
    [joined] = [volume["projected"]["sources"] for volume in sources if volume["name"] == "agent"]
    assert [one["configMap"]["name"] for one in joined] == [one["metadata"]["name"] for one in pieces]


def test_a_rendered_run_holds_no_key_and_a_clients_run_holds_it_in_one_place(tmp_path):
    key = RunKey.new().hex()
    rendered, sent = made(tmp_path, JOBS["mwms"]), made(tmp_path, JOBS["mwms"], key=key)
    assert not any("data" in one for one in of_kind(rendered, "Secret"))
    encoded = base64.b64encode(key.encode()).decode()
    assert [one["kind"] for one in sent if encoded in json.dumps(one) or key in json.dumps(one)] == ["Secret"]


def test_a_key_that_kubernetes_makes_is_one_key_for_all_who_read_it():
    key = RunKey.new()
    assert RunKey.of(key.hex() + "\n").people_token() == key.people_token()
    assert RunKey.of("eyJhbGci.x.y").people_token() == RunKey.of("eyJhbGci.x.y\n").people_token()
    assert RunKey.of("eyJhbGci.x.y").people_token() != RunKey.of("eyJhbGci.x.z").people_token()


def test_a_pod_is_told_the_numbers_of_all_hosts_and_who_leads(tmp_path):
    said = in_cluster(tmp_path, JOBS["ps"])
    facts = pod_facts(said.outline, said.cluster, Names(run="digits"), {})
    assert facts["roles"] == [["chief", 0, 1], ["worker", 1, 3], ["ps", 4, 2], ["evaluator", 6, 1]]
    assert facts["lead"] == "digits-chief-0.digits"
    assert facts["line"] == [
        "digits-worker-0.digits",
        "digits-worker-1.digits",
        "digits-worker-2.digits",
        "digits-ps-0.digits",
        "digits-ps-1.digits",
    ]


def test_an_elastic_role_keeps_numbers_for_all_that_it_may_grow_to(tmp_path):
    said = in_cluster(tmp_path, "roles: {worker: {count: 2, max: 8}, evaluator: {}}\n")
    facts = pod_facts(said.outline, said.cluster, Names(run="digits"), {})
    assert facts["roles"] == [["worker", 0, 8], ["evaluator", 8, 1]]


def test_a_group_that_can_go_on_smaller_does_not_end_with_one_index(tmp_path):
    specs = {name: of_kind(made(tmp_path, JOBS[name]), "Job")[0]["spec"] for name in ("mwms", "elastic")}
    assert specs["mwms"]["maxFailedIndexes"] == 0
    assert "maxFailedIndexes" not in specs["elastic"]


def test_a_job_file_too_large_for_a_config_map_is_refused(tmp_path):
    env = "env: {LONG: " + "x" * 220_000 + "}\n"
    with pytest.raises(InputError, match="a ConfigMap that `kubectl apply` takes holds 200"):
        made(tmp_path, env + JOBS["rbac-none"])


def test_an_account_of_the_jobs_own_carries_the_leads_role(tmp_path):
    text = "on: {kubernetes: {namespace: ml, pod: {spec: {serviceAccountName: trainer}}}}\n"
    manifests = made(tmp_path, text)
    assert [one["metadata"]["name"] for one in of_kind(manifests, "ServiceAccount")] == ["digits-key"]
    assert of_kind(manifests, "RoleBinding")[0]["subjects"][0]["name"] == "trainer"


def test_containers_of_the_jobs_own_end_with_the_task_and_are_confined_as_it_is(tmp_path):
    spec = pods(made(tmp_path, JOBS["pvc"]))["digits-worker"]["spec"]
    assert [one["name"] for one in spec["containers"]] == ["task"]
    assert [(one["name"], one.get("restartPolicy")) for one in spec["initContainers"]] == [
        ("fetch", None),
        ("proxy", "Always"),
    ]
    for one in (*spec["containers"], *spec["initContainers"]):
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert one["securityContext"]["allowPrivilegeEscalation"] is False


def test_an_overlay_wins_and_takes_away(tmp_path):
    text = """on:
  kubernetes:
    rbac: none
    pod: {spec: {securityContext: {runAsGroup: ~, fsGroup: 7}, hostNetwork: true, tolerations: [{key: a}]}}
    roles: {worker: {pod: {spec: {tolerations: [{key: b}]}}}}
"""
    spec = pods(made(tmp_path, text))["digits-worker"]["spec"]
    assert "runAsGroup" not in spec["securityContext"]
    assert spec["securityContext"]["fsGroup"] == 7
    assert spec["hostNetwork"] is True
    assert spec["tolerations"][-2:] == [{"key": "a"}, {"key": "b"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["task", "a", "phalanx/run"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(spec=st.dictionaries(st.sampled_from(WORDS), JSON, max_size=4))
def test_whatever_a_template_holds_is_laid_over_or_refused_at_its_place(tmp_path_factory, spec):
    text = f"on: {{kubernetes: {{rbac: none, pod: {{spec: {json.dumps(spec)}}}}}}}\n"
    folder = tmp_path_factory.mktemp("job")
    try:
        manifests = made(folder, text)
    except JobFileError as wrong:
        assert all(one.line for one in wrong.complaints)  # noqa: PT017 - one of two outcomes
        return
    [pod] = pods(manifests).values()
    assert [one["name"] for one in pod["spec"]["containers"]] == ["task"]
    assert document(pod)


def test_kueue_admits_one_job_whole_and_several_as_one_group_of_pods(tmp_path):
    queue, group = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-name"
    [job] = of_kind(made(tmp_path, JOBS["kueue"]), "Job")
    assert (job["spec"]["suspend"], job["metadata"]["labels"][queue]) == (True, "team-a")
    assert group not in job["spec"]["template"]["metadata"]["labels"]
    for job in of_kind(made(tmp_path, JOBS["kueue-group"]), "Job"):
        # A queue named on a Job as well would make that Job a workload of its own, and its pods no part of the group.
        assert queue not in job["metadata"]["labels"]
        assert "suspend" not in job["spec"]
        pod = job["spec"]["template"]["metadata"]
        assert (pod["labels"][queue], pod["labels"][group]) == ("team-a", "digits")
        assert pod["annotations"]["kueue.x-k8s.io/pod-group-total-count"] == "6"


def test_roles_are_numbered_from_the_lead_on(tmp_path):
    said = in_cluster(tmp_path, "roles: {board: {command: [board]}, ps: {}, worker: {count: 2}}\n")
    assert [role.type for role in in_host_order(said.outline)] == ["chief", "worker", "ps", "board"]

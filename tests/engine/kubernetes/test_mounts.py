"""What manifests mount and set is what the agent in a pod reads: the two halves of one contract, held together."""

from __future__ import annotations

import base64
import re

import pytest

from incluster import in_cluster, made, of_kind, pods
from phalanx.agent.podfacts import read_pod
from phalanx.protocol.signing import RunKey

JOBS = {
    "plain": "roles: {worker: {count: 3}, evaluator: {}}\non: {kubernetes: {rbac: none, runs: {pvc: p}, grace: 45}}\n",
    "jobset": "roles: {worker: {count: 2}, ps: {}}\non: {kubernetes: {rbac: none, jobset: on}}\n",
    "secrets": """secrets:
  - {name: a, env: A_TOKEN, from: {secret: s, key: k}}
  - {name: b, path: /secrets/b, from: {secret: s, key: k}}
on: {kubernetes: {rbac: none}}
""",
}

KEY = RunKey.new().hex()


def mounted(root, manifests, *, token: str = "") -> None:
    """The volumes of a pod as the kubelet would make them."""
    maps = {one["metadata"]["name"]: one.get("data", {}) for one in of_kind(manifests, "ConfigMap")}
    (root / "run").mkdir(parents=True)
    (root / "key").mkdir()
    for name, text in maps["digits-outline"].items():
        (root / "run" / name).write_text(text)
    [secret] = of_kind(manifests, "Secret")
    key = base64.b64decode(secret["data"]["key"]).decode() if "data" in secret else token
    (root / "key" / "key").write_text(key)


def environ(template, index: int) -> dict[str, str]:
    """The container's variables as the kubelet would fill them in."""
    fields = {
        "metadata.annotations['batch.kubernetes.io/job-completion-index']": str(index),
        "metadata.name": f"pod-{index}-abcde",
    }
    found: dict[str, str] = {}
    for one in template["spec"]["containers"][0]["env"]:
        source = one.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        value = one["value"] if "value" in one else fields.get(source, "")
        found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda match: found[match[1]], value)
    return found


@pytest.mark.parametrize("name", JOBS)
def test_each_pod_finds_who_it_is_and_where_the_lead_will_be(tmp_path, name):
    manifests = made(tmp_path, JOBS[name], key=KEY)
    mounted(tmp_path / "phalanx", manifests)
    seen = []
    for template in pods(manifests).values():
        role = template["metadata"]["labels"]["phalanx/role"]
        for index in range({one.type: one.count for one in in_cluster(tmp_path, JOBS[name]).outline.roles}[role]):
            pod = read_pod(tmp_path / "phalanx", environ(template, index))
            assert (pod.role, pod.index, pod.key, pod.run) == (role, index, KEY, "digits")
            assert re.fullmatch(rf"digits-{role}(-0)?-{index}\.digits", pod.address)
            assert not [variable for variable in pod.environ if variable.startswith("PHALANX_POD_")]
            seen.append(pod)
    assert [pod.host for pod in seen if pod.is_first] == [0]
    assert {pod.host for pod in seen} == set(range(len(seen)))
    assert all(pod.lead == seen[0].address for pod in seen)
    assert set(seen[0].line) == {pod.address for pod in seen if not pod.is_first}


def test_what_the_job_says_reaches_the_pod(tmp_path):
    manifests = made(tmp_path, JOBS["plain"], key=KEY)
    mounted(tmp_path / "phalanx", manifests)
    pod = read_pod(tmp_path / "phalanx", environ(pods(manifests)["digits-worker"], 0))
    assert (pod.shared, pod.grace, pod.outline.hosts) == (True, 45.0, 4)


def test_a_secret_is_masked_wherever_a_pod_finds_it(tmp_path):
    manifests = made(tmp_path, JOBS["secrets"].replace("/secrets/b", str(tmp_path / "b")), key=KEY)
    (tmp_path / "b").write_text("value of b\n")
    mounted(tmp_path / "phalanx", manifests)
    variables = environ(pods(manifests)["digits-worker"], 0) | {"A_TOKEN": "value of a"}
    assert set(read_pod(tmp_path / "phalanx", variables).secrets) == {"value of a", "value of b"}


def test_all_pods_of_rendered_files_make_the_same_key_of_the_token_that_kubernetes_gives(tmp_path):
    manifests = made(tmp_path, JOBS["plain"])
    mounted(tmp_path / "phalanx", manifests, token="eyJhbGciOi.made.up")
    keys = {read_pod(tmp_path / "phalanx", environ(pods(manifests)["digits-worker"], index)).key for index in range(3)}
    assert keys == {RunKey.of("eyJhbGciOi.made.up").hex()}
    assert len(keys.pop()) == 64


def test_a_key_that_is_not_there_yet_is_no_key(tmp_path):
    manifests = made(tmp_path, JOBS["plain"])
    mounted(tmp_path / "phalanx", manifests)
    with pytest.raises(Exception, match="key/key: it is empty"):
        read_pod(tmp_path / "phalanx", environ(pods(manifests)["digits-worker"], 0))

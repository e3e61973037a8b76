"""The client against a small API server: what breaks in between, and what it says when it cannot go on."""

from __future__ import annotations

import itertools
import json
import os

import pytest

from kubernetes_objects import RUN, pod
from phalanx.engine.kubernetes.access_to import access
from phalanx.engine.kubernetes.client import Client, ClusterError, ForbiddenError
from phalanx.errors import InputError

pytestmark = pytest.mark.real

LABELS = f"phalanx/run={RUN}"


@pytest.fixture
def client(cluster):
    found = Client(access(), patience=5.0, sleep=lambda _: None)
    yield found
    found.close()


def config_map(name="x", **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"phalanx/run": RUN}},
        "data": data,
    }


def test_six_verbs(client, cluster):
    made = client.apply(config_map(a="1"))
    assert made["metadata"]["uid"]
    assert client.apply(config_map(a="2"))["data"] == {"a": "2"}
    assert client.get("ConfigMap", "x")["data"] == {"a": "2"}
    assert client.get("ConfigMap", "y") is None
    assert [one["metadata"]["name"] for one in client.list("ConfigMap", LABELS)] == ["x"]
    assert client.patch("ConfigMap", "x", {"data": {"b": "3"}})["data"] == {"a": "2", "b": "3"}
    client.delete("ConfigMap", "x")
    client.delete("ConfigMap", "x")
    assert cluster.names("configmaps") == []


def test_a_long_list_comes_in_pieces(client, cluster):
    for number in range(1203):
        cluster.put(config_map(f"x{number:04}"), plural="configmaps")
    assert len(client.list("ConfigMap", LABELS)) == 1203
    assert cluster.asked.count(("list", "configmaps")) == 3


def test_a_server_that_is_busy_or_away_for_a_moment_is_asked_again(client, cluster):
    cluster.fail(429, headers={"Retry-After": "1"})
    cluster.fail(503, times=2)
    assert client.apply(config_map(a="1"))["data"] == {"a": "1"}
    assert len(cluster.asked) == 4


def test_what_is_forbidden_is_one_sentence_with_the_missing_rule(client, cluster):
    cluster.forbidden.add(("list", "pods"))
    with pytest.raises(ForbiddenError) as wrong:
        client.list("Pod", LABELS)
    assert str(wrong.value) == (
        'this user may not list pods in namespace ml of test: the rule {apiGroups: [""], resources: [pods], '
        "verbs: [list]} is missing"
    )
    assert "phalanx kubernetes rbac" in (wrong.value.hint or "")


def test_a_token_that_was_renewed_in_the_kubeconfig_is_read_anew(client, cluster, tmp_path):
    cluster.token = "newer"
    path = tmp_path / "kubeconfig"
    path.write_text(path.read_text().replace('"jane"}', '"newer"}'))
    assert client.list("Pod") == []


def test_a_token_that_is_no_longer_valid_is_said_so(client, cluster):
    cluster.token = "another"
    with pytest.raises(ClusterError, match="no longer valid"):
        client.list("Pod")


def test_a_watch_tells_what_is_there_and_each_change_and_survives_410_cuts_and_429(client, cluster):
    cluster.put(pod("worker-0"))
    watching = client.watch("Pod", LABELS, wait=lambda _: False)

    def next_name():
        for change in watching:
            if change.object is not None:
                return change.object["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], change.gone
        return None

    assert next_name() == ("0", False)
    assert next(watching).listed
    cluster.put(pod("worker-1"))
    assert next_name() == ("1", False)
    cluster.forget()
    cluster.fail(429, headers={"Retry-After": "0"})
    cluster.put(pod("worker-2"))
    cluster.remove(pod("worker-1")["metadata"]["name"])
    cluster.break_streams()
    seen = set()
    while not {("2", False), ("1", True)} <= seen:
        seen.add(next_name())


def test_a_watch_that_is_forbidden_ends_with_its_rule(client, cluster):
    cluster.forbidden.add(("watch", "pods"))
    with pytest.raises(ForbiddenError, match=r"verbs: \[watch\]"):
        list(itertools.islice(client.watch("Pod", LABELS, wait=lambda _: False), 3))


def test_a_log_comes_line_by_line_with_times(client, cluster):
    found = cluster.put(pod("worker-0", phase="Succeeded"))
    name = found["metadata"]["name"]
    cluster.write(name, "one", at="2026-11-30T12:00:00.000000001Z")
    cluster.write(name, "x" * 100_000, at="2026-11-30T12:00:01.000000001Z")
    lines = list(client.log(name, container="task", follow=True))
    assert lines[0] == b"2026-11-30T12:00:00.000000001Z one"
    assert len(lines[1]) == 100_031
    assert len(list(client.log(name, container="task", since="2026-11-30T12:00:01Z"))) == 1


def test_a_word_to_a_pod_goes_through_the_api_server(client, cluster):
    def answer(pod, method, path, headers, body):
        return 200, json.dumps([pod, method, path, headers["x-phalanx-token"], body.decode()])

    cluster.proxied = answer
    status, text = client.ask("a-0", 8476, "POST", "/v1/stop", headers={"X-Phalanx-Token": "t"}, body=b"{}", timeout=5)
    assert (status, json.loads(text)) == (200, ["a-0:8476", "POST", "/v1/stop", "t", "{}"])


@pytest.mark.parametrize(
    ("environ", "context", "said"),
    [
        ({}, "nowhere", "the kubeconfig has no context 'nowhere'"),
        ({"KUBECONFIG": "/nowhere/config"}, None, "KUBECONFIG names no file that is there"),
    ],
)
def test_a_kubeconfig_that_does_not_do_is_named(cluster, monkeypatch, environ, context, said):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=said):
        access(context)


def test_of_several_kubeconfigs_each_has_its_part(cluster, monkeypatch, tmp_path):
    one = json.loads((tmp_path / "kubeconfig").read_text())
    users = {**one, "contexts": [], "clusters": [], "current-context": ""}
    rest = {**one, "users": []}
    (tmp_path / "users").write_text(json.dumps(users))
    (tmp_path / "rest").write_text(json.dumps(rest))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "users"), "/nowhere", str(tmp_path / "rest")]))
    cluster.token = "jane"
    with_two = Client(access())
    assert with_two.list("Pod") == []
    with_two.close()

"""The cluster of the tests is a real one: what every other test here takes for granted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from beds.kubernetes.cluster import IMAGE, Cluster, until
from beds.kubernetes.pods import ended, job, pod, running, service

MEETS = """
import os, signal, socket, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Names(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(socket.gethostname().encode())
    def log_message(self, *_): pass
threading.Thread(target=ThreadingHTTPServer(("", 8000), Names).serve_forever, daemon=True).start()
for index in range(3):
    while True:
        try:
            said = urllib.request.urlopen(f"http://meets-{index}.meets:8000/", timeout=2).read().decode()
            break
        except OSError:
            time.sleep(0.3)
    print("met", said, flush=True)
print("status", [line.split() for line in open("/proc/self/status") if line.startswith(("Seccomp:", "NoNewPrivs"))])
print("uid", os.getuid())
signal.pause()
"""


def test_pods_of_an_indexed_job_meet_by_name_on_different_nodes(cluster, namespace):
    cluster.apply(service("meets"), job("meets", 3, MEETS), namespace=namespace)
    pods = [running(cluster, "meets", index, namespace=namespace) for index in range(3)]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1", "node-2", "node-3"}
    for found in pods:
        name = found["metadata"]["name"]
        said = until(
            lambda name=name: "uid" in (text := cluster.logs(name, namespace=namespace)) and text,
            f"the meeting as {name} saw it",
        )
        assert [line for line in said.splitlines() if line.startswith("met")] == [f"met meets-{n}" for n in range(3)]
        assert "['NoNewPrivs:', '1'], ['Seccomp:', '2']" in said
        assert "uid 65532" in said


def test_a_container_finds_tensorflow_and_the_examples_without_a_volume(cluster, namespace):
    script = (
        "import importlib.util as find, os, sys\n"
        "print(find.find_spec('tensorflow').origin, sorted(os.listdir('/examples'))[0], open('/share/word').read())\n"
        "try: open('/share/x', 'w')\nexcept OSError as error: print(error.strerror)\n"
    )
    (cluster.share / "word").write_text("given", encoding="utf-8")
    cluster.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "finds"}, "spec": pod(script)}, namespace=namespace
    )
    assert ended(cluster, "finds", namespace=namespace) == "Succeeded"
    said = cluster.logs("finds", namespace=namespace)
    assert "/opt/venv/" in said
    assert "custom_loop given" in said
    assert "Read-only file system" in said


def test_a_restricted_namespace_refuses_what_the_profile_does_not_allow(control_plane, quarter):
    plain = {"containers": [{"name": "task", "image": IMAGE}]}
    spec = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": plain}
    with pytest.raises(RuntimeError, match='violates PodSecurity "restricted:latest"'):
        control_plane.apply(spec, namespace=quarter)
    control_plane.apply(spec | {"spec": pod("pass")}, namespace=quarter)
    with control_plane.namespace(restricted=False) as open_to_all:
        control_plane.apply(spec, namespace=open_to_all)


def test_pods_are_spread_over_zones_or_kept_in_one_or_left_waiting(control_plane, quarter):
    zone = "topology.kubernetes.io/zone"
    together = {"labelSelector": {"matchLabels": {"job-name": "together"}}, "topologyKey": zone}
    kept = job(
        "together",
        4,
        "pass",
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [together]}},
        task={"resources": {"requests": {"cpu": "6"}}},
    )
    big = pod("pass", task={"resources": {"requests": {"cpu": "40"}}})
    control_plane.apply(
        kept, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}, "spec": big}, namespace=quarter
    )

    def nodes() -> list[str]:
        found = control_plane.list("pods", namespace=quarter, labels="job-name=together")
        return sorted(told["spec"].get("nodeName", "") for told in found)

    until(lambda: len(nodes()) == 4 and all(nodes()), "four pods on nodes")
    assert len({(int(node.removeprefix("node-")) - 1) % 3 for node in nodes()}) == 1
    told = until(
        lambda: control_plane.get("pod", "big", namespace=quarter)["status"].get("conditions"), "the scheduler's word"
    )
    assert told[0]["reason"] == "Unschedulable"
    assert "0/6 nodes are available: 6 Insufficient cpu" in told[0]["message"]


@pytest.mark.parametrize("mounted", [True, False], ids=["with a token", "without"])
def test_a_pod_asks_the_api_with_its_token_and_has_none_without(cluster, namespace, mounted):
    script = (
        "import json, os, ssl, urllib.request\n"
        "place = '/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "if not os.path.exists(place): raise SystemExit('no token')\n"
        f"url = 'https://' + os.environ['KUBERNETES_SERVICE_HOST'] + '/api/v1/namespaces/{namespace}/'\n"
        "for kind in ('pods', 'secrets'):\n"
        "    bearer = {'Authorization': 'Bearer ' + open(place + 'token').read()}\n"
        "    asked = urllib.request.Request(url + kind, headers=bearer)\n"
        "    trusted = ssl.create_default_context(cafile=place + 'ca.crt')\n"
        "    try: print(kind, len(json.load(urllib.request.urlopen(asked, context=trusted))['items']))\n"
        "    except urllib.error.HTTPError as error: print(kind, error.code)\n"
    )
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "asks"}}
    role = about | {"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]}
    binding = about | {
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "asks"},
        "subjects": [{"kind": "ServiceAccount", "name": "default"}],
    }
    asking = pod(script, automountServiceAccountToken=mounted)
    asks = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asks"}, "spec": asking}
    cluster.apply(role, binding, asks, namespace=namespace)
    assert ended(cluster, "asks", namespace=namespace) == ("Succeeded" if mounted else "Failed")
    said = cluster.logs("asks", namespace=namespace)
    assert said.split() == (["pods", "1", "secrets", "403"] if mounted else ["no", "token"])


def test_the_api_server_goes_and_comes_back_with_all_it_knew(control_plane, quarter):
    control_plane.stop_api()
    with pytest.raises(RuntimeError, match=r"connection reset|EOF"):
        control_plane.kubectl("get", "namespaces", "--request-timeout=3s")
    control_plane.start_api()
    assert control_plane.get("namespace", quarter)["metadata"]["name"] == quarter


def test_two_clusters_live_side_by_side_and_leave_nothing(kubernetes_programs, tmp_path):
    with Cluster(nodes=1, real=False) as one, Cluster(nodes=1, real=False) as other:
        one.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}})
        assert other.get("configmap", "mine") == {}
        assert one.left()
    assert one.left() == other.left() == ""
    assert not one.folder.exists()
    assert str(one.folder) not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")


def test_a_killed_owner_leaves_no_cluster(kubernetes_programs):
    here = Path(__file__).parents[1]
    script = (
        f"import sys, time; sys.path.insert(0, {str(here)!r})\n"
        "from beds.kubernetes.cluster import Cluster\n"
        "begun = Cluster(nodes=1, real=False); print(begun.folder, flush=True); begun.start()\n"
        "print('up', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        folder = Path(owner.stdout.readline().strip())
        assert owner.stdout.readline() == "up\n"
        owner.kill()
    gone = Cluster(nodes=1, real=False)
    gone.folder.rmdir()
    gone.folder = folder
    until(lambda: not gone.left() and not folder.exists(), "the end of an orphan", seconds=60)

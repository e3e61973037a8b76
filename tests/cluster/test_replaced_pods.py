"""How Kubernetes replaces a pod of a Job like ours, and what it tells the new one."""

from __future__ import annotations

import json

import pytest

from beds.kubernetes.cluster import until
from beds.kubernetes.pods import WAITS, job, running

_FAILED = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def delete(cluster, pod, namespace):
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "-n", namespace, "--wait=false")


def evict(cluster, pod, namespace):
    name = pod["metadata"]["name"]
    about = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", given=json.dumps(about))


def kill(cluster, pod, namespace):
    cluster.kill_container(pod["metadata"]["name"], namespace=namespace)


def exhaust(cluster, pod, namespace):
    name = pod["metadata"]["name"]
    cluster.exhaust(name, namespace=namespace)

    def told() -> str:
        state = cluster.get("pod", name, namespace=namespace)["status"]["containerStatuses"][0]["state"]
        return str(state.get("terminated", {}).get("reason", ""))

    assert until(told, f"the end of {name}") == "OOMKilled"


def kill_node(cluster, pod, namespace):
    cluster.kill_node(pod["spec"]["nodeName"])


def cut(cluster, pod, namespace):
    cluster.cut(pod["spec"]["nodeName"])


def waits(*, ignoring: bool) -> dict:
    """Ignoring disruptions asks the API server for the replacement of failed pods only."""
    made = job("waits", 2, WAITS)
    if not ignoring:
        made["spec"] |= {"podReplacementPolicy": "TerminatingOrFailed"}
        del made["spec"]["podFailurePolicy"]
    return made


def counts(pod) -> tuple[str | None, str | None]:
    annotations = pod["metadata"]["annotations"]
    return annotations.get(_FAILED), annotations.get(_IGNORED)


@pytest.mark.parametrize(
    ("hurt", "ignoring", "told"),
    [
        (delete, True, ("1", None)),
        (delete, False, ("1", None)),
        (evict, True, ("0", "1")),
        (evict, False, ("1", None)),
        (kill, True, ("1", None)),
        (exhaust, False, ("1", None)),
        (kill_node, False, ("1", None)),
        (cut, False, ("1", None)),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_replacement_says_how_often_its_index_has_failed(cluster, namespace, hurt, ignoring, told):
    cluster.apply(waits(ignoring=ignoring), namespace=namespace)
    first = running(cluster, "waits", 1, namespace=namespace)
    assert counts(first) == ("0", None)
    hurt(cluster, first, namespace)
    second = running(cluster, "waits", 1, namespace=namespace, other=first["metadata"]["uid"])
    assert counts(second) == told


def test_a_job_that_ignores_disruptions_may_not_replace_pods_that_only_end(cluster, namespace):
    made = waits(ignoring=True)
    made["spec"]["podReplacementPolicy"] = "TerminatingOrFailed"
    with pytest.raises(RuntimeError, match="podReplacementPolicy"):
        cluster.apply(made, namespace=namespace)

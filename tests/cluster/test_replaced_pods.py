"""How Kubernetes replaces a pod of a Job of ours, and what it tells the new one."""

from __future__ import annotations

import time

from beds.kubernetes.cluster import until
from beds.kubernetes.pods import WAITS, job, running

_FAILED = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def replace(cluster, namespace, hurt) -> tuple[dict[str, str], dict[str, str], float]:
    """Have one of two pods come to harm: annotations of the first and of its replacement, and the seconds between."""
    cluster.apply(job("waits", 2, WAITS), namespace=namespace)
    first = running(cluster, "waits", 1, namespace=namespace)
    begun = time.monotonic()
    hurt(first)
    second = running(cluster, "waits", 1, namespace=namespace, other=first["metadata"]["uid"])
    took = time.monotonic() - begun
    return *(each["metadata"]["annotations"] for each in (first, second)), took


def counts(annotations: dict[str, str]) -> tuple[str | None, str | None]:
    return annotations.get(_FAILED), annotations.get(_IGNORED)


def test_a_first_pod_carries_no_failure(cluster, namespace):
    cluster.apply(job("waits", 2, WAITS), namespace=namespace)
    assert counts(running(cluster, "waits", 1, namespace=namespace)["metadata"]["annotations"]) == ("0", None)


def test_a_deleted_pod_is_replaced(cluster, namespace):
    def delete(first):
        cluster.kubectl("delete", "pod", first["metadata"]["name"], "-n", namespace, "--wait=false")

    _, annotations, took = replace(cluster, namespace, delete)
    print("deleted", annotations, took)


def test_an_evicted_pod_is_replaced(cluster, namespace):
    def evict(first):
        name = first["metadata"]["name"]
        about = (
            f'{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}","namespace":"{namespace}"}}}}'
        )
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
        cluster.kubectl("create", "--raw", path, "-f", "-", given=about)

    _, annotations, took = replace(cluster, namespace, evict)
    print("evicted", annotations, took)


def test_a_container_out_of_memory_is_replaced(cluster, namespace):
    def exhaust(first):
        name = first["metadata"]["name"]
        cluster.exhaust(name, namespace=namespace)
        told = until(
            lambda: (cluster.get("pod", name, namespace=namespace)["status"]["containerStatuses"][0]["state"]).get(
                "terminated"
            ),
            "its end",
        )
        assert told["reason"] == "OOMKilled"

    _, annotations, took = replace(cluster, namespace, exhaust)
    print("oom", annotations, took)


def test_a_killed_container_is_replaced(cluster, namespace):
    _, annotations, took = replace(
        cluster, namespace, lambda first: cluster.kill_container(first["metadata"]["name"], namespace=namespace)
    )
    print("killed", annotations, took)


def test_the_pod_of_a_killed_node_is_replaced_on_another(cluster, namespace):
    _, annotations, took = replace(cluster, namespace, lambda first: cluster.kill_node(first["spec"]["nodeName"]))
    print("node", annotations, took)


def test_the_pod_of_a_node_off_the_network_is_replaced(cluster, namespace):
    _, annotations, took = replace(cluster, namespace, lambda first: cluster.cut(first["spec"]["nodeName"]))
    print("cut", annotations, took)

"""What a pod's state means, by the table: forms as the API gives them."""
# ruff: noqa: E501 - sentences of the API are quoted whole

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubernetes_objects import condition, ended, event, job, pod, waiting
from phalanx.decide.exits import Kind
from phalanx.decide.podjobs import see_job
from phalanx.decide.pods import see
from phalanx.decide.seen import Standing

_NO_ROOM = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."


def unscheduled(message: str, reason: str = "Unschedulable") -> dict[str, Any]:
    return pod(phase="Pending", node="", conditions=[condition("PodScheduled", reason, message, status="False")])


def deleted(**more: Any) -> dict[str, Any]:
    found = pod(**more)
    found["metadata"]["deletionTimestamp"] = "2026-11-30T12:02:00Z"
    return found


def crashing() -> dict[str, Any]:
    found = pod(state=waiting("CrashLoopBackOff", "back-off 40s restarting failed container=task"))
    found["status"]["containerStatuses"][0].update(lastState=ended(139), restartCount=4)
    return found


WAITS, AILS, GONE = Standing.WAITS, Standing.AILS, Standing.GONE
USER, PLATFORM, PLACE, ASKED = Kind.USER, Kind.PLATFORM, Kind.INFRASTRUCTURE, Kind.PREEMPTION

TABLE = [
    (
        "no room",
        unscheduled(_NO_ROOM),
        "unschedulable",
        PLACE,
        WAITS,
        "waits for a node: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu",
    ),
    (
        "no such zone",
        unscheduled("0/3 nodes are available: 3 node(s) didn't match pod affinity rules."),
        "unschedulable",
        PLACE,
        WAITS,
        "didn't match pod affinity rules",
    ),
    (
        "gated",
        unscheduled("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated"),
        "gated",
        PLACE,
        WAITS,
        "waits for admission",
    ),
    (
        "unbound claim",
        unscheduled("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"),
        "volume",
        USER,
        WAITS,
        "waits for a volume",
    ),
    (
        "no such claim",
        unscheduled('0/3 nodes are available: persistentvolumeclaim "runs" not found. preemption: 0/3'),
        "volume",
        USER,
        WAITS,
        '"runs" not found',
    ),
    (
        "no such image",
        pod(
            phase="Pending",
            state=waiting(
                "ErrImagePull",
                'rpc error: code = NotFound desc = failed to pull and unpack image "registry.example.com/ctr:1": failed to resolve reference: not found',
            ),
        ),
        "image",
        USER,
        WAITS,
        "there is no such image or tag",
    ),
    (
        "registry refuses",
        pod(
            phase="Pending",
            state=waiting(
                "ImagePullBackOff",
                'Back-off pulling image "registry.example.com/ctr:1": ErrImagePull: failed to authorize: 401 Unauthorized: authentication required',
            ),
        ),
        "image",
        USER,
        WAITS,
        "its registry refuses it (failed to authorize",
    ),
    (
        "registry is away",
        pod(phase="Pending", state=waiting("ErrImagePull", "dial tcp: lookup registry.example.com: no such host")),
        "image",
        USER,
        WAITS,
        "cannot be reached from the node",
    ),
    (
        "back-off alone",
        pod(phase="Pending", state=waiting("ImagePullBackOff", 'Back-off pulling image "registry.example.com/ctr:1"')),
        "image",
        USER,
        WAITS,
        "cannot pull the image 'registry.example.com/ctr:1': ImagePullBackOff",
    ),
    (
        "bad image name",
        pod(phase="Pending", state=waiting("InvalidImageName", "couldn't parse image name")),
        "image",
        USER,
        WAITS,
        "is no name of an image",
    ),
    (
        "never pulled",
        pod(
            phase="Pending",
            state=waiting("ErrImageNeverPull", "Container image is not present with pull policy of Never"),
        ),
        "image",
        USER,
        WAITS,
        "is not on its node",
    ),
    (
        "missing Secret",
        pod(phase="Pending", state=waiting("CreateContainerConfigError", 'secret "s3-key" not found')),
        "config",
        USER,
        WAITS,
        "the Secret 's3-key' does not exist",
    ),
    (
        "missing ConfigMap",
        pod(phase="Pending", state=waiting("CreateContainerConfigError", 'configmap "settings" not found')),
        "config",
        USER,
        WAITS,
        "the ConfigMap 'settings' does not exist",
    ),
    (
        "missing key",
        pod(
            phase="Pending", state=waiting("CreateContainerConfigError", "couldn't find key token in Secret ml/s3-key")
        ),
        "config",
        USER,
        WAITS,
        "the Secret ml/s3-key has no key 'token'",
    ),
    (
        "image runs as root",
        pod(
            phase="Pending",
            state=waiting(
                "CreateContainerConfigError", "container has runAsNonRoot and image will run as root (pod: …)"
            ),
        ),
        "config",
        USER,
        WAITS,
        "runAsNonRoot",
    ),
    (
        "no shell",
        pod(
            state=ended(
                128,
                "StartError",
                'failed to create containerd task: … exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown',
            )
        ),
        "cannot-run",
        USER,
        GONE,
        "no such file or directory",
    ),
    (
        "dockerd cannot run it",
        pod(phase="Failed", state=ended(127, "ContainerCannotRun", "executable file not found in $PATH")),
        "cannot-run",
        USER,
        GONE,
        "executable file not found",
    ),
    (
        "crash loop",
        crashing(),
        "crash-loop",
        PLATFORM,
        GONE,
        "exited with code 139 (128 + SIGSEGV: crashed in native code), 4 times by now",
    ),
    (
        "out of memory",
        pod(phase="Failed", state=ended(137, "OOMKilled")),
        "oom",
        PLACE,
        GONE,
        "was OOMKilled: it used more memory than its limit of 2Gi",
    ),
    ("killed", pod(phase="Failed", state=ended(137)), "exited", PLACE, GONE, "exited with code 137 (128 + SIGKILL"),
    (
        "the job has failed",
        pod(phase="Failed", state=ended(1, message="failed: worker:1 exited with code 3")),
        "exited",
        USER,
        GONE,
        "exited with code 1 (the job has failed): failed: worker:1 exited with code 3",
    ),
    ("the place has failed", pod(phase="Failed", state=ended(3)), "exited", PLACE, GONE, "the place has failed"),
    (
        "node was short of memory",
        pod(
            phase="Failed",
            reason="Evicted",
            message="The node was low on resource: memory. Threshold quantity: 100Mi, available: 60Mi.",
            conditions=[condition("DisruptionTarget", "TerminationByKubelet", "The node was low on resource: memory.")],
        ),
        "evicted",
        PLACE,
        GONE,
        "was evicted by its node node-1: The node was low on resource: memory",
    ),
    (
        "deadline",
        pod(
            phase="Failed",
            reason="DeadlineExceeded",
            message="Pod was active on the node longer than the specified deadline",
        ),
        "deadline",
        USER,
        GONE,
        "ran longer than its Job may",
    ),
    (
        "node shut down",
        pod(
            phase="Failed",
            reason="Terminated",
            message="Pod was terminated in response to imminent node shutdown.",
            conditions=[
                condition(
                    "DisruptionTarget",
                    "TerminationByKubelet",
                    "Pod was terminated in response to imminent node shutdown.",
                )
            ],
        ),
        "node-shutdown",
        ASKED,
        GONE,
        "its node node-1 shuts down",
    ),
    (
        "node has no room after all",
        pod(phase="Failed", reason="OutOfnvidia.com/gpu", message="Node didn't have enough resource: nvidia.com/gpu"),
        "refused-by-node",
        PLACE,
        GONE,
        "has no nvidia.com/gpu left",
    ),
    (
        "preempted",
        deleted(
            conditions=[
                condition(
                    "DisruptionTarget",
                    "PreemptionByScheduler",
                    "default-scheduler: preempting to accommodate a higher priority pod",
                )
            ]
        ),
        "preempted",
        ASKED,
        AILS,
        "gives its place to a pod of higher priority",
    ),
    (
        "drained",
        deleted(conditions=[condition("DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")]),
        "evicted",
        ASKED,
        AILS,
        "as `kubectl drain` or an autoscaler does",
    ),
    (
        "tainted",
        deleted(
            conditions=[
                condition(
                    "DisruptionTarget", "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
                )
            ]
        ),
        "tainted",
        PLACE,
        AILS,
        "was deleted from its node node-1, which is not ready, unreachable or tainted NoExecute (Taint",
    ),
    (
        "node object is gone",
        pod(
            phase="Failed",
            conditions=[condition("DisruptionTarget", "DeletionByPodGC", "PodGC: node no longer exists")],
        ),
        "node-gone",
        PLACE,
        GONE,
        "was deleted since its node node-1 is gone",
    ),
    (
        "a new kind of disruption",
        deleted(conditions=[condition("DisruptionTarget", "Moved", "rebalanced by the descheduler")]),
        "disrupted",
        ASKED,
        AILS,
        "is taken away: rebalanced by the descheduler",
    ),
    ("deleted by hand", deleted(), "deleted", ASKED, AILS, "is being deleted"),
    ("deleted, and ended", deleted(phase="Failed", state=ended(3)), "deleted", ASKED, GONE, "was deleted: by hand"),
    (
        "its node is silent",
        pod(conditions=[condition("Ready", "", status="False")]),
        "node-silent",
        PLACE,
        AILS,
        "has not been heard of",
    ),
    (
        "its node died under it",
        pod(
            phase="Failed",
            state=ended(
                137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"
            ),
        ),
        "node-lost",
        PLACE,
        GONE,
        "was lost with its node",
    ),
    (
        "a word nobody knows",
        pod(phase="Pending", state=waiting("WaitingForMoonlight", "half moon")),
        "other",
        PLACE,
        WAITS,
        "waits: WaitingForMoonlight: half moon",
    ),
    (
        "a phase nobody knows",
        pod(phase="Unknown", message="Node which was running pod is unresponsive"),
        "other",
        PLACE,
        AILS,
        "is Unknown: Node which",
    ),
    (
        "a reason nobody knows",
        pod(phase="Failed", reason="Sunset", message="it is late"),
        "other",
        PLACE,
        GONE,
        "has ended: Sunset: it is late",
    ),
]


@pytest.mark.parametrize(
    ("about", "cause", "kind", "standing", "says"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_pods_state_has_one_cause_one_kind_and_words(about, cause, kind, standing, says):
    seen = see(about)
    assert seen is not None
    assert (seen.cause, seen.kind, seen.standing) == (cause, kind, standing)
    assert says in seen.says


@pytest.mark.parametrize(
    "about",
    [
        pod(),
        pod(phase="Succeeded", state=ended(0, "Completed")),
        pod(phase="Pending"),
        pod(phase="Pending", state=waiting("ContainerCreating")),
        pod(phase="Pending", state=waiting("PodInitializing")),
        pod(phase="Pending", conditions=[condition("PodScheduled", "", status="True")]),
    ],
)
def test_a_healthy_pod_is_not_spoken_of(about):
    assert see(about) is None


def test_an_init_container_that_fails_is_named():
    about = pod(
        phase="Pending", state=waiting("PodInitializing"), initContainerStatuses=[{"name": "fetch", "state": ended(1)}]
    )
    seen = see(about)
    assert seen is not None
    assert seen.says == "'s container 'fetch' exited with code 1"


def test_a_volume_that_does_not_come_is_told_by_its_newest_event():
    about = pod(phase="Pending", state=waiting("ContainerCreating"))
    other = pod("worker-1", phase="Pending", state=waiting("ContainerCreating"))
    events = [
        event(
            about,
            "FailedMount",
            'MountVolume.SetUp failed for volume "key" : secret "ctr-key" not found',
            last="2026-11-30T12:00:01Z",
        ),
        event(about, "FailedMount", "timed out waiting for the condition", last="2026-11-30T12:00:05Z"),
        event(other, "FailedMount", "another one's", last="2026-11-30T12:00:09Z"),
    ]
    seen = see(about, events)
    assert seen is not None
    assert seen.says == "waits for a volume: timed out waiting for the condition"
    first = see(about, events[:1])
    assert first is not None
    assert first.says == 'waits for a volume: secret "ctr-key" not found'


@pytest.mark.parametrize(
    ("message", "cause", "says"),
    [
        (
            'Error creating: pods "ctr-worker-0-abc" is forbidden: exceeded quota: team-a, requested: cpu=2, used: cpu=3, limited: cpu=4',
            "quota",
            "waits for quota: exceeded quota: team-a",
        ),
        (
            'Error creating: pods "ctr-worker-0-abc" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "security",
            'violates PodSecurity "restricted:latest"',
        ),
        (
            'Error creating: pods "ctr-worker-0-abc" is forbidden: error looking up service account ml/ctr-lead: serviceaccount "ctr-lead" not found',
            "account",
            "service account",
        ),
        (
            "Error creating: Internal error occurred: failed calling webhook",
            "refused",
            "its pods cannot be made: Internal error",
        ),
    ],
)
def test_pods_that_cannot_be_made_are_told_by_their_jobs_events(message, cause, says):
    about = job(active=1)
    seen = see_job(about, [event(about, "FailedCreate", message)])
    assert seen is not None
    assert seen.cause == cause
    assert says in seen.says


def test_a_job_that_has_all_its_pods_is_not_spoken_of_whatever_its_events_say():
    about = job(active=2)
    assert see_job(about, [event(about, "FailedCreate", "Error creating: exceeded quota")]) is None


def test_a_suspended_and_a_failed_job_say_so():
    held = see_job(job(suspend=True))
    over = see_job(
        job(conditions=[condition("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")])
    )
    assert held is not None
    assert over is not None
    assert held.standing is Standing.WAITS
    assert "its deadline is over" in over.says


_WORD = st.text(max_size=30)


@given(
    reason=_WORD,
    message=_WORD,
    code=st.integers(0, 255),
    phase=st.sampled_from(["Pending", "Running", "Failed", "Odd"]),
)
def test_reasons_that_nobody_knows_are_passed_on(reason, message, code, phase):
    held = see(pod(phase=phase, state=waiting(reason, message)))
    over = see(pod(phase=phase, state=ended(code, reason, message)))
    for seen in (held, over, see(pod(phase="Failed", reason=reason, message=message))):
        assert seen is None or seen.says
    if reason not in ("", "ContainerCreating", "PodInitializing"):
        assert held is not None

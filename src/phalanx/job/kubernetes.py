"""`on: {kubernetes: …}` of job.yaml: how a run becomes objects of a cluster. The only place that knows its YAML.

What Kubernetes calls by a name of its own keeps it: `pod` takes a PodTemplateSpec, whatever is in it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from phalanx.job.fields import Duration, RoleName, Size, SomeTime, Switch, Text
from phalanx.job.part import Part
from phalanx.plan.cluster import OVERLAID, USER

Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
LabelKey = Annotated[
    str, StringConstraints(pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=253)
]
LabelValue = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$", max_length=63)]
_TEMPLATE_SCHEMA = {
    "type": "object",
    "properties": {"metadata": {"type": "object"}, "spec": {"type": "object"}},
    "additionalProperties": False,
}


def _template(value: dict[str, Any]) -> dict[str, Any]:
    """A PodTemplateSpec, or what is missing in it said in its own words."""
    for key, inner in value.items():
        if key not in OVERLAID:
            message = f"`{key}` is no part of a pod's template; it has metadata and spec"
            raise ValueError(message)
        if not isinstance(inner, dict):
            message = f"{key} must be a mapping, as in a PodTemplateSpec"
            raise ValueError(message)  # noqa: TRY004 - pydantic turns this kind into a complaint
    return value


def _user(value: object) -> object:
    if value == "assigned" or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    message = f"{value!r} is neither the number of a user nor `assigned`"
    raise ValueError(message)


Template = Annotated[dict[str, Any], AfterValidator(_template), WithJsonSchema(_TEMPLATE_SCHEMA)]
User = Annotated[
    int | str,
    BeforeValidator(_user),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"const": "assigned"}]}),
]


class Runs(Part):
    """A volume for the folders of runs."""

    pvc: Text = Field(description="A PersistentVolumeClaim that every pod can mount: ReadWriteMany. No default.")


class Gang(Part):
    """A scheduler that starts all pods of a run or none."""

    scheduler: Literal["volcano", "coscheduling"] = Field(
        description="volcano, or coscheduling of the scheduler-plugins; a PodGroup is made for it. No default."
    )
    name: Text | None = Field(
        default=None, description="What the scheduler is called. Default: volcano, scheduler-plugins-scheduler."
    )


class Scraper(Part):
    """Who may reach the lead's port besides the run's own pods, for /metrics and the page."""

    namespace: Namespace | None = Field(default=None, description="The namespace its pods are in. Default: the run's.")
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, description="Labels of its pods. Default: any.")
    cidr: Text | None = Field(
        default=None,
        description="Addresses instead of pods, such as those of the API servers, through which `phalanx scale` and "
        "`phalanx stacks` reach the lead. Default: none.",
    )


class RolePod(Part):
    """What is particular about the pods of one role."""

    pod: Template = Field(
        default_factory=dict,
        description="A PodTemplateSpec, {metadata, spec}, laid over the one of all roles. Default: nothing.",
    )


class Kubernetes(Part):
    """Where in a cluster a run goes, and what its pods have."""

    context: Text | None = Field(default=None, description="Which context of the kubeconfig. Default: the current one.")
    namespace: Namespace | None = Field(default=None, description="The namespace. Default: that of the context.")
    pull: Literal["IfNotPresent", "Always", "Never"] = Field(
        default="IfNotPresent",
        description="When nodes pull the image. Default IfNotPresent: best with a digest, since a tag may move between "
        "two pods of a run.",
    )
    pull_secrets: list[Text] = Field(
        default_factory=list, description="Secrets that open the image's registry. Default: the service account's."
    )
    rbac: Literal["role", "none"] = Field(
        default="role",
        description="role: the lead may watch the run's pods and patch its Jobs, so that it names what happens outside "
        "of containers; none: no pod gets a token, and only a client that follows names it. Default role.",
    )
    runs: Runs | None = Field(
        default=None, description="Keep the records on a volume: {pvc: NAME}. Default: in the pods, gone with them."
    )
    queue: LabelValue | None = Field(
        default=None,
        description="The local queue of Kueue, which admits all pods or none; with gang: {scheduler: volcano} that "
        "of Volcano. Default: none.",
    )
    gang: Gang | None = Field(
        default=None, description="Start all pods or none: {scheduler: volcano}. Default: as they fit."
    )
    jobset: Switch = Field(
        default=False,
        description="on or off: one JobSet in place of a Job a role, where its CRD is installed. Such a run "
        "cannot be scaled. Default off.",
    )
    priority: Text | None = Field(default=None, description="The PriorityClass of the pods. Default: the cluster's.")
    apart: list[RoleName] = Field(
        default_factory=list,
        description="Roles whose pods go on other hosts than those of the workers, such as [ps]. Default: none.",
    )
    topology: dict[Literal["zone", "rack", "switch", "host"], LabelKey] = Field(
        default_factory=dict,
        description="Which label of nodes says what `placement` means, such as {rack: example.com/rack}. Default: zone "
        "and host by their well-known labels; rack and switch have none.",
    )
    gpu: Text = Field(
        default="nvidia.com/gpu", description="What the cluster calls a GPU (`gpus` of a role). Default nvidia.com/gpu."
    )
    shm: Size | None = Field(
        default=None,
        description="The size of /dev/shm, in bytes or as 2Gi; it counts as memory. Default: the runtime's 64 MB, and "
        "no limit of its own with GPUs, since NCCL needs more.",
    )
    hugepages: dict[Literal["2Mi", "1Gi"], Size] = Field(
        default_factory=dict,
        description="Huge pages of a pod by their size: {2Mi: 512Mi}, mounted at /hugepages-2Mi. Default: none.",
    )
    deadline: SomeTime | None = Field(
        default=None,
        description="The longest a run may take, in seconds or as 12h (activeDeadlineSeconds). Default: none.",
    )
    ttl: Duration | None = Field(
        default=None,
        description="How long objects stay after the end, in seconds or as 1d. Default: 1d for `phalanx run`; for ever "
        "for `phalanx render`, since what keeps a repository in step would start them anew.",
    )
    grace: Duration | None = Field(
        default=None,
        description="From TERM to KILL of a pod, in seconds or as 1m. Default: grace.stop and 20 seconds more.",
    )
    user: User = Field(
        default=USER,
        description=f"The user that containers run as, or `assigned` where the cluster chooses it. Default {USER}.",
    )
    restricted: Switch = Field(
        default=True,
        description="on or off: pods as the `restricted` Pod Security profile wants them, and a root file system that "
        "is read-only. Default on; off leaves all of it to `pod`.",
    )
    scrapers: list[Scraper] = Field(
        default_factory=list,
        description="Who may reach the lead's port besides the run's pods: [{namespace: monitoring}]. Default: nobody.",
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Further labels of every object. Default: none."
    )
    annotations: dict[LabelKey, str] = Field(
        default_factory=dict, description="Further annotations of every object. Default: none."
    )
    pod: Template = Field(
        default_factory=dict,
        description="A PodTemplateSpec, {metadata, spec}, laid over that of every role: tolerations, nodeSelector, "
        "volumes, sidecars. The container called `task` is ours; give it env, mounts, resources. Others become "
        "sidecars, which end with it. Default: nothing.",
    )
    roles: dict[RoleName, RolePod] = Field(
        default_factory=dict, description="The same for one role: {ps: {pod: {…}}}. Default: nothing."
    )

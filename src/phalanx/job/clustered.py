"""Job → Cluster: what a job says of Kubernetes, what it may not say there, and what deserves a second thought."""

from __future__ import annotations

from collections.abc import Iterator

from phalanx.job import confidential, templates
from phalanx.job.advise import count_of
from phalanx.job.complaint import Loc
from phalanx.job.model import Job
from phalanx.names import KNOWN_TYPES, TRAINING_TYPES, an
from phalanx.plan.cluster import Cluster, Gang, Given, Scraper
from phalanx.plan.marks import CONTAINER
from phalanx.tfconfig.finding import Severity

#: Labels that every cluster's nodes have; racks and switches have none.
WELL_KNOWN = {"zone": "topology.kubernetes.io/zone", "host": "kubernetes.io/hostname"}

_SCHEDULERS = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}

#: Seconds that an agent has to leave after its tasks have had theirs.
_LEAVING = 20.0

Said = tuple[Loc, str]


def cluster_of(job: Job) -> Cluster:
    """The cluster's half of a job that `mistakes` has no objection to."""
    said = job.on.kubernetes
    folder = job.folder if job.folder and job.folder.startswith("/") else None
    return Cluster(
        image=job.image or "",
        context=said.context,
        namespace=said.namespace,
        pull=said.pull,
        pull_secrets=tuple(said.pull_secrets),
        role=said.rbac == "role",
        pvc=said.runs.pvc if said.runs else None,
        queue=said.queue,
        gang=Gang(kind=said.gang.scheduler, scheduler=said.gang.name or _SCHEDULERS[said.gang.scheduler])
        if said.gang
        else None,
        jobset=said.jobset,
        priority=said.priority,
        apart=tuple(said.apart),
        together=_label(job, job.placement.together),
        spread=_label(job, job.placement.spread),
        gpu=said.gpu,
        shm=said.shm,
        hugepages=dict(said.hugepages.items()),
        deadline=said.deadline,
        ttl=said.ttl,
        grace=said.grace if said.grace is not None else job.grace.stop + _LEAVING,
        user=said.user if isinstance(said.user, int) else None,
        restricted=said.restricted,
        scrapers=tuple(Scraper(namespace=one.namespace, labels=one.labels, cidr=one.cidr) for one in said.scrapers),
        labels=said.labels,
        annotations=said.annotations,
        pod=said.pod,
        pods={role: of.pod for role, of in said.roles.items()},
        secrets=tuple(
            Given(name=one.name, secret=one.source.secret, key=one.source.key or "", env=one.env, path=one.path)
            for one in job.secrets
            if one.source.secret
        ),
        folder=folder,
    )


def mistakes(job: Job) -> Iterator[Said]:
    """What cannot be had on Kubernetes, each with what can."""
    if not job.image:
        yield ("image",), "Kubernetes runs containers: say which with image: REGISTRY/NAME@sha256:…, or --image"
    if job.hosts is not None:
        yield ("hosts",), "on Kubernetes each task has a pod of its own; leave hosts out"
    for name, role in job.roles.items():
        if (role.per_host or 1) > 1:
            yield ("roles", name, "per_host"), "on Kubernetes each task has a pod of its own; leave per_host out"
        if "_" in name or name.endswith("-"):
            yield (
                ("roles", name),
                f"Kubernetes makes host names of roles: letters, digits and dashes, unlike `{name}`",
            )
    if job.checkpoint and not job.checkpoint.startswith("/") and "://" not in job.checkpoint:
        yield (
            ("checkpoint",),
            (
                f"{job.checkpoint} would be a folder of each pod's own; name one that all pods share: gs://…, or an "
                "absolute path on a volume that on.kubernetes.pod mounts"
            ),
        )
    yield from confidential.mistakes(job)
    yield from _places(job)
    yield from _roles(job)
    yield from templates.mistakes(job)


def notes(job: Job) -> Iterator[tuple[Loc, str, Severity, str, str]]:
    """Place, rule, severity, message and what to do: nothing here stops a job."""
    said = job.on.kubernetes
    image = job.image or ""
    if "@sha256:" not in image:
        message = f"{image} is named by a tag, which may mean another image tomorrow"
        yield ("image",), "job-image-by-tag", Severity.INFO, message, "name it by digest: NAME@sha256:…"
    if _is_group(job):
        message = (
            "the Jobs of this run are one pod group of Kueue, which needs its integration of pods: since 0.12, if on"
        )
        fix = "jobset: on does without, where JobSet is installed"
        yield ("on", "kubernetes", "queue"), "job-queue-pods", Severity.INFO, message, fix
    if said.rbac == "none":
        message = "no pod gets a token: what happens outside of containers is named only while a client follows"
        yield ("on", "kubernetes", "rbac"), "job-without-role", Severity.INFO, message, ""
    if job.checkpoint and job.checkpoint.startswith("/") and not _mounted(job, job.checkpoint):
        message = f"no volume is mounted at {job.checkpoint}: each pod would have its own, and the root is read-only"
        fix = f"mount one in on.kubernetes.pod, in the container `{CONTAINER}`"
        yield ("checkpoint",), "job-checkpoint-not-mounted", Severity.WARNING, message, fix
    for number, name in enumerate(job.outputs if said.restricted else ()):
        if not name.startswith(("/", "{")) and "://" not in name:
            message = f"{name} is in the image's own folder, which is read-only in a pod"
            fix = f"write {{task_dir}}/{name}, or restricted: off"
            yield ("outputs", number), "job-outputs-read-only", Severity.WARNING, message, fix


def kinds(job: Job) -> list[str]:
    """Every role that a job may have tasks of: TensorFlow's, and its own."""
    return [*KNOWN_TYPES, *(name for name in job.roles if name not in KNOWN_TYPES)]


def _is_group(job: Job) -> bool:
    """Whether Kueue has to admit several Jobs at once."""
    said = job.on.kubernetes
    return (
        bool(said.queue) and said.gang is None and not said.jobset and sum(count_of(job, k) > 0 for k in kinds(job)) > 1
    )


def _label(job: Job, word: str | None) -> str | None:
    if word is None or "/" in word:
        return word
    said = {str(name): label for name, label in job.on.kubernetes.topology.items()}
    return said.get(word) or WELL_KNOWN.get(word)


def _places(job: Job) -> Iterator[Said]:
    for key in ("together", "spread"):
        word = getattr(job.placement, key)
        if word is not None and _label(job, word) is None:
            yield (
                ("placement", key),
                (
                    f"Kubernetes has no label for a {word}; name that of your nodes: {key}: example.com/{word}, or "
                    f"on: {{kubernetes: {{topology: {{{word}: example.com/{word}}}}}}}"
                ),
            )


def _roles(job: Job) -> Iterator[Said]:
    said = job.on.kubernetes
    there = [kind for kind in kinds(job) if count_of(job, kind)]
    at: Loc = ("on", "kubernetes")
    for number, name in enumerate(said.apart):
        if name not in there:
            yield (*at, "apart", number), f"this job has no {name}; it has {', '.join(there)}"
        elif name in TRAINING_TYPES:
            yield (*at, "apart", number), f"{an(name)} trains: it cannot be kept apart from those that do"
    for name in said.roles:
        if name not in there:
            yield (*at, "roles", name), f"this job has no {name}; it has {', '.join(there)}"
    if said.user == 0 and said.restricted:
        yield (*at, "user"), "user 0 is root, which the restricted profile refuses; another user, or restricted: off"
    worker = job.roles.get("worker")
    if said.jobset and worker is not None and (worker.max or worker.count) > worker.count:
        yield (*at, "jobset"), "a JobSet cannot be scaled; leave out jobset, or roles.worker.max"
    if _is_group(job) and worker is not None and (worker.max or worker.count) > worker.count:
        yield (*at, "queue"), "a pod group of Kueue keeps its size; leave out roles.worker.max, or queue"
    claims = [job.roles.get(kind) for kind in there]
    if said.hugepages and any(role is None or not (role.cpus or role.memory) for role in claims):
        yield (*at, "hugepages"), "Kubernetes gives huge pages to pods that ask for memory; say memory for each role"


def _mounted(job: Job, path: str) -> bool:
    """Whether some template mounts a volume at that folder or above it."""
    for _, template in templates.overlays(job):
        for _, container in templates.containers(template):
            for mount in templates.mappings(container.get("volumeMounts")):
                at = str(mount.get("mountPath", "")).rstrip("/")
                if at and (path == at or path.startswith(f"{at}/")):
                    return True
    return False

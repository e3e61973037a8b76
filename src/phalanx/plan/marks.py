"""The words by which the parts of a run in a cluster know each other: labels, annotations, beginnings of log lines."""

from __future__ import annotations

#: The container in which the agent is; all others are sidecars.
CONTAINER = "task"

#: Labels of every object of a run.
RUN, ROLE = "phalanx/run", "phalanx/role"
#: The label and the annotation in which a Job's controller says which of its pods one is.
INDEX = "batch.kubernetes.io/job-completion-index"

#: How a client tells that it wants the run to end where it may not speak to the lead: an annotation of the lead's Job.
STOP = "phalanx/stop"

#: What each record's line begins with in the log of the lead's container.
RECORD = "phalanx-record: "
#: What a line begins with that says which start of a task begins: `phalanx-start: worker:1 g2.a1`.
START = "phalanx-start: "

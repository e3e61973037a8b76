"""A job of many tasks as manifests: how long it takes, and how large each object is beside its limit.

python bench/render.py [WORKERS ...]        (default 4 100 2000)
"""

from __future__ import annotations

import collections
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from phalanx.engine.bundle import agent_zip
from phalanx.engine.kubernetes.objects import objects
from phalanx.engine.kubernetes.render import files
from phalanx.engine.kubernetes.static import static_objects
from phalanx.job.flags import Flags
from phalanx.job.incluster import declare_in_cluster

ROUNDS = 5

#: What `kubectl apply` keeps of an object in an annotation of its own; what etcd takes.
APPLIED, STORED = 262_144, 1_572_864

JOB = """name: digits
command: [python, train.py]
image: registry.example.com/digits@sha256:0123
roles: {chief: {}, worker: {count: %d}, ps: {count: %d}, evaluator: {}}
on: {kubernetes: {namespace: ml}}
"""


def main() -> None:
    agent = agent_zip()
    print(f"agent {len(agent) / 1000:.0f} kB; median of {ROUNDS}, from job.yaml to the text of all files")
    for workers in [int(word) for word in sys.argv[1:]] or [4, 100, 2000]:
        ps = max(workers // 10, 1)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "job.yaml").write_text(JOB % (workers, ps))
            for static in (False, True):
                times = []
                for _ in range(ROUNDS):
                    began = time.perf_counter()
                    said = declare_in_cluster(("job.yaml",), Flags(), cwd=Path(folder))
                    made = (
                        static_objects(said.outline, said.cluster, run="digits")
                        if static
                        else objects(said.outline, said.cluster, run="digits", agent=agent)
                    )
                    texts = files(made)
                    times.append(time.perf_counter() - began)
                sizes = {one["metadata"]["name"]: len(json.dumps(one, separators=(",", ":"))) for one in made}
                largest = max(sizes, key=lambda name: sizes[name])
                kinds = collections.Counter(one["kind"] for one in made)
                print(
                    f"{'static' if static else 'agent ':6} {workers + ps + 2:5,} tasks: "
                    f"{statistics.median(times):.3f} s, {len(made)} objects ({kinds['Job']} Jobs), "
                    f"{sum(map(len, texts.values())) / 1000:,.0f} kB of files; largest {largest} "
                    f"{sizes[largest] / 1000:.0f} kB of {APPLIED / 1000:.0f} (stored: of {STORED / 1000:.0f})"
                )


if __name__ == "__main__":
    main()

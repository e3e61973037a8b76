"""What a run keeps of its declaration says what was declared."""

from __future__ import annotations

import string

import hypothesis.strategies as st
from hypothesis import given

from outlines import unhurried
from phalanx.job.dump import to_yaml
from phalanx.job.load import parse
from phalanx.job.model import Job

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.text(string.ascii_letters + "_", min_size=1, max_size=8)
role = st.fixed_dictionaries(
    {"count": st.integers(0, 9)},
    optional={
        "memory": st.integers(0, 1 << 40),
        "env": st.dictionaries(names, text, max_size=2),
        "gpus": st.integers(0, 8) | st.none(),
        "in_cluster": st.booleans(),
    },
)
jobs = st.fixed_dictionaries(
    {"command": st.lists(text, min_size=1, max_size=4)},
    optional={
        "strategy": st.sampled_from(["auto", "mwms", "ps", "none"]),
        "roles": st.dictionaries(st.sampled_from(["worker", "ps", "y", "null", "true"]), role, max_size=3),
        "env": st.dictionaries(names, text, max_size=3),
        "health": st.fixed_dictionaries({}, optional={"start": st.floats(0.001, 1e6), "silence": st.integers(1, 99)}),
        "runtime": st.booleans(),
        "secrets": st.lists(
            st.fixed_dictionaries(
                {"name": text.filter(bool), "env": names, "from": st.fixed_dictionaries({"file": text.filter(bool)})}
            ),
            max_size=2,
        ),
        "on": st.fixed_dictionaries(
            {}, optional={"slurm": st.dictionaries(text, text | st.integers(-(10**9), 10**9) | st.booleans())}
        ),
        "hosts": st.integers(1, 9),
    },
)


@unhurried
@given(jobs)
def test_what_is_written_is_read_back_as_the_same_job(data):
    job = Job.model_validate(data)
    assert parse(to_yaml(job), "job.yaml").job == job


def test_the_text_is_one_that_a_person_would_write(golden):
    job = parse(
        """\
command: [python, train.py, --epochs, "3", "{checkpoint}"]
roles: {worker: {count: 4, memory: 32Gi}, ps: {count: 1}}
health: {start: 5m}
checkpoint: /mnt/ckpt
secrets: [{name: s3, env: KEY, from: {env: KEY}}]
runtime: off
""",
        "job.yaml",
    ).job
    golden("job/dumped.yaml", to_yaml(job))

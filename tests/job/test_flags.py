"""Flags override the file, are checked as the file is, and are named as the user wrote them."""

from __future__ import annotations

import pytest

from phalanx.job.complaint import JobFileError
from phalanx.job.flags import Flags, apply, named
from phalanx.job.load import parse

FILE = "command: [python, train.py]\nroles: {worker: {count: 2, cpus: 4}}\nhealth: {start: 1m, finish: 2m}\n"

FORM = "lower-case letters, digits and dashes, starting with a letter and not ending in a dash, at most 40"


def test_flags_alone_make_a_job():
    job = apply(None, Flags(workers=4, ps=2, ports="22000-22099"), ("train.py", "--epochs", "3"))
    assert job.command == ["train.py", "--epochs", "3"]
    assert {name: role.count for name, role in job.roles.items()} == {"worker": 4, "ps": 2}


def test_a_flag_overrides_its_field_and_leaves_the_rest():
    job = apply(parse(FILE, "job.yaml").job, Flags(workers=8, start_timeout="5m"))
    assert (job.roles["worker"].count, job.roles["worker"].cpus) == (8, 4)
    assert (job.health.start, job.health.finish) == (300, 120)


def test_no_flags_change_nothing():
    job = parse(FILE, "job.yaml").job
    assert apply(job, Flags()) == job


def test_a_command_replaces_the_files():
    assert apply(parse(FILE, "job.yaml").job, Flags(), ("other.py",)).command == ["other.py"]


@pytest.mark.parametrize(("flags", "count"), [(Flags(chief=True), 1), (Flags(chief=False), 0)])
def test_chief_and_no_chief_both_say_something(flags, count):
    assert apply(None, flags, ("x.py",)).roles["chief"].count == count


def test_all_wrong_flags_are_named_at_once():
    with pytest.raises(JobFileError) as caught:
        apply(None, Flags(workers=-1, ports="80-90", start_timeout="soon", strategy="mwsm", name="A.B"), ("x.py",))
    assert [str(complaint) for complaint in caught.value.complaints] == [
        f"--name: may not be 'A.B': {FORM}",
        "--strategy: `mwsm` is none of auto, mwms, ps, estimator, none; did you mean mwms?",
        "--workers: must be at least 0, not -1",
        "--start-timeout: 'soon' is no duration; write 90 (seconds), 30s, 5m, 1h30m or 12:30:00",
        "--ports: '80-90' is no range of ports; write A-B with 1024 <= A <= B <= 65535, such as 22000-22099",
    ]


@pytest.mark.parametrize("written", ["0", "0s", "0:00:00"])
def test_a_start_without_a_limit_is_refused_and_silence_without_one_is_not(written):
    with pytest.raises(JobFileError) as caught:
        apply(None, Flags(start_timeout=written, silence=written, hang=written), ("x.py",))
    [complaint] = caught.value.complaints
    assert str(complaint).startswith(f"--start-timeout: '{written}' leaves no time")


def test_a_word_that_is_no_utf8_reaches_the_script():
    assert apply(None, Flags(), ("train.py", "\udcff")).command[1] == "\udcff"


def test_values_know_the_flag_they_came_from():
    flags = Flags(workers=2, chief=False, max_restarts=3)
    assert named(flags) == {
        ("roles", "worker", "count"): "--workers",
        ("roles", "chief", "count"): "--no-chief",
        ("restart", "max"): "--max-restarts",
    }

"""A job file: all of its mistakes at once, each at its place and in plain words."""

from __future__ import annotations

import pytest

from phalanx.errors import InputError
from phalanx.job.complaint import JobFileError
from phalanx.job.load import load, parse

#: Everything that can be wrong, once.
WRONG = """\
name: My.Job
command: python train.py --epochs 3
wrokers: 3
workers: 4
start: 5m
strategy: mwsm
roles:
  Worker: {count: 2}
  chief: 1
  worker:
    count: -1
    cpu: 3
    gpus: "2"
    memory: 32 parsecs
    command: [train.py, 3, {checkpoint}, 0755, on, true]
    min: 2
  ps: {count: 1.5}
env:
  EPOCHS: 3
  1X: y
  DEBUG: true
env:
  TWICE: x
health: {start: 5 minutes, hangs: 3, silence: 2m}
restart: {max: 3, within: 1 fortnight}
secrets:
  - {name: x, env: X}
  - {name: x, env: X, from: {env: A, file: B}}
  - {name: x, env: X, from: {vault: B}}
runtime: maybe
ports: 80-90
hosts: 0
on: local
outputs: model.keras
image: registry.example.com/ctr@sha256:0
placement: {together: galaxy}
network: 10.0.0.0/8
communication: nccl
force_tf_config: "yes"
"""


def said(text: str, shown: str = "job.yaml") -> list[str]:
    with pytest.raises(JobFileError) as caught:
        parse(text, shown)
    return [str(complaint) for complaint in caught.value.complaints]


def test_every_mistake_of_a_file_is_said_at_once(golden):
    golden("job/mistakes.txt", "".join(f"{line}\n" for line in said(WRONG)))


def test_mistakes_come_in_the_order_of_the_file():
    with pytest.raises(JobFileError) as caught:
        parse(WRONG, "job.yaml")
    lines = [complaint.line for complaint in caught.value.complaints]
    assert lines == sorted(lines)
    assert str(caught.value).startswith(f"{len(lines)} mistakes in the declaration\njob.yaml:1:1: ")


def test_no_complaint_speaks_the_validators_jargon():
    text = "\n".join(said(WRONG))
    assert not [
        word for word in ("Input should", "dictionary", "valid", "instance", "pydantic", "None") if word in text
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("roles: {worker: {cuont: 2}}", "unknown key `cuont` in roles.worker; did you mean `count`?"),
        ("evaluators: 1", "unknown key `evaluators`; did you mean roles: {evaluator: {count: N}}?"),
        ("silence: 3m", "unknown key `silence`; it belongs under `health`"),
        ("stratgey: ps", "unknown key `stratgey`; did you mean `strategy`?"),
        ("roles: {worker: 4}", "roles.worker must be a mapping of keys to values, not the number 4; write {count: 4}"),
        ("roles: {PS: {}}", "a role is named by lower-case letters, digits, - and _, unlike `PS`; did you mean `ps`?"),
        ("roles: [worker]", "roles must be a mapping of keys to values, not a list"),
        ("env: {A: {checkpoint}}", 'env.A must be text, not a mapping; a word in braces needs quotes: "{checkpoint}"'),
        ("env: {A: }", "env.A must be text, not nothing"),
        ('env: {A: "\\0"}', "env.A: a zero byte cannot be passed to a program"),
        ("outputs: ['']", "outputs[0] must not be empty"),
        ("roles: {worker: {count: 999999}}", "roles.worker.count must be at most 20000, not 999999"),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(line, message):
    assert said(f"command: [train.py]\n{line}\n")[0].partition(": ")[2] == message


def test_a_missing_command_says_how_to_write_one():
    assert said("name: ctr\n") == [
        "job.yaml:1:1: `command` is missing; say what each task runs: command: [python, train.py]"
    ]


def test_an_empty_command_points_at_the_empty_key():
    assert said("name: ctr\ncommand:\n")[0].startswith("job.yaml:2:1: `command` is missing")


def test_a_sentence_for_a_command_is_shown_as_the_list():
    [complaint] = said("command: python train.py --name 'a b'\n")
    assert complaint.endswith('write the command as a list: ["python", "train.py", "--name", "a b"]')


def test_a_key_with_nothing_after_it_counts_as_not_written():
    assert (
        parse("command: [train.py]\nenv:\nhealth:\ncheckpoint: ~\n", "job.yaml").job
        == parse("command: [train.py]\n", "j.yml").job
    )


@pytest.mark.parametrize(("text", "what"), [("- 1\n", "a list"), ("hello\n", "one word"), ("3\n", "one word")])
def test_a_file_that_is_no_mapping_is_one_clear_error(text, what):
    assert said(text) == [f"job.yaml:1:1: a job is a mapping such as `command: [python, train.py]`; this is {what}"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_file_is_one_clear_error(text):
    with pytest.raises(InputError, match=r"job.yaml is empty"):
        parse(text, "job.yaml")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x7fELF\0\0\0", "is no text: it contains zero bytes"),
        (b"name: caf\xe9\n", r"job.yaml:1: not UTF-8"),
        (b"# padding\n" * 1_000_000, "is larger than 256 KiB"),
    ],
)
def test_odd_files_are_one_clear_error(tmp_path, data, message):
    path = tmp_path / "job.yaml"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        load(path, shown="job.yaml")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xef\xbb\xbfcommand: [train.py]\n")
    assert load(path).job.command == ["train.py"]


def test_a_folder_is_no_job_file(tmp_path):
    with pytest.raises(InputError, match="is a folder, not a job file"):
        load(tmp_path)


def test_a_missing_file_is_answered_with_its_neighbour(tmp_path):
    (tmp_path / "job.yaml").touch()
    with pytest.raises(InputError, match=r"no such file: jobs\.yaml") as caught:
        load(tmp_path / "jobs.yaml", shown="jobs.yaml")
    assert caught.value.hint == f"did you mean {tmp_path / 'job.yaml'}?"


def test_a_json_job_is_a_job():
    job = parse('{"command": ["train.py"], "roles": {"worker": {"count": 2, "memory": "32Gi"}}}', "job.json").job
    assert (job.roles["worker"].count, job.roles["worker"].memory) == (2, 32 << 30)


def test_the_example_of_the_design_is_read_whole():
    job = parse(
        """\
name: ctr
command: [python, train.py, --epochs, "3", --ckpt, "{checkpoint}"]
strategy: auto
roles:
  chief:  {count: 1, cpus: 2}
  worker: {count: 4, cpus: 8, gpus: 1, memory: 32Gi}
  ps:     {count: 2, cpus: 4}
  evaluator: {count: 1}
checkpoint: /mnt/ckpt/ctr
restart: {max: 0, within: 1h}
health: {start: 5m, finish: 10m}
communication: auto
secrets: [{name: s3-key, env: AWS_SECRET_ACCESS_KEY, from: {env: AWS_SECRET_ACCESS_KEY}}]
network: auto
on:
  slurm: {partition: gpu, time: "12:00:00"}
  kubernetes: {namespace: ml, queue: team-a}
""",
        "job.yaml",
    ).job
    assert job.health.start == 300
    assert job.secrets[0].source.env == "AWS_SECRET_ACCESS_KEY"
    assert job.on.slurm == {"partition": "gpu", "time": "12:00:00"}


@pytest.mark.parametrize(
    "text",
    [
        "secrets: hunter2\ncommand: [x]",
        "secrets: [hunter2]\ncommand: [x]",
        "env: {API_TOKEN: 8315923745}\ncommand: [x]",
        "roles: {worker: {env: {DB_PASSWORD: 83159237}}}\ncommand: [x]",
    ],
)
def test_a_wrong_value_that_is_a_secret_is_not_repeated(text):
    with pytest.raises(JobFileError) as caught:
        parse(text, "job.yaml")
    assert "hunter2" not in str(caught.value)
    assert "83159237" not in str(caught.value)


def test_a_hostile_file_writes_no_escapes_and_no_endless_list():
    keys = "\n".join(f'"\\e[31mk{i}": 1' for i in range(500))
    with pytest.raises(JobFileError) as caught:
        parse(f"command: [x]\nname: {'a' * 100_000}\n{keys}", "job.yaml")
    lines = str(caught.value).split("\n")
    assert lines[0] == "501 mistakes in the declaration"
    assert lines[-1] == "and 401 more"
    assert max(map(len, lines)) < 700
    assert all(line.isprintable() for line in lines)


def test_a_number_of_thousands_of_digits_is_a_number():
    with pytest.raises(JobFileError, match="must be a whole number, not the number inf"):
        parse(f"command: [x]\nroles: {{worker: {{count: {'9' * 5000}}}}}", "job.yaml")

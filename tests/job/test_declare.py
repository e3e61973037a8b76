"""From the words of a command line to an outline, with every objection on the way."""

from __future__ import annotations

import pytest

from environments import environment
from outlines import a_host
from phalanx.errors import InputError
from phalanx.job.complaint import JobFileError
from phalanx.job.declare import declare
from phalanx.job.flags import Flags
from phalanx.job.load import parse
from phalanx.plan.outline import Strategy


@pytest.fixture
def folder(tmp_path):
    """A script, and an environment with TensorFlow that is switched on."""
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    environment(tmp_path / "venv", has=("tensorflow-2.21.0",))
    return tmp_path


@pytest.fixture
def say(folder):
    def declared(*tokens: str, environ: dict[str, str] | None = None, **flags):
        around = {"VIRTUAL_ENV": str(folder / "venv"), "PATH": "/usr/bin:/bin", **(environ or {})}
        return declare(tokens, Flags(**flags), cwd=folder, environ=around)

    return declared


def refused(say, *tokens: str, **more) -> list[str]:
    with pytest.raises(JobFileError) as caught:
        say(*tokens, **more)
    return [str(complaint) for complaint in caught.value.complaints]


def test_a_script_and_flags_need_no_file(say, folder):
    outline, text, notes = say("train.py", "--epochs", "3", workers=2)
    assert outline.strategy is Strategy.MWMS
    assert outline.roles[0].command == (str(folder / "venv/bin/python"), "train.py", "--epochs", "3")
    assert outline.interpreter.tensorflow == "2.21.0"
    assert (outline.name, outline.cwd, notes) == ("train", str(folder), ())
    assert text == f'command: [train.py, "--epochs", "3"]\nfolder: {folder}\nroles:\n  worker:\n    count: 2\n'


def test_one_word_that_ends_in_yaml_is_a_job_file_and_flags_override_it(say, folder):
    (folder / "4workers.yaml").write_text("command: [train.py]\nroles: {worker: {count: 4}, ps: {count: 1}}\n")
    outline, text, _ = say("4workers.yaml", workers=3)
    assert {role.type: role.count for role in outline.roles} == {"chief": 1, "worker": 3, "ps": 1}
    assert parse(text, "job.yaml").job.roles["worker"].count == 3


def test_a_flag_overrides_the_files_budget_of_restarts(say, folder):
    (folder / "job.yaml").write_text("command: [train.py]\nroles: {worker: {count: 2}}\nrestart: {max: 3}\n")
    assert say("job.yaml").outline.policies.restart.max == 3
    assert say("job.yaml", max_restarts=0).outline.policies.restart.max == 0


def test_objections_name_the_line_or_the_flag_they_come_from(say, folder):
    (folder / "job.yaml").write_text("command: [trian.py]\nroles:\n  dispatcher: {}\nnetwork: eth0\n")
    said = refused(say, "job.yaml", ps=0, strategy="ps")
    assert [one.split(": ")[0] for one in said] == [
        "--strategy",
        "job.yaml:1:11",
        "job.yaml:3:3",
        "job.yaml:4:1",
    ]


def test_words_after_a_job_file_have_no_place(say, folder):
    (folder / "job.yaml").write_text("command: [train.py]\n")
    with pytest.raises(InputError, match=r"job\.yaml says the whole command; --epochs 3 has no place after it"):
        say("job.yaml", "--epochs", "3")


def test_nothing_to_run_is_answered_with_an_example(say):
    with pytest.raises(InputError, match="nothing to run") as caught:
        say(workers=2)
    assert "phalanx run --workers 2 train.py" in caught.value.hint


def test_a_script_that_is_not_there_is_answered_with_its_neighbour(say):
    assert refused(say, "trian.py") == ["no such file: trian.py; did you mean train.py?"]
    assert refused(say, "python", "trian.py") == ["no such file: trian.py; did you mean train.py?"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"workers": 0}, "--workers: no chief and no worker: nobody would train"),
        ({"workers": -1}, "--workers: must be at least 0, not -1"),
        ({"ps": -2}, "--ps: must be at least 0, not -2"),
        ({"hosts": 0}, "--hosts: must be at least 1, not 0"),
        ({"on": "slurm"}, "--on slurm: slurm comes in a later release; leave --on out to run on this machine"),
        (
            {"ps": 1, "strategy": "mwms"},
            "--strategy: mwms with a ps hangs: its leader would be ps:0, which never answers",
        ),
        ({"silence": "soon"}, "--silence: "),
    ],
)
def test_a_wrong_flag_is_named(say, flags, said):
    [complaint] = refused(say, "train.py", **flags)
    assert complaint.startswith(said)


def test_no_worker_beside_a_chief_is_fine(say):
    assert [str(task) for task in say("train.py", workers=0, chief=True).outline.tasks()] == ["chief:0"]


def test_a_tf_config_of_the_users_own_is_not_replaced_by_accident(say):
    """§F 28."""
    with pytest.raises(InputError, match="TF_CONFIG is set in your environment already") as caught:
        say("train.py", workers=2, environ={"TF_CONFIG": '{"cluster": {}}'})
    assert "--override" in caught.value.hint


def test_what_override_replaces_is_said_in_its_first_60_characters(say):
    notes = say("train.py", workers=2, override=True, environ={"TF_CONFIG": "x" * 200}).notes
    assert [note.id for note in notes] == ["job-tf-config-replaced"]
    assert "x" * 60 in notes[0].message
    assert "x" * 61 not in notes[0].message


def test_a_job_of_one_task_is_told_that_it_gets_no_tf_config(say):
    """R26, R27."""
    assert [note.id for note in say("train.py").notes] == ["job-one-task"]
    assert say("train.py", force_tf_config=True).notes == ()


def test_an_interpreter_without_tensorflow_is_a_warning_with_the_one_next_door(say, folder):
    (folder / "bare" / "bin").mkdir(parents=True)
    (folder / "bare" / "pyvenv.cfg").write_text("version = 3.11.7\n")
    (folder / "bare" / "bin" / "python").touch(0o755)
    [note] = say("train.py", workers=2, python="bare").notes
    assert note.id == "job-no-tensorflow"
    assert note.fix == f"--python {folder}/venv/bin/python has TensorFlow 2.21.0"


def test_a_command_that_is_no_python_needs_no_interpreter(say):
    outline, _, notes = say("sh", "-c", "echo", workers=2)
    assert (outline.interpreter, notes) == (None, ())
    assert outline.roles[0].command == ("sh", "-c", "echo")


@pytest.mark.parametrize(
    ("script", "flags", "said"),
    [
        (
            "tf.distribute.ParameterServerStrategy",
            {"workers": 2},
            "names ParameterServerStrategy, and the job has no ps",
        ),
        (
            "tf.distribute.MultiWorkerMirroredStrategy",
            {"ps": 1},
            "names MultiWorkerMirroredStrategy, and the job has a ps",
        ),
        ("tf.distribute.MultiWorkerMirroredStrategy", {"workers": 2}, None),
        ("tf.distribute.ParameterServerStrategy", {"ps": 1}, None),
        ("tf.distribute.ParameterServerStrategy", {"workers": 2, "strategy": "mwms"}, None),
    ],
)
def test_a_script_that_names_another_strategy_is_a_warning(say, folder, script, flags, said):
    (folder / "train.py").write_text(f"import tensorflow as tf\n{script}")
    notes = [note for note in say("train.py", **flags).notes if note.id == "job-strategy-differs"]
    assert [said in note.message for note in notes] == ([True] if said else [])


def test_a_secret_in_the_environment_is_advised_at_its_line(say, folder):
    (folder / "job.yaml").write_text("command: [train.py]\nroles: {worker: {count: 2}}\nenv:\n  API_TOKEN: abc123\n")
    [note] = say("job.yaml").notes
    assert (note.id, note.path, note.place.line, note.place.column) == ("job-secret-in-env", "job.yaml", 4, 3)


@pytest.fixture
def elsewhere(folder):
    """A job file in a folder of its own, and a subfolder to stand in."""
    (folder / "job" / "scripts").mkdir(parents=True)
    (folder / "job" / "scripts" / "train.py").touch()
    (folder / "job" / "key").write_text("hunter2\n")
    (folder / "job" / "job.yaml").write_text(
        "command: [scripts/train.py]\nroles: {worker: {count: 2}}\ncheckpoint: ckpt\noutputs: [model.keras]\n"
        "secrets: [{name: key, env: KEY, from: {file: key}}]\n"
    )
    return folder / "job"


@pytest.mark.parametrize(("cwd", "file"), [("job", "job.yaml"), (".", "job/job.yaml"), ("job/scripts", "../job.yaml")])
def test_a_job_file_means_the_same_wherever_it_is_called_from(folder, elsewhere, cwd, file):
    """As Compose does: commands start in the folder of the file, and every relative path of it begins there."""
    environ = {"VIRTUAL_ENV": str(folder / "venv"), "PATH": "/usr/bin:/bin"}
    outline = declare((file,), Flags(), cwd=folder / cwd, environ=environ).outline
    assert (outline.cwd, outline.checkpoint) == (str(elsewhere), str(elsewhere / "ckpt"))
    assert (outline.outputs, outline.secrets[0].source) == (("model.keras",), f"file:{elsewhere}/key")


def test_what_a_job_file_names_is_looked_for_beside_it(say, folder, elsewhere):
    (elsewhere / "job.yaml").write_text("command: [train.py]\n")
    [said] = refused(say, "job/job.yaml")
    assert said == f"job/job.yaml:1:11: no such file: train.py in {elsewhere}; name it by its path from there"


def test_paths_in_flags_stay_the_users_own_beside_a_file_from_elsewhere(say, folder, elsewhere):
    (folder / "bare" / "bin").mkdir(parents=True)
    (folder / "bare" / "pyvenv.cfg").write_text("version = 3.11.7\n")
    (folder / "bare" / "bin" / "python").touch(0o755)
    outline = say("job/job.yaml", checkpoint="here", python="bare").outline
    assert (outline.cwd, outline.checkpoint) == (str(elsewhere), str(folder / "here"))
    assert outline.interpreter.path == str(folder / "bare" / "bin" / "python")


def test_a_job_file_may_start_its_commands_in_another_folder(say, folder, elsewhere):
    (elsewhere / "job.yaml").write_text("command: [train.py]\nfolder: ..\n")
    assert say("job/job.yaml").outline.cwd == str(folder)
    (elsewhere / "job.yaml").write_text("command: [train.py]\nfolder: nope\n")
    assert refused(say, "job/job.yaml") == [
        f"job/job.yaml:2:1: there is no folder {elsewhere}/nope; make it, or name another"
    ]


def test_the_record_of_a_declaration_says_the_same_from_where_it_lies(say, folder, elsewhere):
    """A run keeps its job.yaml in its own folder; started again from there it must mean what it meant."""
    for tokens in (("job/job.yaml",), ("train.py", "--epochs", "3")):
        declared = say(*tokens, workers=2, checkpoint="ckpt")
        (folder / "record").mkdir(exist_ok=True)
        (folder / "record" / "job.yaml").write_text(declared.text)
        again = say("record/job.yaml").outline
        assert (again.cwd, again.checkpoint, again.secrets) == (
            declared.outline.cwd,
            declared.outline.checkpoint,
            declared.outline.secrets,
        )


@pytest.mark.parametrize(
    ("flags", "there", "said"),
    [
        ({"workers": 1}, 0, "worker:0 wants 1 GPU; box has none"),
        ({"workers": 2}, 1, "worker:1 wants 1 GPU; box has 1, and 1 of them taken"),
        ({"workers": 1, "hosts": 1, "gpus_per_worker": 4}, 2, "worker:0 wants 4 GPUs; box has 2"),
    ],
)
def test_gpus_that_this_machine_does_not_have_are_wrong_input_before_anything_starts(
    say, monkeypatch, flags, there, said
):
    monkeypatch.setattr("socket.gethostname", lambda: "box.example")
    monkeypatch.setattr("phalanx.agent.facts.this_machine", lambda _environ: a_host(gpus=there))
    with pytest.raises(InputError) as caught:
        say("train.py", **{"gpus_per_worker": 1, **flags})
    assert (str(caught.value), caught.value.exit_code) == (said, 2)
    assert "--gpus-per-worker" in caught.value.hint


def test_gpus_that_are_there_are_given(say, monkeypatch):
    monkeypatch.setattr("phalanx.agent.facts.this_machine", lambda _environ: a_host(gpus=2))
    assert say("train.py", workers=2, gpus_per_worker=1).outline.roles[0].gpus == 1


def test_hiding_every_gpu_needs_none(say, monkeypatch):
    monkeypatch.setattr("phalanx.agent.facts.this_machine", lambda _environ: a_host())
    assert say("train.py", workers=2, gpus_per_worker=0).outline.roles[0].gpus == 0


def test_a_range_of_one_port_is_told_why_it_is_too_small(say):
    with pytest.raises(InputError, match=r"one a task now, and one a task for the restart") as caught:
        say("train.py", workers=1, force_tf_config=True, ports="22000-22000")
    assert caught.value.hint == "widen them to 22000-22001"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"hosts": 3, "workers": 2}, ["1 of 3 hosts stays idle: there are too few tasks; --hosts 2 is enough"]),
        ({"hosts": 4, "workers": 2}, ["2 of 4 hosts stay idle: there are too few tasks; --hosts 2 is enough"]),
        ({"hosts": 2, "workers": 2}, []),
        ({"hosts": 2, "workers": 3}, []),
    ],
)
def test_a_host_without_a_task_is_a_warning(say, flags, said):
    notes = [note for note in say("train.py", **flags).notes if note.id == "job-idle-host"]
    assert [f"{note.message}; {note.fix}".partition(", or")[0] for note in notes] == said


@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_tf_config_in_the_environment_counts_as_not_set(say, value):
    [note] = say("train.py", workers=2, environ={"TF_CONFIG": value}).notes
    assert (note.id, note.message) == (
        "job-tf-config-empty",
        "TF_CONFIG is empty in your environment: that counts as not set",
    )


def test_nobody_to_train_is_answered_with_what_to_ask_for(say):
    assert refused(say, "train.py", workers=0) == [
        "--workers: no chief and no worker: nobody would train; ask for at least one: --workers 1, or --chief"
    ]


def test_the_scripts_words_after_a_job_file_are_told_where_they_belong(say, folder):
    (folder / "job.yaml").write_text("command: [train.py]\n")
    with pytest.raises(InputError) as caught:
        say("job.yaml", "extra")
    assert caught.value.hint == (
        "after a job.yaml come flags of phalanx; the script's arguments belong in its `command:`"
    )


def test_a_folder_is_no_command(say, folder):
    assert refused(say, str(folder)) == [f"{folder} is a folder; name the script in it"]
    (folder / "x.yaml").mkdir()
    with pytest.raises(InputError, match=r"x\.yaml is a folder, not a job file"):
        say("x.yaml")
